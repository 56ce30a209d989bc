"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

PAGES = {
    "inspector:evidence-file": ({"memory_id": "m"}, {"get": Role.VIEWER, "post": Role.VIEWER}),
}
