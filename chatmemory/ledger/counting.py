"""Token counts by a conversation's estimator, made before the lock and kept with the message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import QuerySet

from chatmemory.conf import configuration
from chatmemory.core.estimators import (
    ESTIMATORS,
    count_tokens,
    estimator_for,
    family_named,
    is_known,
)
from chatmemory.core.exceptions import EstimatorUnavailable, UnknownEstimator
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.policies import Policy
from chatmemory.core.window import Entry
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.statements import Compiled
from chatmemory.models import Memory

SHORT = 2_000  # characters


@Compiled
def _estimators(memory_id: str) -> QuerySet[Memory, Any]:
    row: QuerySet[Memory] = Memory.objects.filter(pk=memory_id)
    return row.values_list("policy_estimator", named=True)


def counter(estimator_name: str) -> Callable[[ChatMessage], int]:
    """Return a function that counts a message's tokens. Raises UnknownEstimator."""
    estimator = estimator_for(estimator_name)
    return lambda message: count_tokens(estimator, message)


def counted_entries(memory: Memory, messages: Iterable[ChatMessage]) -> list[Entry]:
    """Return entries counted by the conversation's estimator, with the counts of `count_ahead`.

    Raises EstimatorUnavailable.
    """
    try:
        count = counter(memory.policy_estimator)
    except UnknownEstimator as error:
        raise EstimatorUnavailable(memory.pk, memory.policy_estimator) from error
    return [Entry.of(message, count(message)) for message in messages]


def count_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> bool:
    """Count messages outside the lock, because counting is slow. Each message keeps its count.

    If the policy's estimator changes before the lock is taken, the messages are counted again.
    Return whether the conversation exists.
    """
    name = next((row.policy_estimator for row in _estimators(memory_id)), None)
    count = counter(name if name and is_known(name) else configuration().ESTIMATOR)
    for message in messages:
        count(message)
    return name is not None


def is_counted_quickly(messages: Iterable[ChatMessage]) -> bool:
    """Return whether counting takes less time than to ask first which estimator counts.

    It does for short texts, and if there are no estimators but our own.
    """
    return not ESTIMATORS and sum(len(text_of(each)) for each in messages) <= SHORT


def change_policy(recorder: Recorder, policy: Policy) -> None:
    """Count the window by the policy's estimator and put the policy in force."""
    count = counter(policy.estimator)
    recorder.window.count_with(family_named(policy.estimator), count)
    recorder.set_policy(policy)


def ensure_countable(recorder: Recorder) -> None:
    """Remove a policy whose estimator is not installed, so that the client decides.

    A list from the client is stored even then. The next memory with that estimator puts its policy
    back in force.
    """
    name, default = recorder.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        recorder.window.count_with(family_named(default), counter(default))
        recorder.set_policy(None, estimator=default, note=f"{name} is not installed")
