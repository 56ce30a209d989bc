"""Services that take time in line with the size of a window."""

from __future__ import annotations

from chatmemory import UserMessage, services

NEW = [UserMessage(f"one more, {n}") for n in range(10)]
ROWS = {"branch": lambda it: services.branch(it.id, "branch", NEW)}
