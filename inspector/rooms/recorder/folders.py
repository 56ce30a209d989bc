"""The "spool": the folder of recorded calls that are not yet in the database."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings


def spool_folder() -> Path:
    """Return the folder of recorded calls that are not yet in the database. It is in the site's
    data folder.
    """
    var = getattr(settings, "VAR", None) if settings.configured else None
    return Path(var or Path.home() / ".local/share/chatmemory") / "calls"
