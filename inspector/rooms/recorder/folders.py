"""The folder in which recorded calls wait to be stored in the database (the "spool")."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings


def spool_folder() -> Path:
    """Return the folder of calls that wait to be stored, in the data folder of the site."""
    var = getattr(settings, "VAR", None) if settings.configured else None
    return Path(var or Path.home() / ".local/share/chatmemory") / "calls"
