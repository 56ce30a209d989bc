"""The INSPECTOR settings of the project. No other module reads them.

INSPECTOR = {"METRICS_TOKEN": "…"}
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True)
class Configuration:
    """The settings and their defaults.

    - `METRICS_TOKEN` is the bearer token of the metrics; without one, only this machine reads them.
    - `DISK_FREE_MB` is the free space below which `readyz` tells of a full disk.
    - `TRACES` sends traces, with the extra `otel`.
    - `LESSONS` is a folder of lessons of one's own (docs/lessons.md).
    - `MANAGE` is how commands are typed, as pages tell it.
    - `WHOLE_SITE` says that every page of the project is the inspector's: all need an account,
      and have its headers, log lines, metrics and pages for errors.
    """

    METRICS_TOKEN: str = ""
    DISK_FREE_MB: int = 100
    TRACES: bool = False
    LESSONS: str = ""
    MANAGE: str = "python manage.py"
    WHOLE_SITE: bool = False


@cache
def configuration() -> Configuration:
    """Return the settings with their defaults. Raises ImproperlyConfigured for unknown settings."""
    given: dict[str, Any] = getattr(settings, "INSPECTOR", {})
    unknown = set(given) - {field.name for field in fields(Configuration)}
    if unknown:
        raise ImproperlyConfigured(f"INSPECTOR has no setting {', '.join(sorted(unknown))}")
    return Configuration(**given)


def _clear_cache(*, setting: str, **kwargs: Any) -> None:
    if setting == "INSPECTOR":
        configuration.cache_clear()


setting_changed.connect(_clear_cache)
