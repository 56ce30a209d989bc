"""Token counts by a conversation's estimator, made before the lock and kept with the message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from chatmemory.conf import configuration
from chatmemory.core.estimators import (
    ESTIMATORS,
    count_tokens,
    estimator_for,
    family_named,
    is_known,
)
from chatmemory.core.exceptions import EstimatorUnavailable, MemoryNotFound, UnknownEstimator
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.policies import Policy
from chatmemory.core.window import Entry
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_window import stored_window
from chatmemory.models import Memory

SHORT = 2_000  # characters


def counter(estimator_name: str) -> Callable[[ChatMessage], int]:
    """Return a function that counts a message's tokens. Raises UnknownEstimator."""
    estimator = estimator_for(estimator_name)
    return lambda message: count_tokens(estimator, message)


def count_all(messages: Iterable[ChatMessage], estimator_name: str) -> None:
    """Count messages, before anything is locked. Each message keeps its count.

    Raises UnknownEstimator, UnsupportedMessage.
    """
    count = counter(estimator_name)
    for message in messages:
        count(message)


def counted_entries(memory: Memory, messages: Iterable[ChatMessage]) -> list[Entry]:
    """Return entries counted by the conversation's estimator, with the counts of `count_ahead`.

    Raises EstimatorUnavailable.
    """
    try:
        count = counter(memory.policy_estimator)
    except UnknownEstimator as error:
        raise EstimatorUnavailable(memory.pk, memory.policy_estimator) from error
    return [Entry.of(message, count(message)) for message in messages]


def count_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> str | None:
    """Count messages outside the lock, because counting is slow. Each message keeps its count.

    If the policy's estimator changes before the lock is taken, the messages are counted again.
    Return the name of the conversation's estimator; None for an unknown id.
    """
    names = Memory.objects.filter(pk=memory_id).values_list("policy_estimator", flat=True)
    name = next(iter(names), None)
    count_all(messages, name if name and is_known(name) else configuration().ESTIMATOR)
    return name


def is_counted_quickly(messages: Iterable[ChatMessage]) -> bool:
    """Return whether counting takes less time than to ask first which estimator counts.

    It does for short texts, and if there are no estimators but our own.
    """
    return not ESTIMATORS and sum(len(text_of(each)) for each in messages) <= SHORT


@dataclass(frozen=True)
class Recount:
    """A window with its messages, which another estimator has counted before the lock.

    `memory` is the conversation's row as it was then.
    """

    memory: Memory
    entries: Sequence[Entry]

    @classmethod
    def ahead(cls, memory_id: str, estimator_name: str) -> Recount | None:
        """Count a window; None if its tokens can stay, or if there is no such conversation."""
        try:
            with one_snapshot():
                memory = find_memory(memory_id)
                if family_named(estimator_name) == family_named(memory.policy_estimator):
                    return None
                recount = cls(memory, stored_window(memory).with_messages())
        except MemoryNotFound:
            return None
        count_all(filter(None, (entry.message for entry in recount.entries)), estimator_name)
        return recount

    def put_into(self, recorder: Recorder) -> None:
        """Give the messages to the recorder's window, unless it was changed meanwhile."""
        seen, memory = self.memory, recorder.memory
        if (seen.created_at, seen.last_step) == (memory.created_at, memory.last_step):
            recorder.window.refill(self.entries)


def change_policy(recorder: Recorder, policy: Policy, recount: Recount | None = None) -> None:
    """Count the window by the policy's estimator and put the policy in force."""
    if recount is not None:
        recount.put_into(recorder)
    recorder.window.count_with(family_named(policy.estimator), counter(policy.estimator))
    recorder.set_policy(policy)


def ensure_countable(recorder: Recorder, recount: Recount | None = None) -> None:
    """Remove a policy whose estimator is not installed, so that the client decides.

    A list from the client is stored even then. The next memory with that estimator puts its policy
    back in force.
    """
    name, default = recorder.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        if recount is not None:
            recount.put_into(recorder)
        recorder.window.count_with(family_named(default), counter(default))
        recorder.set_policy(None, estimator=default, note=f"{name} is not installed")
