"""The rows of the overview for its templates: the table, search results and the feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode

from chatmemory.explain import wording
from chatmemory.explain.causes import short_reason
from chatmemory.messages.phrases import has_phrase, word_places
from chatmemory.reading.feed import FeedItem, feed, microseconds
from chatmemory.reading.finding import MENTIONS_COUNTED, BestMatch
from chatmemory.reading.overview import OverviewRow
from chatmemory.reading.rows import MemoryRow
from chatmemory.reading.windows import NoRoom
from chatmemory.windows.stored_policies import can_decide
from inspector.conversation.forecasts import leaving
from inspector.conversation.links import conversation_url
from inspector.conversation.looks import glyph
from inspector.conversation.measures import Gauge
from inspector.overview.selection import OverviewQuery
from inspector.shell import rooms
from inspector.shell.room import Badge, FeedEntry, Fragment, HitBeside

BUSY_SECONDS = 60
LABELS_SHOWN = 3
FEED_SIZE = 12
ON_TOP = timedelta(hours=1)  # for incidents of the feed
BEFORE_HIT, BETWEEN_HITS, AFTER_HIT = 16, 40, 120
NO_ROOM = {
    NoRoom.BESIDE_PINS: "no room beside pinned messages",
    NoRoom.BESIDE_TURNS: "no room beside pinned turns",
    NoRoom.REJECTED: "no message fits",
}


class HitPart(NamedTuple):
    """A part of a search result's line. `is_marked` is True for a searched word."""

    text: str
    is_marked: bool


def _marked(part: HitPart) -> str:
    return format_html("<mark>{}</mark>", part.text)


class HitLine:
    """The part of a text around the searched words, as one line. If no word matches, this is the
    beginning of the text.
    """

    def __init__(self, text: str, words: str) -> None:
        self._text, self._words = text, words
        self._places = word_places(text, words)

    @cached_property
    def parts(self) -> list[HitPart]:
        """The parts of the line: matched words, and the text around them. Text far from a match is
        left out.
        """
        text, parts, end = self._text, list[HitPart](), 0
        for place in self._places:
            begin = max(end, place.start - BEFORE_HIT) if place.start - end > BETWEEN_HITS else end
            parts.append(HitPart(("…" if begin > end else "") + text[begin : place.start], False))
            parts.append(HitPart(text[place], True))
            end = place.stop
        rest = text[end : end + AFTER_HIT]
        return [*parts, HitPart(rest + ("…" if len(text) > end + AFTER_HIT else ""), False)]

    @property
    def line(self) -> str:
        """The line as HTML, with the matched words marked."""
        return format_html_join(
            "", "{}", ((_marked(part) if part.is_marked else part.text,) for part in self.parts)
        )

    @property
    def longest(self) -> str:
        """The longest matched part, as the text spells it."""
        return max((self._text[place] for place in self._places), key=len, default="")

    @property
    def has_phrase(self) -> bool:
        """Whether the text has the searched words one after the other, as a phrase."""
        return has_phrase(self._text, self._words)


class Hit(HitLine):
    """A search result on the overview: the best match in a conversation, as one line.

    `no_room` is the reason why no message can be added to the conversation; None if messages can be
    added. With a reason, a match that a lowered limit hides is described as "over the limit". With
    None, such a match is described as "leaves at the next add".
    """

    def __init__(self, mention: BestMatch, words: str, no_room: NoRoom | None) -> None:
        super().__init__(mention.text, words)
        self.mention, self._no_room = mention, no_room
        self.glyph = glyph(mention.type, mention.has_calls)

    @property
    def state(self) -> str:
        if self.mention.is_in:
            return "in memory"
        left = self.mention.left_step
        if left:
            return f"left memory at step {left:,}"
        return "over the limit" if self._no_room else "leaves at the next add"

    @property
    def times(self) -> str:
        """The number of matching messages in words: said once, said 4 times, said 100+ times."""
        count, most = self.mention.count, MENTIONS_COUNTED
        if count > most:
            return f"said {most}+ times"
        return "said once" if count == 1 else f"said {count} times"


