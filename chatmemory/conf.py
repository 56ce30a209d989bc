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
    """`ESTIMATOR` counts tokens where no policy names another; `PAGE_SIZE` rows make a page;
    answers to requests with an Idempotency-Key are kept for `IDEMPOTENCY_HOURS`.
    """

    ESTIMATOR: str = DEFAULT_ESTIMATOR
    PAGE_SIZE: int = 50
    IDEMPOTENCY_HOURS: int = 24


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


def body_max() -> int | None:
    """How many bytes a request may have (Django's own setting); None where the project sets no
    bound.
    """
    most: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return most


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CHATMEMORY":
        configuration.cache_clear()


setting_changed.connect(_forget)
