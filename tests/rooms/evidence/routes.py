"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {"inspector:lab-compactions": ({}, {"get": Role.VIEWER})}
API = {"chatmemory:incidents": ({"memory_id": "m"}, {"get": Role.VIEWER})}
COUNTED = ["/lab/compactions/"]
