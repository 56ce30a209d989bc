"""The causes that need attention, at the top of the overview: one line for each cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import perf_counter

from django.core.cache import cache
from django.utils import timezone
from django.utils.http import urlencode

from chatmemory.flag import Flag, Line
from chatmemory.flags import flag_named, flags
from chatmemory.reading.overview import (
    OverviewStats,
    count_with_any,
    newest_erasure,
    overview_stats,
)
from chatmemory.snapshots import one_snapshot
from inspector.overview.cases import DAYS, Cases, cases_of, newest_policy_change
from inspector.overview.selection import midnight
from inspector.shell import room, rooms
from inspector.shell.days import Bar, bars_of

CACHED_AS = "inspector.overview.headlines"
COUNTED_AS = "inspector.overview.counted"
LEAST_SECONDS, MOST_SECONDS = 1, 30
FEW = 20_000  # conversations, which are counted again after an erasure
SHARE = 20
DAY_SECONDS = 86_400
MOST_LINES = 4


@dataclass(frozen=True)
class Cause:
    """A cause that needs attention, as a line: its cases, a sentence about the newest one, and a
    link to the remedy.

    `address` leads to a preview for all of them. The flag is known by its name, because lines are
    cached and a flag may hold functions.
    """

    name: str
    cases: Cases
    words: str
    address: str

    @property
    def flag(self) -> Flag:
        return flag_named(self.name)

    @property
    def count(self) -> int:
        return self.cases.count

    @property
    def bars(self) -> list[Bar]:
        change = self.cases.change
        return bars_of(self.cases.begun or self.cases.by_day, change.day if change else None)

    @property
    def change(self) -> str:
        """The numbers around the newest change of a policy: `3 a day before the change of 24 Nov, 1
        after`. "" if no case is a day older than the change.
        """
        change, since = self.cases.change, self.cases.since
        if change is None or since is None or change.at - since < timedelta(days=1):
            return ""
        day = f"{timezone.localtime(change.at):%-d %b}"
        return f"{change.before:.1f} a day before the change of {day}, {change.after:.1f} after"


@dataclass(frozen=True)
class Folded:
    """A cause without a line: the number of its cases, and who muted it at which number."""

    name: str
    count: int
    muted: room.Muted | None = None

    @property
    def flag(self) -> Flag:
        return flag_named(self.name)


@dataclass(frozen=True)
class Headlines:
    """The counts of all conversations, the time of counting, and the time until which they are
    cached.

    Changes after `moment` may be missing. `needing` is the number of conversations in all lines,
    each counted once, and `questions` are the questions of rooms. `resolved` causes had cases
    earlier today, and have none any more.
    """

    at: datetime
    until: datetime
    moment: int
    stats: OverviewStats
    needing: int = 0
    causes: tuple[Cause, ...] = ()
    folded: tuple[Folded, ...] = ()
    resolved: tuple[Folded, ...] = ()
    questions: tuple[room.Fragment, ...] = ()

    @property
    def quiet(self) -> list[Folded]:
        return [each for each in self.folded if not each.muted]

    @property
    def muted(self) -> list[Folded]:
        return [each for each in self.folded if each.muted]

    def milliseconds_left(self) -> int:
        """Return the milliseconds until the next count."""
        return max(0, round((self.until - timezone.now()) / timedelta(milliseconds=1)))


def current_headlines(moment: int) -> Headlines:
    """Return the cached counts, or count again. `moment` is the newest change that the caller
    knows: a new count includes it.

    Counting reads all steps of today, so that the counts are kept for 20 times as long as that
    took, from 1 to 30 seconds, for all readers. Unless the conversations are very many, the next
    reader after an erasure counts again: what somebody has just deleted is not counted.
    """
    kept: Headlines | None = cache.get(CACHED_AS)
    if kept is not None and not _is_outdated(kept.stats):
        return kept
    started = perf_counter()
    counted = counted_headlines(moment)
    seconds = kept_seconds(perf_counter() - started)
    counted = replace(counted, until=timezone.now() + timedelta(seconds=seconds))
    cache.set(CACHED_AS, counted, seconds)
    return counted


def _is_outdated(stats: OverviewStats) -> bool:
    """Whether something was erased since these counts, and it is cheap to count again."""
    return stats.conversations <= FEW and stats.erasure != newest_erasure()


def forget_headlines() -> None:
    """Drop the cached counts, because somebody has changed the lines."""
    cache.delete(CACHED_AS)


def kept_seconds(took: float) -> float:
    """Return the number of seconds for which to cache counts that took `took` seconds."""
    return min(max(SHARE * took, LEAST_SECONDS), MOST_SECONDS)


@one_snapshot()
def counted_headlines(moment: int) -> Headlines:
    """Count all conversations, in one state of the database."""
    at = timezone.now()
    stats = overview_stats(midnight())
    shown = [flag for flag in flags() if flag.line and flag.counts and _has(stats, flag)]
    muted = rooms.muted() if shown else {}
    lines = [flag for flag in shown if not _is_muted(flag, stats, muted)][:MOST_LINES]
    folded = [
        Folded(flag.name, stats.flagged[flag.name], muted.get(flag.name))
        for flag in flags()
        if flag.icon
        and not flag.in_rows
        and flag not in lines
        and flag.counts
        and _has(stats, flag)
    ]
    return Headlines(
        at,
        at,
        moment,
        stats,
        needing=_needing(lines, stats),
        causes=tuple(_causes(lines, at)),
        folded=tuple(folded),
        resolved=tuple(_resolved(stats)),
        questions=tuple(rooms.questions()),
    )


def _has(stats: OverviewStats, flag: Flag) -> bool:
    return stats.flagged[flag.name] > 0


def _is_muted(flag: Flag, stats: OverviewStats, muted: Mapping[str, room.Muted]) -> bool:
    """Whether somebody folded this line, and its number has not grown by half since."""
    mute = muted.get(flag.name)
    return mute is not None and 2 * stats.flagged[flag.name] < 3 * mute.count


def _resolved(stats: OverviewStats) -> Iterator[Folded]:
    """Yield the causes whose last case ended today, with their last number. The cache remembers the
    counts of a day.
    """
    key = f"{COUNTED_AS}.{midnight():%Y-%m-%d}"
    before = cache.get(key, {})
    now = {flag.name: stats.flagged[flag.name] for flag in flags() if flag.line and flag.counts}
    cache.set(key, {name: now[name] or before.get(name, 0) for name in now}, DAY_SECONDS)
    for name, count in now.items():
        if not count and before.get(name):
            yield Folded(name, before[name])


def _needing(lines: Sequence[Flag], stats: OverviewStats) -> int:
    """Return the number of conversations in the lines, each counted once."""
    if len(lines) < 2:
        return sum(stats.flagged[flag.name] for flag in lines)
    return count_with_any(lines)


def _causes(lines: Sequence[Flag], now: datetime) -> Iterator[Cause]:
    today = midnight()
    days = [today - timedelta(days=n) for n in reversed(range(DAYS))]
    changed = newest_policy_change(days[0]) if lines else None
    for flag in lines:
        assert flag.line is not None
        cases = _with_resolved(flag.name, cases_of(flag, days, now, changed), days)
        newest = flag.line.newest
        words = newest(cases.newest) if newest and cases.newest else ""
        yield Cause(flag.name, cases, words, _address(flag.name, flag.line))


def _with_resolved(name: str, cases: Cases, days: Sequence[datetime]) -> Cases:
    """Return cases with the resolved ones: the cache remembers the highest count of each day."""
    if not cases.by_day:
        return cases
    key = f"{COUNTED_AS}.days.{name}"
    known = cache.get(key, {})
    most = {day: max(n, known.get(day, 0)) for day, n in zip(days, cases.by_day, strict=True)}
    cache.set(key, most, DAYS * DAY_SECONDS)
    begun, change = tuple(most.values()), cases.change
    if change:
        earlier = sum(begun[: change.day]) / max(1, change.day)
        change = replace(change, before=max(change.before, earlier))
    return replace(cases, begun=begun, change=change)


def _address(name: str, line: Line) -> str:
    """Return the URL of a flag's verb, or "" if its room is not installed."""
    address = rooms.page_url(line.route)
    return address and f"{address}?{urlencode({'flagged': name})}"
