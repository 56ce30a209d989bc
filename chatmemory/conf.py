"""The project's CHATMEMORY settings: the only module that reads them.

CHATMEMORY = {
    "ESTIMATOR": "gpt-4o",
    "POLICIES": ["shop.memory.DayWindow"],
    "FORMATS": ["shop.transcripts.TICKET"],
    "ESTIMATORS": ["shop.tokens.LlamaEstimator"],
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from chatmemory.core.estimators import ESTIMATORS
from chatmemory.core.policies import DEFAULT_ESTIMATOR, KINDS
from chatmemory.core.registry import Registry
from chatmemory.formats import FORMATS


@dataclass(frozen=True)
class Configuration:
    """The settings and their defaults.

    - `ESTIMATOR` counts tokens where no policy names another.
    - `PAGE_SIZE` is how many rows a page has.
    - `IDEMPOTENCY_HOURS` is how long the answer to a request with an Idempotency-Key is kept.
    - `POLICIES`, `FORMATS` and `ESTIMATORS` are the dotted paths of what the project adds.
    """

    ESTIMATOR: str = DEFAULT_ESTIMATOR
    PAGE_SIZE: int = 50
    IDEMPOTENCY_HOURS: int = 24
    POLICIES: Sequence[str] = ()
    FORMATS: Sequence[str] = ()
    ESTIMATORS: Sequence[str] = ()


@cache
def configuration() -> Configuration:
    """Return the settings, with defaults for those that are not given.

    Raises ImproperlyConfigured for unknown ones.
    """
    given: dict[str, Any] = getattr(settings, "CHATMEMORY", {})
    unknown = set(given) - {field.name for field in fields(Configuration)}
    if unknown:
        raise ImproperlyConfigured(f"CHATMEMORY has no setting {', '.join(sorted(unknown))}")
    return Configuration(**given)


def body_max() -> int | None:
    """Return the most bytes that a request may have (Django's own setting); None for any size."""
    most: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return most


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CHATMEMORY":
        configuration.cache_clear()


setting_changed.connect(_forget)


# Policies, formats and estimators of the project


class _Extension(NamedTuple):
    registry: Registry[Any]
    name_attribute: str
    expected: str


_EXTENSIONS = {
    "POLICIES": _Extension(KINDS, "kind", "a Policy class with a kind"),
    "FORMATS": _Extension(FORMATS, "name", "a Format with a name"),
    "ESTIMATORS": _Extension(ESTIMATORS, "name", "an estimator with a name"),
}


def register_extensions() -> None:
    """Register the policies, formats and estimators that the settings name.

    Raises ImproperlyConfigured for a path that cannot be imported or leads to something else.
    """
    for setting, extension in _EXTENSIONS.items():
        paths = getattr(configuration(), setting)
        if isinstance(paths, str) or not isinstance(paths, Sequence):
            raise ImproperlyConfigured(f"CHATMEMORY[{setting!r}] must be a list of dotted paths")
        for path in paths:
            _register(setting, path, extension)


def _register(setting: str, path: str, extension: _Extension) -> None:
    named = f"CHATMEMORY[{setting!r}] names {path!r}"
    try:
        item = import_string(path)
    except (ImportError, AttributeError) as error:
        raise ImproperlyConfigured(f"{named}, which cannot be imported: {error}") from error
    name = getattr(item, extension.name_attribute, None)
    if not extension.registry.accepts(item) or not isinstance(name, str) or not name:
        raise ImproperlyConfigured(f"{named}, which is not {extension.expected}")
    extension.registry.register(name, item)
