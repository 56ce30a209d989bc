"""Token count estimators by name, and the functions that count messages with them.

An estimator has the name of an OpenAI model, or a registered name. Projects and packages register a
factory, which makes an estimator from a name. There are three ways: the entry point group
"chatmemory.estimators", CHATMEMORY["ESTIMATORS"], and `ESTIMATORS.register`.

A factory registered as "words" is also called for names that begin with "words:", such as
"words:german".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol, runtime_checkable

from chatmemory.exceptions import InvalidValue, UnknownEstimator
from chatmemory.messages.estimators.openai import OpenAiTokenCountEstimator
from chatmemory.messages.message import ChatMessage
from chatmemory.patterns import declared_pattern
from chatmemory.registry import Registry

__all__ = [
    "ESTIMATORS",
    "OpenAiTokenCountEstimator",
    "TokenCountEstimator",
    "count_overhead",
    "count_tokens",
    "estimator_for",
    "family_named",
    "family_of",
    "is_known",
    "load",
    "must_load",
    "remember_tokens",
]


@runtime_checkable
class TokenCountEstimator(Protocol):
    """Counts the tokens of messages. This is LangChain4j's interface of the same name.

    - A count is an int, 0 or more.
    - Equal messages must always have equal counts.
    - Counts must add up: a list costs what an empty list costs, plus the counts of its messages.
    - `family` (str, optional): estimators with the same family count alike, and reuse each other's
      counts.
    - `model_name` (str, optional): the name by which `estimator_for` finds the estimator.
    """

    def estimate_token_count_in_text(self, text: str) -> int: ...

    def estimate_token_count_in_message(self, message: ChatMessage) -> int: ...

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int: ...


def family_of(estimator: TokenCountEstimator) -> str:
    """Return the `family` of an estimator: a name that estimators share if they count alike. An
    estimator without a family gets a name made from its class.
    """
    kind = type(estimator)
    return getattr(estimator, "family", None) or f"custom:{kind.__module__}.{kind.__qualname__}"


def count_tokens(estimator: TokenCountEstimator, message: ChatMessage) -> int:
    """Return the number of tokens of a message. The message object remembers this number.

    Estimators with the same `family` share the remembered number. An estimator without a `family`
    shares its number with no other estimator.

    Raises InvalidValue if the estimator returns an invalid number of tokens.
    """
    # An estimator may define equality or have no hash; it is kept beside its count, so that its id
    # stays its own
    key = getattr(estimator, "family", None) or id(estimator)
    known: dict[str | int, tuple[int, object]] = message.__dict__.setdefault("_tokens", {})
    if key not in known:
        counted = estimator.estimate_token_count_in_message(message)
        known[key] = _number_of_tokens(estimator, counted), estimator
    return known[key][0]


def count_overhead(estimator: TokenCountEstimator) -> int:
    """Return the tokens that a request costs in addition to its messages. Raises InvalidValue if
    the estimator returns an invalid number.
    """
    return _number_of_tokens(estimator, estimator.estimate_token_count_in_messages(()))


def _number_of_tokens(estimator: TokenCountEstimator, counted: object) -> int:
    """Return a count of an estimator. Raises InvalidValue for a count that a ledger cannot
    store.
    """
    if type(counted) is int and counted >= 0:
        return counted
    if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
        return int(counted)
    raise InvalidValue(
        "an estimator must return a whole number of tokens, 0 or more, but "
        f"{family_of(estimator)} returned: {counted!r:.60}"
    )


def remember_tokens(message: ChatMessage, family: str, tokens: int) -> None:
    """Store the token count of a message in the message object, for all estimators of this
    family.
    """
    message.__dict__.setdefault("_tokens", {})[family] = tokens, None


_PREFIXED = declared_pattern(r"[A-Za-z0-9][A-Za-z0-9.:/_-]{0,99}")


# Makes an estimator from the whole name, or raises UnknownEstimator for a name that it does not
# serve. A class whose constructor takes the name will do.
EstimatorFactory = Callable[[str], TokenCountEstimator]

ESTIMATORS: Registry[EstimatorFactory] = Registry("chatmemory.estimators", {}, accepts=callable)


class NamedEstimator:
    """A registered estimator, together with the name by which it was requested (`model_name`), such
    as "words:german".

    `family` is the `family` of the registered estimator, or else the requested name. Estimators of
    one family count alike.
    """

    def __init__(self, name: str, estimator: TokenCountEstimator) -> None:
        self.model_name = name
        self.family: str = getattr(estimator, "family", None) or name
        self._estimator = estimator

    def estimate_token_count_in_text(self, text: str) -> int:
        return self._estimator.estimate_token_count_in_text(text)

    def estimate_token_count_in_message(self, message: ChatMessage) -> int:
        return self._estimator.estimate_token_count_in_message(message)

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int:
        return self._estimator.estimate_token_count_in_messages(messages)


def estimator_for(name: str) -> TokenCountEstimator:
    """Return the estimator registered under this name, or else the estimator of the OpenAI model
    with this name.

    Raises UnknownEstimator.
    """
    factory = _factory(name)
    return _openai(name) if factory is None else _cached_estimator(factory, name)


def _factory(name: str) -> EstimatorFactory | None:
    if not isinstance(name, str):
        return None
    prefix, colon, _ = name.partition(":")
    factory = ESTIMATORS.get(name)
    if factory is None and colon and _PREFIXED.fullmatch(name):
        return ESTIMATORS.get(prefix)
    return factory


# Bounded, because names come from clients. The factory is part of the key: if another one takes
# over a name, its estimators do, too.


@lru_cache(maxsize=256)
def _cached_estimator(factory: EstimatorFactory, name: str) -> TokenCountEstimator:
    return NamedEstimator(name, factory(name))


@lru_cache(maxsize=256)
def _openai(name: str) -> TokenCountEstimator:
    return OpenAiTokenCountEstimator(name)


def is_known(name: str) -> bool:
    """Return whether there is an estimator with this name, registered or of an OpenAI model."""
    try:
        estimator_for(name)
    except UnknownEstimator:
        return False
    return True


def must_load(name: str) -> bool:
    """Return whether counting with this estimator must first load an encoding, which takes up to
    half a second.
    """
    try:
        estimator = estimator_for(name)
    except UnknownEstimator:
        return False
    return isinstance(estimator, OpenAiTokenCountEstimator) and not estimator.is_loaded


def load(name: str) -> None:
    """Load the encoding of the estimator with this name, which takes up to half a second. Raises
    UnknownEstimator.
    """
    estimator_for(name).estimate_token_count_in_text("one")


def family_named(name: str) -> str:
    """Return the family of the estimator with this name. Estimators of one family count alike.

    An unknown name is returned unchanged, so that a conversation can be read even if its estimator
    is no longer installed.
    """
    try:
        return family_of(estimator_for(name))
    except UnknownEstimator:
        return name
