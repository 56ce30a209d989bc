"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES: dict[str, tuple] = {}
API = {"chatmemory:remembers": ({"memory_id": "m"}, {"get": Role.VIEWER})}
