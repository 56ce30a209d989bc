"""What was said in a stored conversation, as a history of facts."""

from __future__ import annotations

from django.db.models import QuerySet
from django.db.models.functions import Length

from chatmemory.conf import configuration, fact_words
from chatmemory.core.estimators import estimator_for, family_named, is_known
from chatmemory.core.messages import ChatMessage
from chatmemory.core.recall.facts import History, history_from
from chatmemory.ledger.adding import counter
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message, Step
from chatmemory.queries.history import said_by


@one_snapshot()
def said_with_history(
    memory_id: str,
    estimator: str | None = None,
    latest: int | None = None,
    characters: int | None = None,
) -> tuple[list[ChatMessage], History]:
    """Return what was said in a conversation, counted by an estimator; by default its own.

    With `latest`, only so many messages, the last ones, and with `characters` as many of these as
    have no more together. The numbers of the history are seqs. Raises MemoryNotFound,
    UnknownEstimator.
    """
    memory = find_memory(memory_id)
    name = estimator or estimator_of(memory)
    said = said_by(memory_id, memory.last_seq)
    if characters is not None:
        said = said.filter(seq__gte=_first_within(said, latest, characters))
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


def _first_within(said: QuerySet[Message], latest: int | None, characters: int) -> int:
    """Return the seq of the first message behind which no more characters are stored."""
    first, left = 1, characters
    sizes = said.order_by("-seq").values_list("seq", Length("text") + Length("frame"))
    for seq, size in sizes[:latest].iterator():
        left -= size
        if left < 0:
            return first
        first = seq
    return first


def estimator_of(memory: Memory) -> str:
    """Return the conversation's estimator; that of the settings if it is not installed."""
    name = memory.policy_estimator
    return name if name and is_known(name) else configuration().ESTIMATOR


def _is_counted_by(memory: Memory, name: str) -> bool:
    """Return whether the stored numbers of tokens are all of this estimator's family."""
    steps = Step.objects.filter(memory=memory).values_list("policy_estimator", flat=True)
    return {family_named(each) for each in steps.distinct()} == {family_named(name)}
