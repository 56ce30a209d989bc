"""The project's CHATMEMORY settings: the only module that reads them.

CHATMEMORY = {"ESTIMATOR": "gpt-4o"}
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from chatmemory.core.policies import DEFAULT_ESTIMATOR


@dataclass(frozen=True)
class Configuration:
    """`ESTIMATOR` counts tokens where no policy names another; `PAGE_SIZE` rows make a page."""

    ESTIMATOR: str = DEFAULT_ESTIMATOR
    PAGE_SIZE: int = 50


@cache
def configuration() -> Configuration:
    """The settings as given, defaults for the rest. Raises ImproperlyConfigured for unknown
    ones.
    """
    given: dict[str, Any] = getattr(settings, "CHATMEMORY", {})
    unknown = set(given) - {field.name for field in fields(Configuration)}
    if unknown:
        raise ImproperlyConfigured(f"CHATMEMORY has no setting {', '.join(sorted(unknown))}")
    return Configuration(**given)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CHATMEMORY":
        configuration.cache_clear()


setting_changed.connect(_forget)
