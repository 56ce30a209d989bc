"""The audit log: a line of the logger `chatmemory.audit` per action, without message texts."""

from __future__ import annotations

import logging

from chatmemory import database

_log = logging.getLogger("chatmemory.audit")


def log(text: str, *, action: str, actor: str, **details: str | int) -> None:
    """Log an action after the transaction commits."""
    database.on_commit(lambda: log_now(text, action=action, actor=actor, **details))


def log_now(text: str, *, action: str, actor: str, **details: str | int) -> None:
    """Log an action. `details` become fields of a JSON line."""
    line = f"{text} by {actor or 'an unnamed actor'}"
    _log.info(line, extra={"action": action, "actor": actor, **details})
