"""The port through which messages are counted, and counting each message once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import ChatMessage


@runtime_checkable
class TokenCountEstimator(Protocol):
    """Counts tokens; LangChain4j's interface of that name.

    - A count is an int, 0 or more.
    - Equal messages must always count the same.
    - It must be additive: a list costs what an empty list costs, plus the sum of its messages.
    - An optional attribute `family` (str) names all estimators that count alike; numbers counted by
      one of a family are reused by the others.
    - An optional attribute `model_name` (str) is the name by which `estimator_for` finds it.
    """

    def estimate_token_count_in_text(self, text: str) -> int: ...

    def estimate_token_count_in_message(self, message: ChatMessage) -> int: ...

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int: ...


def family_of(estimator: TokenCountEstimator) -> str:
    """Return the `family` of an estimator, else a name made of its class."""
    kind = type(estimator)
    return getattr(estimator, "family", None) or f"custom:{kind.__module__}.{kind.__qualname__}"


class _Itself:
    """A key that stands for one estimator.

    Keys are equal for the same object only, since an estimator may define equality or have no hash.
    The reference keeps the estimator alive, so that no other object takes its id.
    """

    def __init__(self, estimator: TokenCountEstimator) -> None:
        self.estimator = estimator

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.estimator is other.estimator

    def __hash__(self) -> int:
        return id(self.estimator)


def count_tokens(estimator: TokenCountEstimator, message: ChatMessage) -> int:
    """Return the message's tokens, counted once per family and remembered on the message.

    Estimators without a `family` do not share counts. Errors are not remembered. Raises
    InvalidValue if the estimator returns no number of tokens.
    """
    key = getattr(estimator, "family", None) or _Itself(estimator)
    known: dict[object, int] = message.__dict__.setdefault("_tokens", {})
    if key not in known:
        counted = estimator.estimate_token_count_in_message(message)
        known[key] = _number_of_tokens(estimator, counted)
    return known[key]


def count_overhead(estimator: TokenCountEstimator) -> int:
    """Return what an empty list costs. Raises InvalidValue if it is no number of tokens."""
    return _number_of_tokens(estimator, estimator.estimate_token_count_in_messages(()))


def _number_of_tokens(estimator: TokenCountEstimator, counted: object) -> int:
    """Return what an estimator counted if a ledger can hold it. Raises InvalidValue."""
    if type(counted) is int and counted >= 0:
        return counted
    if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
        return int(counted)
    raise InvalidValue(
        "an estimator must return a whole number of tokens, 0 or more, but "
        f"{family_of(estimator)} returned: {counted!r:.60}"
    )


def remember_tokens(message: ChatMessage, family: str, tokens: int) -> None:
    """Give a message the tokens that a family has counted for it before."""
    message.__dict__.setdefault("_tokens", {})[family] = tokens
