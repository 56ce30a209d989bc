"""The CHATMEMORY settings of the project. No other module reads them.

CHATMEMORY = {
    "ESTIMATOR": "gpt-4o",
    "DEFAULT_POLICIES": {"support-": "token_window:4000"},
    "POLICIES": ["shop.memory.DayWindow"],
    "FORMATS": ["shop.transcripts.TICKET"],
    "ESTIMATORS": ["shop.tokens.LlamaEstimator"],
    "FACT_PREFIXES": ["INV-"],
}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from chatmemory.core.estimators import ESTIMATORS
from chatmemory.core.exceptions import ChatMemoryError, InvalidValue
from chatmemory.core.policies import DEFAULT_ESTIMATOR, KINDS, Policy
from chatmemory.core.recall.facts import Words
from chatmemory.core.registry import Registry
from chatmemory.core.written_policies import policy_from_text
from chatmemory.formats import FORMATS


@dataclass(frozen=True)
class Configuration:
    """The settings and their defaults.

    - `ESTIMATOR` is the token count estimator of conversations without a policy.
    - `PAGE_SIZE` is the number of rows on a page.
    - `IDEMPOTENCY_HOURS` is the time for which the response to an Idempotency-Key is stored.
    - `REDIS_URL` is a Redis in which requests are counted instead of in the database.
    - `FACT_TERMS` and `FACT_PREFIXES` are words that recall takes for facts although they may hold
      no digit: terms as a whole, and prefixes with what follows them.
    - `DEFAULT_POLICIES` are those of conversations that are created without a policy, by prefixes
      of their ids.
    - `POLICIES`, `FORMATS` and `ESTIMATORS` are dotted paths of the project's own ones.
    """

    ESTIMATOR: str = DEFAULT_ESTIMATOR
    PAGE_SIZE: int = 50
    IDEMPOTENCY_HOURS: int = 24
    REDIS_URL: str = ""
    DEFAULT_POLICIES: Mapping[str, str] = field(default_factory=dict)
    POLICIES: Sequence[str] = ()
    FORMATS: Sequence[str] = ()
    ESTIMATORS: Sequence[str] = ()
    FACT_TERMS: Sequence[str] = ()
    FACT_PREFIXES: Sequence[str] = ()


@cache
def configuration() -> Configuration:
    """Return the settings with their defaults. Raises ImproperlyConfigured for unknown settings."""
    given: dict[str, Any] = getattr(settings, "CHATMEMORY", {})
    unknown = set(given) - {field.name for field in fields(Configuration)}
    if unknown:
        raise ImproperlyConfigured(f"CHATMEMORY has no setting {', '.join(sorted(unknown))}")
    return Configuration(**given)


def fact_words() -> Words:
    """Return the project's words that are facts. Raises ImproperlyConfigured."""
    given = configuration()
    for setting in ("FACT_TERMS", "FACT_PREFIXES"):
        words = getattr(given, setting)
        if isinstance(words, str) or not isinstance(words, Sequence):
            raise ImproperlyConfigured(f"CHATMEMORY[{setting!r}] must be a list of texts")
    try:
        return Words(tuple(given.FACT_TERMS), tuple(given.FACT_PREFIXES))
    except InvalidValue as error:
        raise ImproperlyConfigured(f"CHATMEMORY: {error}") from error


@cache
def configured_policies() -> dict[str, Policy]:
    """Return the default policies of the settings by prefix. Raises ImproperlyConfigured."""
    given = configuration().DEFAULT_POLICIES
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(
            'CHATMEMORY["DEFAULT_POLICIES"] must have policies by prefix, such as '
            '{"support-": "token_window:4000"}'
        )
    policies = {}
    for prefix, text in given.items():
        if not isinstance(prefix, str) or not isinstance(text, str):
            raise ImproperlyConfigured(
                f'CHATMEMORY["DEFAULT_POLICIES"] has {prefix!r}: {text!r}: both must be text'
            )
        try:
            policies[prefix] = policy_from_text(text)
        except ChatMemoryError as error:
            raise ImproperlyConfigured(
                f'CHATMEMORY["DEFAULT_POLICIES"] has {prefix!r}: {error}'
            ) from error
    return policies


def body_max() -> int | None:
    """Return Django's limit for the size of a request in bytes; None for no limit."""
    limit: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return limit


def check_times_have_zones(**_: Any) -> list[Error]:
    """A system check: the ledger's times are moments, not local times."""
    if settings.USE_TZ:
        return []
    return [Error("chatmemory needs USE_TZ = True in the settings.", id="chatmemory.E002")]


def _clear_cache(*, setting: str, **kwargs: Any) -> None:
    if setting == "CHATMEMORY":
        configuration.cache_clear()
        configured_policies.cache_clear()


setting_changed.connect(_clear_cache)


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

    Raises ImproperlyConfigured for a path that cannot be imported, and for an item of another type.
    """
    for setting, extension in _EXTENSIONS.items():
        paths = getattr(configuration(), setting)
        if isinstance(paths, str) or not isinstance(paths, Sequence):
            raise ImproperlyConfigured(f"CHATMEMORY[{setting!r}] must be a list of dotted paths")
        for path in paths:
            _register(setting, path, extension)


def _register(setting: str, path: str, extension: _Extension) -> None:
    subject = f"CHATMEMORY[{setting!r}] names {path!r}"
    try:
        item = import_string(path)
    except (ImportError, AttributeError) as error:
        raise ImproperlyConfigured(f"{subject}, which cannot be imported: {error}") from error
    name = getattr(item, extension.name_attribute, None)
    if not extension.registry.accepts(item) or not isinstance(name, str) or not name:
        raise ImproperlyConfigured(f"{subject}, which is not {extension.expected}")
    extension.registry.register(name, item)
