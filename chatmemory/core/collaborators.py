"""The store and the estimator that a memory is given, checked when it is made."""

from __future__ import annotations

from chatmemory.core.estimators import TokenCountEstimator
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.given import brief
from chatmemory.core.store import ChatMemoryStore

_METHODS_OF_STORES = ("get_messages", "update_messages", "delete_messages")
_METHODS_OF_ESTIMATORS = ("estimate_token_count_in_message", "estimate_token_count_in_messages")


def estimator_or_none(given: TokenCountEstimator | None) -> TokenCountEstimator | None:
    """Return what is given if it can count tokens, or is None. Raises InvalidValue."""
    if isinstance(given, str):
        raise InvalidValue(
            f"estimator must be an object that counts tokens, not the name {given!r}: "
            f"use OpenAiTokenCountEstimator({given!r})"
        )
    _check_methods("estimator", given, _METHODS_OF_ESTIMATORS)
    return given


def store_or_none(given: ChatMemoryStore | None) -> ChatMemoryStore | None:
    """Return what is given if it has the methods of a store, or is None. Raises InvalidValue."""
    _check_methods("store", given, _METHODS_OF_STORES)
    return given


def _check_methods(what: str, given: object, names: tuple[str, ...]) -> None:
    if given is None:
        return
    if isinstance(given, type):
        raise InvalidValue(f"{what} must be an object, not the class: use {given.__name__}(…)")
    missing = [name for name in names if not callable(getattr(given, name, None))]
    if missing:
        raise InvalidValue(f"{what} has no method {missing[0]}: {brief(given)}")
