"""The budget of a window: how many tokens each kind of message takes, and how many the limit
allows.
"""

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


# Wide: eight kinds of message, of which each has a number, and the limit beside them.
@dataclass(frozen=True)
class Budget:
    """The tokens of a window by kind of message. Each message counts in one field.

    - `system`, `summaries`: the system message, and summaries.
    - `user`: messages of the user, and custom messages.
    - `ai`, `calls`: messages of the assistant without and with tool calls.
    - `results`: tool results.
    - `media`: messages of users and tools with images, audio, video or files, including their
      texts.
    - `index`: the message that lists exact terms of evicted messages.
    - `overhead`: the tokens of a request without its messages.
    - `limit`: the policy's limit in tokens; None if the policy does not count tokens.
    - `uncounted`: the tokens of the system message that do not count against the limit. This is all
      of `system` or 0, depending on the policy.
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
        """The tokens of `user`, `ai` and `calls` together."""
        return self.user + self.ai + self.calls

    @property
    def used(self) -> int:
        return sum(self._filled)

    @property
    def whole(self) -> int:
        """The number of tokens that is 100 % in the bar that shows the budget.

        This is `limit` plus `uncounted`, or `used` if `used` is more. Without a limit, it is
        `used`.
        """
        return max((self.limit or 0) + self.uncounted, self.used)

    @property
    def free(self) -> int:
        return self.whole - self.used

    @property
    def parts(self) -> tuple[int, ...]:
        """The tokens of each part of the bar that shows the budget. The order is `system`, `index`,
        `summaries`, `media`, `results`, `talk`, `overhead`, `free`.
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
        """Whether the system message takes more than 40 % of the limit. False if the policy does
        not count tokens, or does not count the system message.
        """
        counted = self.system - self.uncounted
        return self.limit is not None and counted * 100 > HEAVY_PERCENT * self.limit

    @property
    def remaining(self) -> int:
        """The tokens of the limit that remain for messages besides the system message. 0 if the
        policy does not count tokens.

        This is `limit` minus `overhead`, minus the tokens of `system` that count against the limit,
        and never less than 0.
        """
        return max(0, (self.limit or 0) - self.overhead - self.system + self.uncounted)


def shares(parts: Sequence[int]) -> list[int]:
    """Return the percentage of each part in the sum of all parts. The percentages are whole numbers
    and add up to 100; all are 0 if all parts are 0.

    Percentages are rounded down. Then the parts with the largest remainders get one percent more,
    until the sum is 100.
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
    """Return the budget of a window.

    `summaries` and `media` are the seqs of summaries and of messages with media. `index` is the
    window's index of exact terms.
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
    """Return the budget of a stored window. The database is read to find the summaries, the
    messages with media and the index.
    """
    pinned = [row.seq for row in view.rows if row.pinned]
    summaries = coverage_by_summary(memory_id, pinned) if pinned else ()
    index = index_among(memory_id, pinned)
    return budget_of(view, summaries, with_media(memory_id, view.rows), index)


def with_media(
    memory_id: str, rows: Iterable[MessageView], frames: Mapping[int, str] | None = None
) -> frozenset[int]:
    """Return the seqs of the messages in `rows` that have images, audio, video or files. Drafts are
    left out.

    `frames` has the stored JSON of messages, by seq, if the caller has already read it. Messages
    that are not in `frames` are searched in the database.
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
    """Return the name of the `Budget` field that counts messages of this type."""
    match type:
        case MessageType.SYSTEM:
            return "system"
        case MessageType.TOOL_EXECUTION_RESULT:
            return "results"
        case MessageType.AI:
            return "calls" if has_calls else "ai"
    return "user"
