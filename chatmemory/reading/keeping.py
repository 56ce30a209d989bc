"""The limit that would have kept a message in memory, computed from the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q, QuerySet

from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.adding import counter
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import TYPES, ChatMessage, MessageType
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.history import messages_until, stubs_of
from chatmemory.reading.rows import MessageDetail
from chatmemory.reading.windows import MessageView, WindowView, view_of
from chatmemory.recall.comparison import MOST_FOLLOWED
from chatmemory.recall.incidents import Forgotten, Incident
from chatmemory.rooms import next_need
from chatmemory.windows.folding import fold
from chatmemory.windows.loads import MOST_ADDS, Keeping, evicts_oldest_first, smallest_limit
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry, Window

# The most messages that a page replays on its own: with their stored token counts, and counted
# again because the conversation changed its estimator.
READ_AT_ONCE = 20_000
COUNTED_AT_ONCE = 500
_PAIRED = (MessageType.TOOL_EXECUTION_RESULT, MessageType.SYSTEM)


@dataclass(frozen=True)
class WhatWouldKeep:
    """The limit that, if in force from the start, would have kept a message in memory until it was
    next needed, just before message `needed.again`, or else until `step`. `fact` is the part of it
    that had been forgotten.

    The history had `said_before` messages by then. Whether the message was needed later is known up
    to step `known_until`, or not at all if this is None. `keeping` is None if it is unknown;
    `deferred` is then the number of messages to replay, if nobody has asked for the replay yet.
    `leaves_out_changes` is True if memory was cleared or set as a whole, and `leaves_out_pins` if
    messages were pinned: a replay of the history leaves both out.
    """

    seq: int
    step: int
    policy: Policy
    said_before: int
    needed: Incident | None = None
    fact: Forgotten | None = None
    known_until: int | None = None
    keeping: Keeping | None = None
    deferred: int = 0
    leaves_out_changes: bool = False
    leaves_out_pins: bool = False

    @property
    def is_within_limit(self) -> bool:
        """Whether the limit in force would be enough, if in force from the start and nothing
        pinned.
        """
        limit = self.keeping.limit if self.keeping else None
        return limit is not None and limit <= self.policy.limit


def find_what_would_keep(
    memory: Memory,
    step: Step,
    row: MessageDetail | None,
    left_by: ChangeResult | None,
    is_asked: bool,
    of_rooms: Mapping[str, str],
    read: dict[str, Any],
) -> WhatWouldKeep | None:
    """Return the limit that would have kept a message, which left for want of room, until it was
    next needed, or else until the step. Rooms know when it was needed.

    None if it left for another reason, if a client left it out, if it is synthetic, or if no
    installed policy is in force now. A limit that is only measured is replayed as if it were
    enforced. A long history is replayed only if `is_asked`. Rooms get their parameters `of_rooms`,
    and the values that they have `read` for the page.
    """
    if row is None or left_by is None or not _left_for_want_of_room(row, left_by):
        return None
    need = next_need(memory, row, left_by.step or 0, step.n, of_rooms, read)
    needed, fact, until = need or (None, None, None)
    step = find_step(memory, needed.step) if needed else step
    if not can_decide(step.policy):
        return None
    policy, last_seq = step.policy.enforced(), needed.again - 1 if needed else step.last_seq
    kinds, is_recounted = _changes_until(step)
    answer = WhatWouldKeep(
        row.seq,
        step.n,
        policy,
        said_before=step.said_count - (step.last_seq - last_seq),
        needed=needed,
        fact=fact,
        known_until=until,
        leaves_out_changes=not kinds.isdisjoint((Step.Kind.SET, Step.Kind.CLEAR)),
        leaves_out_pins=Step.Kind.PIN in kinds,
    )
    first = _first_that_counts(row) if evicts_oldest_first(policy) else 1
    amount = last_seq - first + 1
    if amount > (COUNTED_AT_ONCE if is_recounted else READ_AT_ONCE) and not is_asked:
        return replace(answer, deferred=amount)
    entries = _entries(step.memory_id, range(first, last_seq + 1), policy, is_recounted)
    return replace(answer, keeping=_limit_for(answer, entries))


def _limit_for(answer: WhatWouldKeep, entries: Sequence[Entry]) -> Keeping | None:
    """Return the limit that keeps the message to the end of a history."""
    position = next(i for i, entry in enumerate(entries) if entry.seq == answer.seq)
    most_adds = MOST_FOLLOWED if answer.needed else MOST_ADDS
    return smallest_limit(entries, position, answer.policy, most_adds)


def _changes_until(step: Step) -> tuple[set[str], bool]:
    """Return the kinds of the steps up to one, and whether several families counted."""
    steps = Step.objects.filter(memory_id=step.memory_id, n__lte=step.n)
    changes = set(steps.values_list("kind", "policy_estimator").distinct())
    families = {family_named(name) for _, name in changes}
    return {kind for kind, _ in changes}, len(families) > 1


def replayed_window(step: Step, limit: int) -> WindowView | None:
    """Return the window at a step as if a limit had been in force from the first message on.

    The history is replayed with nothing pinned. None if no policy decides the window. Raises
    InvalidValue for more than 20,000 messages, and for a limit that the policy cannot have.
    """
    in_force = step.policy
    if not can_decide(in_force):
        return None
    if step.last_seq > READ_AT_ONCE:
        raise InvalidValue(f"a replay reads up to {READ_AT_ONCE:,} messages")
    policy = replace(in_force.enforced(), limit=limit)
    _, is_recounted = _changes_until(step)
    entries = _entries(step.memory_id, range(1, step.last_seq + 1), policy, is_recounted)
    window = Window()
    for _ in fold(window, entries, policy):
        pass
    return view_of(step.n, policy, map(MessageView.of, window))


def _left_for_want_of_room(row: MessageDetail, left_by: ChangeResult) -> bool:
    if left_by.by_client or row.origin != Message.Origin.SAID:
        return False
    eviction = left_by.eviction_of(row.seq)
    return eviction is not None and eviction.reason.is_for_room


def _first_that_counts(row: MessageDetail) -> int:
    """Return the first message that can matter: for a tool result, the one before its run."""
    if row.type is not MessageType.TOOL_EXECUTION_RESULT:
        return row.seq
    before = messages_until(row.memory_id, row.seq).exclude(type__in=_PAIRED).order_by("-seq")
    return before.values_list("seq", flat=True).first() or row.seq


def _entries(memory_id: str, seqs: range, policy: Policy, is_recounted: bool) -> list[Entry]:
    """Return the entries of some messages, after the system message in force there.

    If they are recounted, the policy's estimator counts them again.
    """
    first, last = seqs.start, seqs.stop - 1
    systems = _system_messages(memory_id, first, last)
    stays = Stay.objects.filter(memory_id=memory_id, seq__gte=first, seq__lte=last)
    calling = set(stays.filter(has_calls=True).values_list("seq", flat=True))
    history = messages_until(memory_id, last).order_by("seq")
    history = history.filter(Q(seq__gte=first) | Q(seq=min(systems, default=first)))
    messages = systems | (stubs_of(history) if policy.whole_results else {})
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
    """Return the system messages from `first` to `last` and the last one before them, by seq."""
    stays = Stay.objects.filter(memory_id=memory_id, type=MessageType.SYSTEM)
    stays = stays.filter(seq__lte=last, message__origin=Message.Origin.SAID)
    before = stays.filter(seq__lt=first).order_by("-seq").values("seq")[:1]
    found = stays.filter(Q(seq__gte=first) | Q(seq__in=before)).select_related("message")
    return {stay.seq: read_message(stay.message) for stay in found}


def _recounted(history: QuerySet[Message], policy: Policy) -> Iterator[tuple[int, str, int]]:
    """Yield messages with the counts of the policy's estimator. Redacted ones keep their count."""
    count = counter(policy.estimator)
    for row in history.iterator(2_000):
        yield row.seq, row.type, row.tokens if row.redacted_step else count(read_message(row))
