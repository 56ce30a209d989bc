"""What the overview shows, complete for the templates: its numbers, its rows and its feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from time import perf_counter

from django.core.cache import cache
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.http import urlencode

from chatmemory import can_decide, explain, queries
from chatmemory.queries import (
    FeedItem,
    Flag,
    NoRoom,
    OverviewRow,
    flag_named,
    flags,
)
from inspector.conversation.links import conversation_url
from inspector.conversation.looks import glyph
from inspector.conversation.measures import Gauge
from inspector.overview.selection import Asked, midnight
from inspector.shell import room
from inspector.shell.room import Badge, News

CACHED_AS = "inspector.overview.headlines"
LEAST_SECONDS, MOST_SECONDS = 1, 30
SHARE = 20
BUSY_SECONDS = 60
LABELS_SHOWN = 3
FEED_SIZE = 12
BEFORE_HIT, AFTER_HIT = 16, 120
NO_ROOM = {NoRoom.BESIDE_PINS: "no room beside pins", NoRoom.REJECTED: "no message fits"}


@dataclass(frozen=True)
class Cause:
    """A line of what needs somebody: how many conversations, the newest of them, and what to do.

    `words` say what happened in the newest one, and `address` leads to a preview for all of them.
    The flag is known by its name, because lines are cached and a flag may hold functions.
    """

    name: str
    count: int
    memory: queries.MemoryRow
    words: str
    verb: str
    address: str

    @property
    def flag(self) -> Flag:
        return flag_named(self.name)


@dataclass(frozen=True)
class Headlines:
    """The statistics of all conversations, when they were counted and until when they are kept.
    What changed after `moment` may be missing.
    """

    at: datetime
    until: datetime
    moment: int
    stats: queries.OverviewStats
    causes: tuple[Cause, ...] = ()

    @property
    def red(self) -> int:
        """How many causes are red."""
        return sum(cause.flag.is_red for cause in self.causes)

    @property
    def quiet(self) -> list[tuple[Flag, int]]:
        """The flags without a line of their own that a conversation has, and how many have each."""
        return [
            (flag, self.stats.flagged[flag.name])
            for flag in flags()
            if flag.icon and not flag.verb and self.stats.flagged[flag.name]
        ]

    def milliseconds_left(self) -> int:
        """Return after how long the statistics are counted again."""
        return max(0, round((self.until - timezone.now()) / timedelta(milliseconds=1)))


def current_headlines(moment: int) -> Headlines:
    """Return the statistics as they were counted last, or count them again: `moment` is the newest
    change that the caller has seen, which they hold then.

    They read all steps of today, so they are kept for 20 times as long as the counting took, from
    1 to 30 seconds, whoever asks.
    """
    kept: Headlines | None = cache.get(CACHED_AS)
    if kept is not None:
        return kept
    at, started = timezone.now(), perf_counter()
    stats = queries.overview_stats(midnight())
    causes = tuple(_causes(stats))
    seconds = kept_seconds(perf_counter() - started)
    counted = Headlines(at, timezone.now() + timedelta(seconds=seconds), moment, stats, causes)
    cache.set(CACHED_AS, counted, seconds)
    return counted


def _causes(stats: queries.OverviewStats) -> Iterator[Cause]:
    """Yield a line for each flag that has a verb, and that a conversation has."""
    for flag in flags():
        count = stats.flagged[flag.name]
        found = queries.newest_flagged(flag) if flag.verb and count else None
        if found:
            memory, words = found
            verb = flag.verb
            if not flag.is_red:
                words, verb = "is one of them. Nobody has chosen the providers in use.", "Choose…"
            yield Cause(flag.name, count, memory, words, verb, _address(flag))


def _address(flag: Flag) -> str:
    """Return where a flag's verb leads; empty if that room is not installed."""
    with suppress(NoReverseMatch):
        return f"{reverse(f'inspector:{flag.route}')}?{urlencode({'flagged': flag.name})}"
    return ""


def kept_seconds(took: float) -> float:
    """Return for how long numbers are kept that took so many seconds to count."""
    return min(max(SHARE * took, LEAST_SECONDS), MOST_SECONDS)


