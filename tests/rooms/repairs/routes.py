"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

ONE = {"memory_id": "m"}
PAGES = {
    "inspector:repair-many": ({}, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
    "inspector:raise-limits": ({}, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
    "inspector:undo-many": ({}, {"post": Role.OPERATOR}),
    "inspector:repair": (ONE, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
    "inspector:undo-repair": (ONE | {"step": 1}, {"post": Role.OPERATOR}),
}