@dataclass(frozen=True)
class Row:
    """A row of the table: a conversation, with badges and cells that features add. `hit_beside` is
    a search hit in a text outside the history, or None.
    """

    row: OverviewRow
    query: OverviewQuery
    badges: Sequence[Badge] = ()
    cells: Sequence[Fragment | None] = ()
    hit_beside: HitBeside | None = None

    @property
    def memory(self) -> MemoryRow:
        return self.row.memory

    @cached_property
    def gauge(self) -> Gauge:
        return Gauge.of(self.memory.policy, self.memory.window)

    @property
    def over_limit(self) -> str:
        """Words about a memory that is over its limit, such as `3 messages over the limit will
        leave at the next add`. "" if the memory is within its limit, or exceeds it only by
        interrupted tool calls that the policy hides.
        """
        if not self.memory.is_over_limit or self._is_within_limit:
            return ""
        count, no_room = self.hidden, self.no_room
        if no_room and count:
            return f"{wording.counted(count, 'message')} over the limit; {NO_ROOM[no_room]}"
        return leaving(count) if count else "over the limit"

    @property
    def _is_within_limit(self) -> bool:
        """Whether the messages that the model sees are within the limit. Only hidden tool calls
        exceed it then.
        """
        window = self.row.window
        if window is None or window.over_limit or not can_decide(window.policy):
            return False
        return not window.policy.is_exceeded_by(window.totals)

    @property
    def hidden(self) -> int:
        """The number of messages that were not evicted yet, but are hidden from the model because
        the limit was lowered.
        """
        return len(self.row.window.over_limit) if self.row.window else 0

    @property
    def no_room(self) -> NoRoom | None:
        return self.row.window.no_room if self.row.window else None

    @property
    def is_busy(self) -> bool:
        return (timezone.now() - self.memory.updated_at).total_seconds() < BUSY_SECONDS

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Up to three labels, each with a link to all conversations with this label. If the list is
        filtered by a label, this label comes first.
        """
        labels = self._labels
        texts = [f"{name}:{value}" if value else name for name, value in labels.items()]
        texts.sort(key=lambda text: text != self.query.label)
        return [(text, self.query.link(label=text)) for text in texts[:LABELS_SHOWN]]

    @property
    def _labels(self) -> dict[str, str]:
        """The labels to show: all except the label that `source` already shows."""
        labels = self.memory.user_labels
        return {name: labels[name] for name in labels if name != "from" or not self.source}

    @property
    def source(self) -> tuple[str, str] | None:
        """The origin of a branch, such as `from:classroom step 9`, and its URL; None if the
        conversation is no branch.
        """
        source, step = self.memory.branched_from, self.memory.user_labels.get("from", "")
        return (f"from:{source} {step}".rstrip(), conversation_url(source)) if source else None

    @property
    def more_labels(self) -> int:
        return max(0, len(self._labels) - LABELS_SHOWN)

    @cached_property
    def hit(self) -> Hit | None:
        mention = self.row.mention
        return Hit(mention, self.query.q, self.no_room) if mention else None

    @cached_property
    def line_beside(self) -> HitLine | None:
        """A line with the searched words, taken from a text that is not in history, such as a
        message that only model calls sent. None if a message in history has the words, or no text
        has them.
        """
        return HitLine(self.hit_beside.text, self.query.q) if self.hit_beside else None

    @property
    def find(self) -> str:
        """The query string of a link that opens the conversation with a search; "" if no text of
        the conversation matches.

        - If the best match has the words as a phrase, the link searches for all words.
        - Otherwise the link searches for the longest word that matches. If the match is a message
          in history, the link also selects this message.
        """
        found = self.hit or self.line_beside
        if not found:
            return ""
        if found.has_phrase or not self.hit:
            return "?" + urlencode({"find": self.query.q if found.has_phrase else found.longest})
        return "?" + urlencode({"find": found.longest, "msg": str(self.hit.mention.seq)})


class FeedRow:
    """An entry of the feed: the latest evictions in one conversation.

    `last_seen` is the time of the newest entry that the reader has seen, in microseconds since
    1970. `is_new` is True if the last eviction of this entry is later. If `last_seen` is None,
    `is_new` is False.
    """

    is_first = False

    def __init__(self, item: FeedItem, last_seen: int | None) -> None:
        self.item, self.moment, self.step = item, item.moment, item.step
        self.is_new = last_seen is not None and self.moment > last_seen
        self.glyph = glyph(item.last.type, item.last.has_calls)
        self.reason = short_reason(item.last.reason, item.last.misfit, item.by_client)

    @property
    def left(self) -> str:
        """How many messages left memory, in words: `877 messages left memory`."""
        return f"{wording.counted(self.item.count, 'message')} left memory"

    @property
    def within(self) -> str:
        """The time in which the messages left, in words: `in 54 s`. "" if all left at the same
        time.
        """
        seconds = round((self.item.at - self.item.since).total_seconds())
        if not seconds:
            return ""
        return f"in {seconds} s" if seconds < 120 else f"in {seconds // 60} min"


class NewsRow:
    """An entry of the feed that an installed feature provides."""

    def __init__(self, news: FeedEntry, last_seen: int | None) -> None:
        self.news, self.moment, self.step = news, news.moment, news.step
        self.is_first = news.is_first
        self.is_new = last_seen is not None and self.moment > last_seen


def current_feed(last_seen: int | None = None) -> list[FeedRow | NewsRow]:
    """Return the feed: the latest evictions of each conversation, and the entries of features.

    The features' entries with `is_first` come first. They are followed by the features' entries of
    the last hour, and then by all other entries. Within each of these three groups, the latest
    entry comes first.

    Entries later than `last_seen` are marked as new. `last_seen` is the time of the newest entry
    that the reader has seen, in microseconds since 1970. With None, no entry is new.
    """
    rows: list[FeedRow | NewsRow] = [FeedRow(item, last_seen) for item in feed(FEED_SIZE)]
    rows += [NewsRow(news, last_seen) for news in rooms.news(FEED_SIZE)]
    hour_ago = microseconds(timezone.now() - ON_TOP)

    def place(row: FeedRow | NewsRow) -> tuple[bool, bool, int, int]:
        is_on_top = isinstance(row, NewsRow) and row.moment > hour_ago
        return row.is_first, is_on_top, row.moment, row.step

    return sorted(rows, key=place, reverse=True)[:FEED_SIZE]
