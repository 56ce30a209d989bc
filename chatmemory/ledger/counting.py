"""Tokens by a conversation's own estimator: counted before the lock, and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chatmemory.conf import configuration
from chatmemory.core.estimators import count_tokens, estimator_for, family_named, is_known
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.window import Entry
from chatmemory.ledger.recorder import Recorder
from chatmemory.models import Memory


def counter(estimator_name: str) -> Callable[[ChatMessage], int]:
    """A function that counts a message's tokens. Raises UnknownEstimator."""
    estimator = estimator_for(estimator_name)
    return lambda message: count_tokens(estimator, message)


def counted_entries(memory: Memory, messages: Iterable[ChatMessage]) -> list[Entry]:
    """Entries counted by the conversation's estimator; counts made ahead of the lock are reused."""
    count = counter(memory.policy_estimator)
    return [Entry.of(message, count(message)) for message in messages]


def count_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> None:
    """Tokenise outside the lock. If the policy changes in between, the tokens are counted again."""
    names = Memory.objects.filter(pk=memory_id).values_list("policy_estimator", flat=True)
    name = names.first()
    count = counter(name if name and is_known(name) else configuration().ESTIMATOR)
    for message in messages:
        count(message)


def change_policy(recorder: Recorder, policy: Policy) -> None:
    """Count the window as a policy counts, then put the policy in force."""
    count = counter(policy.estimator)
    recorder.window.count_with(family_named(policy.estimator), count)
    recorder.set_policy(policy)


def ensure_countable(recorder: Recorder) -> None:
    """Let the client decide where this server cannot count as the policy does.

    A list from the client is kept even where a custom estimator, and so the policy, is unknown. A
    memory with that estimator puts its policy back in force.
    """
    name, ours = recorder.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        recorder.window.count_with(family_named(ours), counter(ours))
        recorder.set_policy(None, estimator=ours, note=f"{name} cannot count here")
