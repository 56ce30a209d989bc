"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

ONE = {"memory_id": "m"}
PAGES = {
    "inspector:settings": (ONE, {"get": Role.VIEWER, "post": Role.VIEWER}),
    "inspector:change": (ONE, {"post": Role.OPERATOR}),
    "inspector:policies": ({}, {"get": Role.VIEWER, "post": Role.OPERATOR}),
    "inspector:remove-policy": ({}, {"post": Role.OPERATOR}),
    "inspector:mute": ({}, {"post": Role.OPERATOR}),
    "inspector:tokens": ({}, {"get": Role.ADMIN, "post": Role.ADMIN}),
    "inspector:revoke-token": ({"key": 1}, {"post": Role.ADMIN}),
}
