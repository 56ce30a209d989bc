"""Who did what: a line of the log `chatmemory.audit` for each, without a word of a message."""

from __future__ import annotations

import logging

from django.db import transaction

_log = logging.getLogger("chatmemory.audit")


def log(words: str, *, action: str, actor: str, **details: str | int) -> None:
    """Log once what was done is committed. `details` become fields of a JSON line."""
    line = f"{words} by {actor or 'nobody named'}"
    extra = {"action": action, "actor": actor, **details}
    transaction.on_commit(lambda: _log.info(line, extra=extra), robust=True)
