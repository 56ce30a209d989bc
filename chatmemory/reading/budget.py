"""The budget of a window: the tokens of each kind of message, compared with the limit."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import Q

from chatmemory import database
from chatmemory.messages.codec.frames import GAP
from chatmemory.messages.message import MessageType
from chatmemory.models import Message
from chatmemory.reading.indexes import IndexInMemory, index_among
from chatmemory.reading.summaries import coverage_by_summary
from chatmemory.reading.windows import MessageView, WindowView
from chatmemory.windows.stored_policies import can_decide

MEDIA = ("IMAGE", "AUDIO", "VIDEO", "PDF")
_OF_MEDIA = [f'"type":"{type}"' for type in MEDIA]  # parts of a frame
_WITH_CONTENTS = (MessageType.USER, MessageType.TOOL_EXECUTION_RESULT)
HEAVY_PERCENT = 40  # of the limit, for a system message


@dataclass(frozen=True)
class Budget:
    """The tokens of a window by the kind of their messages. `media` are the tokens of messages with
    images, audio, video or files, and of the words beside them; `index` are those of the index of
    what left.

    `overhead` is the cost of a request besides its messages. `limit` is the policy's limit if it
    counts tokens, else None. `uncounted` are the tokens of a system message that is free.
    """

    system: int = 0
    results: int = 0
    user: int = 0
    ai: int = 0
    calls: int = 0
    summaries: int = 0
    index: int = 0
    media: int = 0
    overhead: int = 0
    limit: int | None = None
    uncounted: int = 0

    @property
    def talk(self) -> int:
        """The tokens of users' and the assistant's messages, with the calls."""
        return self.user + self.ai + self.calls

    @property
    def used(self) -> int:
        return sum(self._filled)

    @property
    def whole(self) -> int:
        """The whole that shares refer to: the limit plus a free system message, or the tokens in
        the window if they are more.
        """
        return max((self.limit or 0) + self.uncounted, self.used)

    @property
    def free(self) -> int:
        return self.whole - self.used

    @property
    def parts(self) -> tuple[int, ...]:
        """The tokens of each part of the whole, in the order of the bar: the system message, the
        index, summaries, media, results, talk, the overhead, and what is free.
        """
        return (*self._filled, self.free)

    @property
    def _filled(self) -> tuple[int, ...]:
        kept = self.system, self.index, self.summaries
        return (*kept, self.media, self.results, self.talk, self.overhead)

    @property
    def system_percent(self) -> int:
        return shares(self.parts)[0]

    @property
    def is_system_heavy(self) -> bool:
        """Whether the system message takes so much of the limit that little is left for talk."""
        counted = self.system - self.uncounted
        return self.limit is not None and counted * 100 > HEAVY_PERCENT * self.limit

    @property
    def remaining(self) -> int:
        """The tokens left for messages: the limit minus the overhead, and minus the system message
        if it counts.
        """
        return max(0, (self.limit or 0) - self.overhead - self.system + self.uncounted)


def shares(parts: Sequence[int]) -> list[int]:
    """Return the parts in whole percent of their sum. They add up to 100, or to 0 if all parts are
    0: after rounding down, the percents that are missing go to the parts with the largest
    remainders.
    """
    whole = sum(parts)
    if not whole:
        return [0] * len(parts)
    found = [100 * part // whole for part in parts]
    by_loss = sorted(range(len(parts)), key=lambda i: (-(100 * parts[i] % whole), -parts[i]))
    for i in by_loss[: 100 - sum(found)]:
        found[i] += 1
    return found


def budget_of(
    view: WindowView,
    summaries: Container[int] = (),
    media: Container[int] = (),
    index: IndexInMemory | None = None,
) -> Budget:
    """Return the budget of a window. `summaries` are the seqs of summaries, and `media` the seqs of
    messages with media.
    """
    kinds = ("system", "results", "user", "ai", "calls", "summaries", "index", "media")
    tokens = dict.fromkeys(kinds, 0)
    for row in view.rows:
        kind = kind_of(row.type, row.has_calls)
        if index and row.seq == index.seq:
            kind = "index"
        elif row.seq in summaries:
            kind = "summaries"
        elif row.seq in media:
            kind = "media"
        tokens[kind] += row.tokens
    policy = view.policy
    if not can_decide(policy) or policy.unit != "tokens":
        return Budget(**tokens)
    overhead = policy.overhead if view.rows else 0
    uncounted = tokens["system"] if policy.free_system else 0
    return Budget(**tokens, overhead=overhead, limit=policy.limit, uncounted=uncounted)


def budget_at(memory_id: str, view: WindowView) -> Budget:
    """Return the budget of a stored window."""
    pinned = [row.seq for row in view.rows if row.pinned]
    summaries = coverage_by_summary(memory_id, pinned) if pinned else ()
    index = index_among(memory_id, pinned)
    return budget_of(view, summaries, with_media(memory_id, view.rows), index)


def with_media(
    memory_id: str, rows: Iterable[MessageView], frames: Mapping[int, str] | None = None
) -> frozenset[int]:
    """Return the seqs of messages with images, audio, video or files.

    The frame of a message whose content is one text has a gap; only messages without such a gap are
    searched. `frames` are frames that the caller has read, by seq.
    """
    known = frames or {}
    seqs = [row.seq for row in rows if row.seq > 0 and row.type in _WITH_CONTENTS]
    found = {seq for seq in seqs if seq in known and _has_media(known[seq])}
    unread = [seq for seq in seqs if seq not in known]
    if unread:
        others = Message.objects.filter(database.in_list("seq", unread), memory_id=memory_id)
        has_media = reduce(or_, (Q(frame__contains=part) for part in _OF_MEDIA))
        searched = others.exclude(frame__contains=GAP).filter(has_media)
        found.update(searched.values_list("seq", flat=True))
    return frozenset(found)


def _has_media(frame: str) -> bool:
    return GAP not in frame and any(part in frame for part in _OF_MEDIA)


def kind_of(type: str, has_calls: bool) -> str:
    """Return the field of a budget that has the tokens of a message."""
    match type:
        case MessageType.SYSTEM:
            return "system"
        case MessageType.TOOL_EXECUTION_RESULT:
            return "results"
        case MessageType.AI:
            return "calls" if has_calls else "ai"
    return "user"
