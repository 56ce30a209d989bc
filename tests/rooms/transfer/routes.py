"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {
    "inspector:export": ({"memory_id": "m"}, {"get": Role.VIEWER}),
    "inspector:import-examined": ({}, {"get": Role.OPERATOR}),
    "inspector:import": ({}, {"get": Role.OPERATOR, "post": Role.OPERATOR}),
}