class Hit:
    """What the search found in a conversation: one line that begins shortly before the words.

    What a lowered limit hides does not leave where there is `no_room` for any message.
    """

    def __init__(self, mention: queries.BestMatch, words: str, no_room: NoRoom | None) -> None:
        self.mention, self._no_room, text = mention, no_room, mention.text
        self.glyph = glyph(mention.type, mention.has_calls)
        place = explain.phrase_place(text, words) or slice(0, 0)
        begin, end = max(0, place.start - BEFORE_HIT), place.stop + AFTER_HIT
        self.before = ("…" if begin else "") + text[begin : place.start]
        self.words = text[place]
        self.after = text[place.stop : end] + ("…" if len(text) > end else "")

    @property
    def state(self) -> str:
        if self.mention.is_in:
            return "in memory"
        left = self.mention.left_step
        if left:
            return f"forgotten at step {left:,}"
        return "over the limit" if self._no_room else "leaves at the next add"

    @property
    def times(self) -> str:
        """Said once, said 4 times, said 100+ times."""
        count, most = self.mention.count, queries.MENTIONS_COUNTED
        if count > most:
            return f"said {most}+ times"
        return "said once" if count == 1 else f"said {count} times"


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    row: OverviewRow
    asked: Asked
    badges: Sequence[Badge] = ()

    @property
    def memory(self) -> queries.MemoryRow:
        return self.row.memory

    @property
    def badges_below(self) -> list[Badge]:
        """Those that stand below the id."""
        return [badge for badge in self.badges if badge.is_below]

    @property
    def limit(self) -> int | None:
        """The limit, if it is known what it counts."""
        policy = self.memory.policy
        return policy.limit if can_decide(policy) else None

    @cached_property
    def gauge(self) -> Gauge:
        return Gauge(self.memory.policy, self.memory.window)

    @property
    def over_limit(self) -> str:
        """Why the window is over its limit, in words; empty if it is not."""
        if not self.memory.is_over_limit:
            return ""
        count, no_room = self.hidden, self.no_room
        if no_room and count:
            return f"{explain.counted(count, 'message')} over the limit; {NO_ROOM[no_room]}"
        return explain.leaving(count) if count else "over the limit"

    @property
    def hidden(self) -> int:
        """How many messages a lowered limit hides."""
        return len(self.row.window.over_limit) if self.row.window else 0

    @property
    def no_room(self) -> NoRoom | None:
        return self.row.window.no_room if self.row.window else None

    @property
    def policy_name(self) -> str:
        return explain.policy_name(self.memory.policy).removesuffix(" window")

    @property
    def in_memory(self) -> str:
        """How many messages the model sees, and of how many if a lowered limit hides some."""
        stored, hidden = self.memory.window.count, self.hidden
        return f"{stored - hidden:,} of {stored:,}" if hidden else f"{stored:,}"

    @property
    def is_busy(self) -> bool:
        return (timezone.now() - self.memory.updated_at).total_seconds() < BUSY_SECONDS

    @property
    def spark(self) -> tuple[str, str, float | None]:
        return spark(self.row.loads, self.limit)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The first labels, each with the link to all that have it; the one that is filtered by
        comes first.
        """
        given = self._labels
        texts = [f"{name}:{value}" if value else name for name, value in given.items()]
        texts.sort(key=lambda text: text != self.asked.label)
        return [(text, self.asked.link(label=text)) for text in texts[:LABELS_SHOWN]]

    @property
    def _labels(self) -> dict[str, str]:
        """The labels without the one that `source` has."""
        given = self.memory.given_labels
        return {name: given[name] for name in given if name != "from" or not self.source}

    @property
    def source(self) -> tuple[str, str] | None:
        """Where it was saved from, such as `from:classroom step 9`, and the address of that."""
        source, step = self.memory.branched_from, self.memory.given_labels.get("from", "")
        return (f"from:{source} {step}".rstrip(), conversation_url(source)) if source else None

    @property
    def more_labels(self) -> int:
        return max(0, len(self._labels) - LABELS_SHOWN)

    @cached_property
    def hit(self) -> Hit | None:
        mention = self.row.mention
        return Hit(mention, self.asked.q, self.no_room) if mention else None

    @property
    def find(self) -> str:
        """The query that opens the conversation with the search, if the words were said in it."""
        return "?" + urlencode({"find": self.asked.q}) if self.row.mention else ""


class FeedRow:
    """An entry of the feed: a message that left, which is new if that was later than `seen`."""

    is_first = False

    def __init__(self, item: FeedItem, seen: int | None) -> None:
        self.item, self.moment, self.step = item, item.moment, item.step
        self.is_new = seen is not None and self.moment > seen
        self.glyph = glyph(item.type, item.has_calls)
        self.reason = explain.short_reason(item.reason, item.misfit, item.by_client)


class NewsRow:
    """An entry of the feed that a room has."""

    def __init__(self, news: News, seen: int | None) -> None:
        self.news, self.moment, self.step = news, news.moment, news.step
        self.is_first = news.is_first
        self.is_new = seen is not None and self.moment > seen


def current_feed(seen: int | None = None) -> list[FeedRow | NewsRow]:
    """Return what left memory last, and what rooms tell, the latest first.

    What is later than `seen` is new.
    """
    rows: list[FeedRow | NewsRow] = [FeedRow(item, seen) for item in queries.feed(FEED_SIZE)]
    rows += [NewsRow(news, seen) for news in room.news(FEED_SIZE)]
    rows.sort(key=lambda row: (row.is_first, row.moment, row.step), reverse=True)
    return rows[:FEED_SIZE]


def spark(loads: Sequence[int], limit: int | None) -> tuple[str, str, float | None]:
    """Return a sparkline in a box of 40 by 20: its area, its line and the limit's height.

    The last load is at the right edge.
    """
    top = max([limit or 0, *loads, 1]) * 1.1
    heights = [20 - 20 * load / top for load in loads]
    start = 40 - len(heights)
    points = "".join(f"V{y:.1f}H{start + i + 1}" for i, y in enumerate(heights))
    if not heights:
        return "", "", None
    line = f"M{start} {heights[0]:.1f}{points}"
    return f"M{start} 20{points}V20Z", line, round(20 - 20 * limit / top, 1) if limit else None
