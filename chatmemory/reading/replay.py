"""Reads the history as entries for a replay. An entry is a message with its token count."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from chatmemory.ledger.adding import counter
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import TYPES, ChatMessage, MessageType
from chatmemory.models import Message, Stay, Step
from chatmemory.reading.history import messages_until, read_for_replay
from chatmemory.reading.rows import MessageDetail
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Entry

READ_AT_ONCE = 20_000  # the most messages that a page replays on its own
_PAIRED = (MessageType.TOOL_EXECUTION_RESULT, MessageType.SYSTEM)


def changes_until(step: Step) -> tuple[set[str], bool]:
    """Return two values about the steps up to `step`: their kinds, such as `add`, and a bool. The
    bool is True if the steps have estimators that count tokens differently from each other.
    """
    steps = Step.objects.filter(memory_id=step.memory_id, n__lte=step.n)
    changes = set(steps.values_list("kind", "policy_estimator").distinct())
    families = {family_named(name) for _, name in changes}
    return {kind for kind, _ in changes}, len(families) > 1


def first_that_counts(row: MessageDetail) -> int:
    """Return the seq of the message at which a replay must begin to show how long the message `row`
    stays in memory. The policy of the replay must evict the oldest messages first.

    - For a tool result: the last earlier message that is neither a tool result nor a system
      message, usually its tool call.
    - For any other message, or if there is no such earlier message: the message itself.
    """
    if row.type is not MessageType.TOOL_EXECUTION_RESULT:
        return row.seq
    before = messages_until(row.memory_id, row.seq).exclude(type__in=_PAIRED).order_by("-seq")
    return before.values_list("seq", flat=True).first() or row.seq


def entries_of(memory_id: str, seqs: range, policy: Policy, is_recounted: bool) -> list[Entry]:
    """Return the entries of the messages `seqs` for a replay. The last system message before `seqs`
    comes first, if there is one.

    With `is_recounted`, the policy's estimator counts the tokens. Otherwise, and for redacted
    messages, the stored counts are used.
    """
    first, last = seqs.start, seqs.stop - 1
    systems = _system_messages(memory_id, first, last)
    stays = Stay.objects.filter(memory_id=memory_id, seq__gte=first, seq__lte=last)
    calling = set(stays.filter(has_calls=True).values_list("seq", flat=True))
    history = messages_until(memory_id, last).order_by("seq")
    history = history.filter(Q(seq__gte=first) | Q(seq=min(systems, default=first)))
    messages = systems | read_for_replay(history, calling, policy)
    facts = (
        _recounted(history, policy)
        if is_recounted
        else history.values_list("seq", "type", "tokens").iterator(READ_AT_ONCE)
    )
    return [
        Entry(TYPES[type], seq in calling, tokens, messages.get(seq), seq=seq)
        for seq, type, tokens in facts
    ]


def _system_messages(memory_id: str, first: int, last: int) -> dict[int, ChatMessage]:
    """Return the system messages from `first` to `last`, and the last system message before
    `first`, by seq.
    """
    stays = Stay.objects.filter(memory_id=memory_id, type=MessageType.SYSTEM)
    stays = stays.filter(seq__lte=last, message__origin=Message.Origin.SAID)
    before = stays.filter(seq__lt=first).order_by("-seq").values("seq")[:1]
    found = stays.filter(Q(seq__gte=first) | Q(seq__in=before)).select_related("message")
    return {stay.seq: read_message(stay.message) for stay in found}


def _recounted(history: QuerySet[Message], policy: Policy) -> Iterator[tuple[int, str, int]]:
    """Yield seq, type and tokens of messages, counted by the policy's estimator. Redacted messages
    keep their stored count.
    """
    count = counter(policy.estimator)
    for row in history.iterator(2_000):
        yield row.seq, row.type, row.tokens if row.redacted_step else count(read_message(row))
