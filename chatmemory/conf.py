"""Reads the CHATMEMORY settings of the project. No other module reads them.

CHATMEMORY = {
    "ESTIMATOR": "gpt-4o",
    "DEFAULT_POLICIES": {"support-": "token_window:4000"},
    "POLICIES": ["shop.memory.DayWindow"],
    "FORMATS": ["shop.transcripts.TICKET"],
    "ESTIMATORS": ["shop.tokens.LlamaEstimator"],
    "FACT_PREFIXES": ["INV-"],
    "PROVIDERS": ["openai", "anthropic:claude-opus-4-6"],
}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from chatmemory.exceptions import ChatMemoryError, InvalidValue, UnknownEstimator
from chatmemory.formats import FORMATS
from chatmemory.messages.estimators import ESTIMATORS, estimator_for
from chatmemory.recall.facts import Words
from chatmemory.registry import Registry
from chatmemory.settings_reader import (
    BYTES,
    Expected,
    is_list,
    is_text,
    read,
    setting,
    whole_number,
)
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, KINDS, Policy
from chatmemory.windows.written_policies import policy_from_text

PAGE_MAX = 200
HOURS_MAX = 87_600  # ten years
TOKEN_DAYS_MAX = 3650
WINDOW_MESSAGES_MAX, WINDOW_BYTES_MAX = 100_000, 2**30
MESSAGE_MAX = 16 * 2**20  # characters of a text, or bytes of media: no more than a window may hold

_PATHS = Expected(is_list, "a list of dotted paths")
_MESSAGES = whole_number(1, 10**6)
_WORDS = Expected(is_list, 'a list of texts such as ["INV-"]')
_POLICIES = Expected(
    lambda value: isinstance(value, Mapping),
    'a dictionary of policies by prefix such as {"support-": "token_window:4000"}',
)
_PROVIDERS = Expected(
    lambda value: value is None or is_list(value) or isinstance(value, Mapping),
    'a list such as ["openai", "anthropic:claude-opus-4-6"], or a dictionary of them by prefix',
)
_NAME = Expected(is_text, f'the name of an estimator such as "{DEFAULT_ESTIMATOR}"')


# Wide: people write these settings, each under its own name in CHATMEMORY.
@dataclass(frozen=True)
class Configuration:
    """The settings in CHATMEMORY and their defaults.

    - `ESTIMATOR` is the name of the estimator for conversations without a policy.
    - `PAGE_SIZE` is the number of rows on a page of the API if a request names no size. It is at
      most PAGE_MAX.
    - `IDEMPOTENCY_HOURS` is the number of hours for which the response to an Idempotency-Key is
      stored.
    - `TOKEN_DAYS` is the number of days after which a new API token expires by default; 0 means
      never.
    - `TEXT_CHARACTERS` is the maximum length of a text in a message. `MEDIA_BYTES` is the maximum
      size of the base64 text of an image, a sound, a video or a file.
    - `PUT_BYTES` is the maximum size of the body of a PUT request to the API. `POST_BYTES` is the
      maximum for all other methods.
    - `ADDED_MESSAGES` is the maximum number of messages that one request adds, each as a step.
      `LISTED_MESSAGES` is the maximum number of messages that one request of the API sets,
      simulates or measures.
    - `WINDOW_MESSAGES` is the maximum number of messages in a window. `WINDOW_BYTES` is the maximum
      size of their JSON. A change that exceeds a maximum is refused, but lowering a limit and
      clearing always work.
    - `FACT_TERMS` are words that count as facts although they may have no digit. `FACT_PREFIXES`
      are beginnings of facts, such as "INV-". `FACT_PATTERNS` are regular expressions that find
      facts.
    - `REPEATABLE_TOOLS` are tools whose repeated calls are no incidents.
    - `REMINDERS` are phrases by which users say that they repeat themselves, such as "as I said".
      They are added to the phrases in recall/phrases.toml.
    - `REQUESTS` are phrases by which assistants ask for the fact that is named next, such as
      "please send me". They are added to the phrases in recall/phrases.toml.
    - `DEFAULT_POLICIES` are the policies of conversations that are created without a policy. Each
      key is a prefix of conversation ids.
    - `PROVIDERS` are the providers to which the conversations are sent, such as "openai". A name
      may have a model: "anthropic:claude-opus-4-6". The setting is a list, or a dictionary with a
      list for each prefix of conversation ids. If the setting is None, providers are chosen on a
      page.
    - `POLICIES`, `FORMATS` and `ESTIMATORS` are dotted paths of the project's own extensions.
    """

    ESTIMATOR: str = setting(DEFAULT_ESTIMATOR, _NAME)
    PAGE_SIZE: int = setting(50, whole_number(1, PAGE_MAX))
    IDEMPOTENCY_HOURS: int = setting(24, whole_number(1, HOURS_MAX))
    TOKEN_DAYS: int = setting(365, whole_number(0, TOKEN_DAYS_MAX))
    TEXT_CHARACTERS: int = setting(500_000, whole_number(1, MESSAGE_MAX))
    MEDIA_BYTES: int = setting(4 * 2**20, whole_number(1, MESSAGE_MAX))
    POST_BYTES: int = setting(2 * 2**20, BYTES)
    PUT_BYTES: int = setting(4 * 2**20, BYTES)
    ADDED_MESSAGES: int = setting(1_000, _MESSAGES)
    LISTED_MESSAGES: int = setting(10_000, _MESSAGES)
    WINDOW_MESSAGES: int = setting(10_000, whole_number(1, WINDOW_MESSAGES_MAX))
    WINDOW_BYTES: int = setting(16 * 2**20, whole_number(1, WINDOW_BYTES_MAX))
    DEFAULT_POLICIES: Mapping[str, str] = field(
        default_factory=dict, metadata={"expected": _POLICIES}
    )
    POLICIES: Sequence[str] = setting((), _PATHS)
    FORMATS: Sequence[str] = setting((), _PATHS)
    ESTIMATORS: Sequence[str] = setting((), _PATHS)
    FACT_TERMS: Sequence[str] = setting((), _WORDS)
    FACT_PREFIXES: Sequence[str] = setting((), _WORDS)
    FACT_PATTERNS: Sequence[str] = setting((), _WORDS)
    REPEATABLE_TOOLS: Sequence[str] = setting((), _WORDS)
    REMINDERS: Sequence[str] = setting((), _WORDS)
    REQUESTS: Sequence[str] = setting((), _WORDS)
    PROVIDERS: Sequence[str] | Mapping[str, Sequence[str]] | None = setting(None, _PROVIDERS)


@cache
def configuration() -> Configuration:
    """Return the settings with their defaults.

    Raises ImproperlyConfigured for unknown settings, and for values of a wrong type or range.
    """
    return read("CHATMEMORY", Configuration, '{"PAGE_SIZE": 50}')


def check_settings() -> None:
    """Raise ImproperlyConfigured for a mistake in the settings. Call this function after extensions
    are registered.
    """
    try:
        estimator_for(configuration().ESTIMATOR)
    except UnknownEstimator as error:
        raise _wrong(
            "ESTIMATOR", f"must name an estimator such as {DEFAULT_ESTIMATOR}: {error}"
        ) from error
    fact_words()
    configured_policies()


def _wrong(setting: str, why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f'CHATMEMORY["{setting}"] {why}')


def fact_words() -> Words:
    """Return the settings that add to the rules for facts and repetitions, such as FACT_PREFIXES.
    Raises ImproperlyConfigured for an invalid addition.
    """
    values = configuration()
    try:
        return Words(
            tuple(values.FACT_TERMS),
            tuple(values.FACT_PREFIXES),
            tuple(values.FACT_PATTERNS),
            tuple(values.REPEATABLE_TOOLS),
            tuple(each.lower() for each in values.REMINDERS),
            tuple(each.lower() for each in values.REQUESTS),
        )
    except InvalidValue as error:
        raise ImproperlyConfigured(f"CHATMEMORY: {error}") from error


@cache
def configured_policies() -> dict[str, Policy]:
    """Return the default policies from the settings, by prefix of conversation ids. Raises
    ImproperlyConfigured for an invalid prefix or policy.
    """
    policies = {}
    for prefix, text in configuration().DEFAULT_POLICIES.items():
        if not isinstance(prefix, str) or not isinstance(text, str):
            raise _wrong(
                "DEFAULT_POLICIES",
                f"has {prefix!r}: {text!r}, but prefix and policy must be strings",
            )
        try:
            policies[prefix] = policy_from_text(text)
        except ChatMemoryError as error:
            raise _wrong("DEFAULT_POLICIES", f"has {prefix!r}: {error}") from error
    return policies


def check_times_have_zones(**_: object) -> list[Error]:
    """Check, as a Django system check, that USE_TZ is set: times in the ledger are exact moments,
    not local times.
    """
    if settings.USE_TZ:
        return []
    return [Error("chatmemory needs USE_TZ = True in the settings.", id="chatmemory.E002")]


def _clear_cache(*, setting: str, **kwargs: object) -> None:
    if setting == "CHATMEMORY":
        configuration.cache_clear()
        configured_policies.cache_clear()


setting_changed.connect(_clear_cache)


# Policies, formats and estimators of the project


class _Extension(NamedTuple):
    registry: Registry[Any]  # one has classes, another estimators
    name_attribute: str
    expected: str


_EXTENSIONS = {
    "POLICIES": _Extension(KINDS, "kind", "a Policy class with a kind"),
    "FORMATS": _Extension(FORMATS, "name", "a Format with a name"),
    "ESTIMATORS": _Extension(ESTIMATORS, "name", "an estimator with a name"),
}


def register_extensions() -> None:
    """Register the policies, formats and estimators that the settings name.

    Raises ImproperlyConfigured for a path that cannot be imported, for a value of a wrong type, and
    for any other mistake in CHATMEMORY.
    """
    for key, extension in _EXTENSIONS.items():
        for path in getattr(configuration(), key):
            _register(key, path, extension)


def _register(key: str, path: str, extension: _Extension) -> None:
    subject = f"CHATMEMORY[{key!r}] names {path!r}"
    try:
        item = import_string(path)
    except (ImportError, AttributeError) as error:
        raise ImproperlyConfigured(f"{subject}, which cannot be imported: {error}") from error
    name = getattr(item, extension.name_attribute, None)
    if not extension.registry.accepts(item) or not isinstance(name, str) or not name:
        raise ImproperlyConfigured(f"{subject}, which is not {extension.expected}")
    extension.registry.register(name, item)
