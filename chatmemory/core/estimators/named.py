"""Estimators by name: OpenAI's models, and whatever a project or a package registers.

Register a factory of your own in the entry point group "chatmemory.estimators", in
CHATMEMORY["ESTIMATORS"], or by `ESTIMATORS.register`. A factory registered as "words" makes the
estimators named "words" and "words:anything".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from chatmemory.core.estimators.counting import TokenCountEstimator, family_of
from chatmemory.core.estimators.openai import OpenAiTokenCountEstimator
from chatmemory.core.exceptions import UnknownEstimator
from chatmemory.core.messages import ChatMessage
from chatmemory.core.registry import Registry

# The part behind the colon comes from clients and is stored.
_PREFIXED = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:/_-]{0,99}")


# Makes an estimator of the whole name, or raises UnknownEstimator for one that it does not serve.
# A class whose constructor takes the name will do.
EstimatorFactory = Callable[[str], TokenCountEstimator]

ESTIMATORS: Registry[EstimatorFactory] = Registry("chatmemory.estimators", {}, accepts=callable)


class NamedEstimator:
    """A registered estimator under the name by which it was asked for.

    Its family is the estimator's own, else the name: estimators of one class may count differently
    under different names.
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
    """Return the estimator of a registered name, else that of the OpenAI model of this name.

    Raises UnknownEstimator.
    """
    factory = _factory(name)
    return _openai(name) if factory is None else _made(factory, name)


def _factory(name: str) -> EstimatorFactory | None:
    if not isinstance(name, str):
        return None
    prefix, colon, _ = name.partition(":")
    factory = ESTIMATORS.get(name)
    if factory is None and colon and _PREFIXED.fullmatch(name):
        return ESTIMATORS.get(prefix)
    return factory


# Bounded, because names come from clients. The factory is part of the key: when another one takes
# a name, its estimators do too.


@lru_cache(maxsize=256)
def _made(factory: EstimatorFactory, name: str) -> TokenCountEstimator:
    return NamedEstimator(name, factory(name))


@lru_cache(maxsize=256)
def _openai(name: str) -> TokenCountEstimator:
    return OpenAiTokenCountEstimator(name)


def is_known(name: str) -> bool:
    """Return whether `estimator_for` finds an estimator of that name."""
    try:
        estimator_for(name)
    except UnknownEstimator:
        return False
    return True


def family_named(name: str) -> str:
    """Return the family of the estimator of that name.

    A name that is unknown here is a family of its own, so that a conversation counted by an
    estimator that is no longer installed can still be read.
    """
    try:
        return family_of(estimator_for(name))
    except UnknownEstimator:
        return name
