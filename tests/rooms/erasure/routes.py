"""The permissions of routes: arguments, and the lowest role for each method."""

from __future__ import annotations

from chatmemory.roles import Role

ONE = {"memory_id": "m", "seq": 1}
PAGES = {"inspector:redact": (ONE, {"post": Role.ADMIN})}
API = {"chatmemory:redact": (ONE, {"post": Role.ADMIN})}
