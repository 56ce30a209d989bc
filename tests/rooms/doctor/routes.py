"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.access.roles import Role

ONE = {"memory_id": "m"}
PAGES = {
    "inspector:doctor": ({}, {"get": Role.VIEWER}),
    "inspector:doctor-rules": ({}, {"get": Role.VIEWER}),
    "inspector:doctor-error": ({}, {"get": Role.VIEWER, "post": Role.VIEWER}),
    "inspector:doctor-providers": ({}, {"get": Role.ADMIN, "post": Role.ADMIN}),
    "inspector:doctor-providers-forget": ({}, {"post": Role.ADMIN}),
    "inspector:repair-many": ({}, {"post": Role.OPERATOR}),
    "inspector:raise-limits": ({}, {"post": Role.OPERATOR}),
    "inspector:undo-many": ({}, {"post": Role.OPERATOR}),
    "inspector:repair": (ONE, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
    "inspector:undo-repair": (ONE | {"step": 1}, {"post": Role.OPERATOR}),
}
API = {"chatmemory:doctor": ({}, {"get": Role.VIEWER})}
