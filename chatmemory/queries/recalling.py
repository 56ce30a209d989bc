"""Histories of stored conversations as recall reads them, and what policies would have held."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chatmemory.conf import configuration, fact_words
from chatmemory.core.estimators import estimator_for, family_named, is_known
from chatmemory.core.exceptions import InvalidValue, MemoryNotFound
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.recall import Recall, for_each_policy, recall_of
from chatmemory.core.recall.facts import History, history_from
from chatmemory.ledger.adding import counter
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Step
from chatmemory.queries.filters import MemoryFilter
from chatmemory.queries.history import said_by

READ_AT_ONCE = 20_000  # messages that an answer may replay


def recall_history(
    memory_id: str,
    estimator: str | None = None,
    *,
    latest: int | None = None,
    seqs: Collection[int] = (),
) -> History:
    """Return what was said in a conversation, counted by an estimator; by default its own.

    With `latest`, only so many messages, the last ones; with `seqs`, only these. Numbers are seqs.
    Raises MemoryNotFound, UnknownEstimator.
    """
    return said_with_history(memory_id, estimator, latest, seqs)[1]


@one_snapshot()
def said_with_history(
    memory_id: str,
    estimator: str | None = None,
    latest: int | None = None,
    seqs: Collection[int] = (),
) -> tuple[list[ChatMessage], History]:
    """Return the messages of `recall_history` with it."""
    memory = find_memory(memory_id)
    name = estimator or estimator_of(memory)
    said = said_by(memory_id, memory.last_seq)
    said = said.filter(seq__in=seqs) if seqs else said
    rows = list(said.order_by("-seq")[:latest])[::-1] if latest else list(said.order_by("seq"))
    messages = [read_message(row) for row in rows]
    count = None if _is_counted_by(memory, name) else counter(name)
    tokens = [
        count(message) if count and row.redacted_step is None else row.tokens
        for row, message in zip(rows, messages, strict=True)
    ]
    overhead = estimator_for(name).estimate_token_count_in_messages([])
    seqs = [row.seq for row in rows]
    return messages, history_from(messages, tokens, overhead, seqs, fact_words())


def estimator_of(memory: Memory) -> str:
    """Return the conversation's estimator; that of the settings if it is not installed."""
    name = memory.policy_estimator
    return name if name and is_known(name) else configuration().ESTIMATOR


def _is_counted_by(memory: Memory, name: str) -> bool:
    """Return whether the stored numbers of tokens are all of this estimator's family."""
    steps = Step.objects.filter(memory=memory).values_list("policy_estimator", flat=True)
    return {family_named(each) for each in steps.distinct()} == {family_named(name)}


def recall_of_stored(
    which: MemoryFilter, policies: Sequence[Policy | None], most: int | None = None
) -> list[Recall]:
    """Return what each policy would have held of the conversations that match a filter.

    Conversations are read one after the other; those that are deleted meanwhile are left out.
    Raises InvalidValue if there are more than `most` messages, and UnknownEstimator.
    """
    rows = which.rows().order_by("id").values_list("id", "said_count")
    if most is not None and (amount := sum(said for _, said in rows)) > most:
        raise InvalidValue(
            f"these conversations have {amount:,} messages, and an answer reads up to {most:,}: "
            "choose fewer, or use manage.py recall"
        )
    return sums((_histories(memory_id, policies) for memory_id, _ in rows.iterator()), policies)


def sums(
    conversations: Iterable[Sequence[History]], policies: Sequence[Policy | None]
) -> list[Recall]:
    """Return the sums over conversations, each given as one history for each policy."""
    found = [Recall(policy) for policy in policies]
    for histories in conversations:
        for place, history in enumerate(histories):
            found[place] = found[place].plus(recall_of(history, policies[place]))
    return found


def _histories(memory_id: str, policies: Sequence[Policy | None]) -> list[History]:
    try:
        return for_each_policy(policies, lambda name: recall_history(memory_id, name))
    except MemoryNotFound:
        return []
