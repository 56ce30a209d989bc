"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

ONE = {"memory_id": "m"}
PAGES = {
    "inspector:simulate": (ONE, {"post": Role.VIEWER}),
    "inspector:verdict": (ONE, {"post": Role.VIEWER}),
    "inspector:add": (ONE, {"post": Role.OPERATOR}),
    "inspector:branch": (ONE, {"post": Role.OPERATOR}),
    "inspector:compare": (ONE, {"get": Role.VIEWER}),
    "inspector:adopt": (ONE, {"post": Role.OPERATOR}),
}
API = {"chatmemory:simulate": (ONE, {"post": Role.VIEWER})}
