"""Reads the history of a conversation: pages, all messages, or a single message.

Also reads the history as a `History` with the facts of the messages. Also finds a word to suggest
when a search finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from django.db.models import Max, Q, QuerySet

from chatmemory import database, search
from chatmemory.columns import shown_columns
from chatmemory.conf import configuration, fact_words
from chatmemory.exceptions import InvalidValue, MemoryNotFound, MessageNotFound
from chatmemory.ledger.adding import counter
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import estimator_for, family_named, is_known
from chatmemory.messages.ids import storable_id
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.messages.phrases import SEARCHED
from chatmemory.models import Memory, Message, Step
from chatmemory.patterns import declared_pattern
from chatmemory.reading.rows import MessageDetail, Page, step_row, with_stays
from chatmemory.recall.facts import Words
from chatmemory.recall.history import History, history_from
from chatmemory.snapshots import one_snapshot
from chatmemory.tables import Table
from chatmemory.windows.clearing import stub_of
from chatmemory.windows.policies import Policy

if TYPE_CHECKING:
    from chatmemory.reading.rows import EndedStay

NEAREST_WORDS = 5
NEAREST_PLACES = 20
WORD_MAX = 100
MOST_SHARED = 5_000  # messages of the histories that keepers share
_Key = tuple[str, datetime, int, str, Words, tuple[int, ...]]
# A word. Numbers may have signs between their digits.
_START_OF_WORD = declared_pattern(r"(?:[\w-]|(?<=\d)[.,/:](?=\d))*")
_END_OF_WORD = declared_pattern(r"(?:[\w-]|(?<=\d)[.,/:](?=\d|$))*$", most=WORD_MAX)


# The columns of a message that its detail shows
_FRAMED = ("memory_id", "seq", "frame", "text", "attributes")
_FIRST = (*_FRAMED, "type", "tokens", "origin", "said_at", "client_id")
_DETAILS = Table(Message, only=(*_FIRST, *shown_columns(Message)))
# Every page of a conversation reads a part of its history
_SAID = "memory_id = %(id)s AND origin = %(origin)s"
_AFTER = f"{_SAID} AND seq > %(after)s AND seq <= %(newest)s ORDER BY seq LIMIT %(size)s"
_UNTIL = f"{_SAID} AND seq <= %(last)s ORDER BY seq DESC LIMIT %(size)s + 1"


@dataclass(frozen=True)
class Part:
    """A part of the history: `size` messages before, after or around a seq; without a seq, the last
    `size` messages.
    """

    before: int | None = None
    after: int | None = None
    around: int | None = None
    size: int = 50


LATEST = Part()


@one_snapshot()
def history(memory_id: str, part: Part = LATEST, at: int | None = None) -> Page:
    """Return a part of the history up to step `at`, in order of seq.

    Raises MemoryNotFound, StepNotFound, and InvalidValue for a part with two of `before`, `after`
    and `around`.
    """
    edges = (part.before, part.after, part.around)
    if sum(edge is not None for edge in edges) > 1:
        raise InvalidValue("give at most one of before, after and around")
    memory = find_memory(memory_id)
    extent = memory if at is None else find_step(memory, at)
    return history_page(memory_id, part, extent.last_seq, extent.said_count)


def history_page(
    memory_id: str, part: Part, newest: int, said_count: int, known: Iterable[EndedStay] = ()
) -> Page:
    """Return a part of the history up to the message `newest`. `said_count` is the number of
    messages in the history up to `newest`.

    `known` are stays that the caller has already read. Of each message, `known` must have all stays
    or none.
    """
    of = {"id": memory_id, "origin": str(Message.Origin.SAID), "size": part.size}
    # Without synthetic messages the seqs have no gaps, and nothing needs to be counted.
    has_gaps = said_count != newest
    if part.after is not None:
        found = _DETAILS.read_rows(_AFTER, of | {"after": part.after, "newest": newest})
    else:
        edge = part.before if part.before is not None else newest + 1
        if part.around is not None and not has_gaps:
            edge = min(newest, part.around + part.size // 2) + 1
        elif part.around is not None:
            following = messages_until(memory_id, newest).filter(seq__gte=part.around)
            following = following.order_by("seq")[: part.size // 2 + 1]
            edge = max([seq for (seq,) in following.values_list("seq")], default=newest) + 1
        found = _DETAILS.read_rows(_UNTIL, of | {"last": min(edge - 1, newest)})[::-1]
    before = found.pop(0).said_at if part.after is None and len(found) > part.size else None
    rows = with_stays(memory_id, found, known)
    if not found:
        return Page(rows)
    first = found[0].seq
    earlier = messages_until(memory_id, first - 1).count() if has_gaps else first - 1
    return Page(rows, earlier, said_count - earlier - len(found), before)


@one_snapshot()
def message(memory_id: str, seq: int) -> MessageDetail:
    """Return a message with its stays, and the step that redacted it if there is one.

    Raises MemoryNotFound, MessageNotFound.
    """
    return message_in(find_memory(memory_id), seq)


def message_in(memory: Memory, seq: int) -> MessageDetail:
    """Return a message of a conversation. `memory` is the row of the conversation. Raises
    MessageNotFound.
    """
    row = message_row(memory.pk, seq)
    (found,) = with_stays(memory.pk, [row])
    if row.redacted_step is None:
        return found
    step = Step.objects.get(memory_id=memory.pk, n=row.redacted_step)
    return replace(found, redacted=step_row(step))


@one_snapshot()
def message_by_client_id(memory_id: str, client_id: str) -> MessageDetail:
    """Return the message to which a client gave this id, with its stays.

    Raises MemoryNotFound, MessageNotFound.
    """
    memory = find_memory(memory_id)
    named = Message.objects.filter(memory_id=memory.pk, client_id=client_id)
    row = None if "\0" in client_id else named.first()  # no stored text has a NUL
    if row is None:
        raise MessageNotFound(
            f"the conversation {memory_id!r} has no message with the client id {client_id!r}"
        )
    return with_stays(memory.pk, [row])[0]


def message_row(memory_id: str, seq: int) -> Message:
    """Return the stored row of a message. Raises MessageNotFound, UnstorableText."""
    row = Message.objects.filter(memory_id=storable_id(memory_id), seq=seq).first()
    if row is None:
        raise MessageNotFound(f"the conversation {memory_id!r} has no message #{seq}")
    return row


def nearest(memory_id: str, phrase: str, newest: int) -> str:
    """Return a word of the history to suggest after a search for `phrase` that found nothing, such
    as "refunded" for "refunding". "" if there is no such word.

    The word contains one of the five longest words of the phrase, or the beginning of the longest
    word, such as "refund". Only messages up to the seq `newest` are searched.
    """
    words = sorted(set(phrase.split()), key=len, reverse=True)[:NEAREST_WORDS]
    longest = words[0] if words else ""
    shorter = range(len(longest) - 1, max(2, len(longest) - 1 - NEAREST_WORDS), -1)
    beginnings = [longest[:length] for length in shorter]
    parts = [part for part in (*words, *beginnings) if _is_telling(part, longest)]
    if not parts:
        return ""
    messages = messages_until(memory_id, newest)
    saying = {f"part{i}": search.has(part) for i, part in enumerate(parts)}
    latest = messages.aggregate(**{n: Max("seq", filter=Q(each)) for n, each in saying.items()})
    found = ((part, seq) for part, seq in zip(parts, latest.values(), strict=True) if seq)
    part, seq = next(found, ("", 0))
    return _word_with(part, messages.get(seq=seq).text[:SEARCHED]) if part else ""


def _is_telling(part: str, longest: str) -> bool:
    is_word = len(part) > 3 or not part.isascii()
    return (is_word and 2 * len(part) > len(longest)) or any(map(str.isdigit, part))


def _word_with(part: str, text: str) -> str:
    """Return the shortest word of a text that contains `part`. "" if all such words are too
    long.
    """
    words = []
    for place in islice(_part(part).finditer(text), NEAREST_PLACES):
        start, end = place.span()
        before = _END_OF_WORD.search(text[max(0, start - WORD_MAX) : start])
        after = _START_OF_WORD.match(text[end : end + WORD_MAX])
        words.append(f"{before[0] if before else ''}{place[0]}{after[0] if after else ''}")
    return min((word for word in words if len(word) <= WORD_MAX), key=len, default="")


def _part(part: str) -> re.Pattern[str]:
    return declared_pattern(re.escape(part), re.IGNORECASE, family="a part of a phrase")


def time_before(memory_id: str, seq: int) -> datetime | None:
    """Return the time of the last message of the history before `seq`; None if no message is before
    `seq`.
    """
    times = messages_until(memory_id, seq - 1).values_list("said_at", flat=True)
    return times.order_by("-seq").first()


def messages_until(memory_id: str, newest: int) -> QuerySet[Message]:
    """Return the query for the messages of the history up to seq `newest`."""
    return Message.objects.filter(memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID)


class WholeHistory(Iterable[ChatMessage]):
    """All messages of the history up to a step. Each iteration reads the messages again.

    The messages are read in short queries, so that a slow reader holds no transaction open. An
    iteration yields as many messages as `len()` says, or raises MemoryNotFound if the conversation
    was deleted meanwhile.
    """

    READ_AT_ONCE: ClassVar = 500  # messages

    def __init__(self, memory: Memory, extent: Memory | Step) -> None:
        self._memory = memory
        self._newest, self._count = extent.last_seq, extent.said_count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ChatMessage]:
        memory, last, read = self._memory, 0, 0
        messages = Message.objects.filter(
            memory=memory,
            memory__created_at=memory.created_at,
            seq__lte=self._newest,
            origin=Message.Origin.SAID,
        )
        rows = messages.order_by("seq").values_list(*_FRAMED, named=True)
        while found := list(rows.filter(seq__gt=last)[: self.READ_AT_ONCE]):
            yield from map(read_message, found)
            last, read = found[-1].seq, read + len(found)
        if read != self._count:
            raise MemoryNotFound(f"the conversation {memory.pk!r} was deleted during this request")


@one_snapshot()
def whole_history(memory_id: str, at: int | None = None) -> WholeHistory:
    """Return the whole history, up to step `at` or until now. Raises MemoryNotFound,
    StepNotFound.
    """
    memory = find_memory(memory_id)
    return WholeHistory(memory, memory if at is None else find_step(memory, at))


def all_messages(memory_id: str, at: int | None = None) -> list[ChatMessage]:
    """Return the whole history as a list, up to step `at` or until now. Raises MemoryNotFound,
    StepNotFound.
    """
    return list(whole_history(memory_id, at))


# As a history of facts


@one_snapshot()
def read_with_history(
    memory_id: str, estimator: str | None = None, latest: int | None = None
) -> tuple[list[ChatMessage], History]:
    """Return the messages in the history of a conversation, and the `History` with their facts. The
    field `numbers` of the `History` has the seqs.

    `estimator` is by default the conversation's estimator. `latest` is how many of the last
    messages are read; None reads all. Raises MemoryNotFound, UnknownEstimator.
    """
    memory = find_memory(memory_id)
    messages = messages_until(memory_id, memory.last_seq)
    rows = (
        list(messages.order_by("-seq")[:latest])[::-1] if latest else list(messages.order_by("seq"))
    )
    return messages_with_history(memory, rows, estimator)


def messages_with_history(
    memory: Memory, rows: Sequence[Message], estimator: str | None = None
) -> tuple[list[ChatMessage], History]:
    """Return the messages that are stored in `rows`, and the `History` with their facts.

    `estimator` is by default the conversation's estimator. Within `shared_histories`, the result is
    remembered for later calls with the same arguments.
    """
    name = estimator or estimator_of(memory)
    shared = _SHARED.get()
    if shared is None:
        return _read_history(memory, rows, name)
    state = memory.pk, memory.created_at, memory.last_step, name, fact_words()
    return shared.read((*state, tuple(row.seq for row in rows)), memory, rows)


def _read_history(
    memory: Memory, rows: Sequence[Message], name: str
) -> tuple[list[ChatMessage], History]:
    messages = [read_message(row) for row in rows]
    count = None if _is_counted_by(memory, name) else counter(name)
    tokens = [
        count(message) if count and row.redacted_step is None else row.tokens
        for row, message in zip(rows, messages, strict=True)
    ]
    overhead = estimator_for(name).estimate_token_count_in_messages([])
    seqs = [row.seq for row in rows]
    return messages, history_from(messages, tokens, overhead, seqs, fact_words())


class _SharedHistories:
    """The histories that were read last, with at most MOST_SHARED messages together."""

    def __init__(self) -> None:
        self._read: dict[_Key, tuple[list[ChatMessage], History]] = {}
        self._size = 0

    def read(
        self, key: _Key, memory: Memory, rows: Sequence[Message]
    ) -> tuple[list[ChatMessage], History]:
        """Return the messages of these rows and their `History`. They are read unless `key` is
        known.
        """
        if key in self._read:
            return self._read[key]
        found = _read_history(memory, rows, key[3])
        if len(rows) <= MOST_SHARED:
            self._read[key] = found
            self._size += len(rows)
            while self._size > MOST_SHARED:
                oldest = next(iter(self._read))
                self._size -= len(self._read.pop(oldest)[0])
        return found


_SHARED: ContextVar[_SharedHistories | None] = ContextVar("_SHARED", default=None)


@contextmanager
def shared_histories() -> Iterator[None]:
    """Remember the latest `History` objects that are read within this context. Several keepers can
    then share a `History`, instead of reading it again.
    """
    if _SHARED.get() is not None:
        yield
        return
    token = _SHARED.set(_SharedHistories())
    try:
        yield
    finally:
        _SHARED.reset(token)


def read_for_replay(
    messages: QuerySet[Message], calling: Collection[int], policy: Policy
) -> dict[int, ChatMessage]:
    """Return the messages that a replay under `policy` must read, by seq:

    - tool results, if the policy clears tool results or leaves out interrupted tool calls,
    - messages with tool calls, if the policy leaves out interrupted tool calls.

    Empty for any other policy. Each tool result has a placeholder instead of its text.

    `messages` is the query for all messages of the replay. `calling` are the seqs of the messages
    with tool calls.
    """
    found: dict[int, ChatMessage] = {}
    if policy.whole_results or policy.recovers:
        found |= _stubs_of(messages)
    if policy.recovers:
        calls = messages.filter(database.in_list("seq", calling))
        found |= {row.seq: read_message(row) for row in calls.iterator(2_000)}
    return found


def _stubs_of(messages: QuerySet[Message]) -> dict[int, ChatMessage]:
    results = messages.filter(type=MessageType.TOOL_EXECUTION_RESULT)
    return {row.seq: stub_of(read_message(row)) for row in results.iterator(2_000)}


def estimator_of(memory: Memory) -> str:
    """Return the name of the conversation's estimator. If this estimator is not installed, return
    the default estimator of the settings.
    """
    name = memory.policy_estimator
    return name if name and is_known(name) else configuration().ESTIMATOR


def _is_counted_by(memory: Memory, name: str) -> bool:
    """Return whether all stored token counts of a conversation are by estimators of this family."""
    steps = Step.objects.filter(memory=memory).values_list("policy_estimator", flat=True)
    return {family_named(each) for each in steps.distinct()} == {family_named(name)}
