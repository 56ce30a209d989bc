"""The causes (reasons for attention) at the top of the overview, such as rejected requests. Each
cause has one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from hashlib import sha256
from operator import or_
from time import perf_counter

from django.core.cache import cache
from django.db.models import Count
from django.utils import timezone
from django.utils.http import urlencode

from chatmemory.flag import Flag, Line, Shown
from chatmemory.flags import flag_named, flags
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds
from chatmemory.reading.overview import OverviewStats, newest_erasure, overview_stats
from chatmemory.snapshots import one_snapshot
from inspector.overview.cases import DAYS, Cases, cases_of
from inspector.overview.common import Common, Everywhere, common_of
from inspector.overview.selection import Ages, OverviewQuery, midnight, usual_sort
from inspector.shell import room, rooms
from inspector.shell.chosen import text_of_ids
from inspector.shell.days import Bar, bars_of
from inspector.shell.times import time_left

CACHED_AS = "inspector.overview.headlines"
COUNTED_AHEAD = "inspector.overview.ahead"  # by the thread of the site, see `ahead`
COUNTED_AS = "inspector.overview.counted"
LEAST_SECONDS, MOST_SECONDS = 1, 30
FEW = 20_000  # conversations, which are counted again after an erasure
SHARE = 20
DAY_SECONDS = 86_400
NOTHING_TOLD = room.Told()
MOST_LINES = 4


@dataclass(frozen=True)
class Cause:
    """A cause (reason for attention) as a line of the overview.

    - `name` is the name of the cause's flag.
    - `words` is a sentence about the newest of the `cases`.
    - `address` is the URL of the line's link; "" if the linked page is not installed.
    - `common` is what most cases have in common, such as a label.
    - `since` is when the oldest case with this common value began. Without a common value, it is
      when the oldest case of all began.
    - `told` says whether a change of a policy or label helped.
    - `opens_all` is set if the overview is filtered, but the linked page shows all conversations
      with the flag.
    """

    name: str
    cases: Cases
    words: str
    address: str
    common: Common | None = None
    since: datetime | None = None
    told: room.Told = NOTHING_TOLD
    opens_all: bool = False

    @property
    def flag(self) -> Flag:
        return flag_named(self.name)

    @property
    def count(self) -> int:
        return self.cases.count

    @property
    def bars(self) -> list[Bar]:
        return bars_of(self.cases.begun or self.cases.by_day)

    @property
    def title(self) -> str:
        """The title of the line, with ", again" if the cause had ended and came back."""
        return f"{self.flag.title}, again" if self.told.is_again else self.flag.title


@dataclass(frozen=True)
class Closed:
    """A cause that has ended after a change of a policy or label. `name` is the name of the cause's
    flag, and `told` says whether the change helped.
    """

    name: str
    told: room.Told

    @property
    def flag(self) -> Flag:
        return flag_named(self.name)

    @property
    def title(self) -> str:
        """The title of the cause. This is the flag's own title for past cases, such as "Users
        repeated", or else the flag's usual title.
        """
        past = self.flag.cases.past
        return self.flag.title if "." in self.name or past is None else past.title


@dataclass(frozen=True)
class Folded:
    """A cause without a line at the top of the overview, such as a muted cause.

    - `name` is the name of the cause's flag. If a room (feature) found the cause, `cause` is set
      instead.
    - `count` is the number of conversations with the cause.
    - `muted` says who muted the cause; None if nobody did.
    """

    name: str
    count: int
    muted: room.Muted | None = None
    cause: room.RoomCause | None = None

    @property
    def flag(self) -> Flag | room.RoomCause:
        return self.cause or flag_named(self.name)


@dataclass(frozen=True)
class Counted:
    """The counts of conversations (`stats`), made at the time `at` and cached until `until`.

    Changes after `moment`, a time in microseconds since 1970, may be missing. `filters` has the
    number of conversations for each filter (see `OverviewQuery.counts`), but only if the background
    thread made these counts.
    """

    at: datetime
    until: datetime
    moment: int
    stats: OverviewStats
    filters: Mapping[tuple[str, str], int | None] = field(default_factory=dict)

    @property
    def checked(self) -> int:
        """The number of conversations whose derived data is up to date."""
        return self.stats.conversations - self.stats.unexamined

    @property
    def time_left(self) -> str:
        """The time until all conversations are checked, in words; "" if this time is not known."""
        return time_left(self.stats.seconds_left)

    def milliseconds_left(self) -> int:
        """Return the milliseconds until the counts are computed again."""
        return max(0, round((self.until - timezone.now()) / timedelta(milliseconds=1)))


@dataclass(frozen=True)
class Headlines:
    """The top of the overview: the lines about causes (reasons for attention), and the counts of
    conversations (`counted`).

    - `causes` are the causes with a line. `needing` is the number of conversations in these lines,
      each counted once.
    - `more` are causes with a line that rooms (features) have found.
    - `folded` are causes without a line: muted causes, causes after the first four, and causes that
      never have a line.
    - `resolved` are causes that some conversations had earlier today, and no conversation has now.
    - `closed` are causes that ended after a change of a policy or label. It is empty if the
      overview is filtered.
    - `questions` are forms that rooms add.
    - `over_time` is what a room adds about changes over time, such as a table of figures. None if
      rooms add nothing, or if they were not asked, such as for a search.
    """

    counted: Counted
    needing: int = 0
    causes: tuple[Cause, ...] = ()
    more: tuple[room.RoomCause, ...] = ()
    folded: tuple[Folded, ...] = ()
    resolved: tuple[Folded, ...] = ()
    closed: tuple[Closed, ...] = ()
    questions: tuple[room.Fragment, ...] = ()
    over_time: room.OverTime | None = None

    @property
    def count(self) -> int:
        """The number of causes that have a line."""
        return len(self.causes) + len(self.more)

    @property
    def newest(self) -> Cause | None:
        """The line whose cause began last; None if no beginning is known."""
        timed = [each for each in self.causes if each.since]
        return max(timed, key=lambda each: each.since or self.counted.at, default=None)

    @property
    def quiet(self) -> list[Folded]:
        return [each for each in self.folded if not each.muted]

    @property
    def muted(self) -> list[Folded]:
        return [each for each in self.folded if each.muted]

    def cached_for(self, seconds: float) -> Headlines:
        """Return a copy of these lines that is valid for this number of seconds from now."""
        until = timezone.now() + timedelta(seconds=seconds)
        return replace(self, counted=replace(self.counted, until=until))


def current_headlines(moment: int, query: OverviewQuery | None = None) -> Headlines:
    """Return the lines and counts at the top of the overview, from the cache or counted now.

    A new count includes all changes up to `moment`. This is the time of the newest change that the
    caller knows, in microseconds since 1970. Counts stay in the cache for 20 times as long as the
    counting took: at least 1 and at most 30 seconds. After an erasure, the cached counts of a small
    site are not used.

    Each combination of filters has its own counts; the search text of `query` is ignored. On a
    large site, a thread makes the counts without filters (see `ahead`).
    """
    query = query or OverviewQuery()
    is_search = bool(query.q)
    query = replace(query, q="", sort=usual_sort(query.flagged), cursor="")
    plain = query == OverviewQuery(sort=query.sort)
    key = CACHED_AS if plain else f"{CACHED_AS}.{sha256(query.query.encode()).hexdigest()}"
    key += ".search" if is_search else ""
    for known in (COUNTED_AHEAD, key) if plain and not is_search else (key,):
        kept: Headlines | None = cache.get(known)
        if kept is not None and not _is_outdated(kept.counted.stats):
            return kept
    started = perf_counter()
    found = counted_headlines(moment, query, with_strip=not is_search)
    seconds = kept_seconds(perf_counter() - started)
    found = found.cached_for(seconds)
    cache.set(key, found, seconds)
    return found


def ages_of(headlines: Headlines, moment: int) -> Ages:
    """Return the times at which the counts of an overview were made. `moment` is the time of the
    newest change, in microseconds since 1970: counts that include this change have the time None.
    """
    counted, over_time = headlines.counted, headlines.over_time
    at = counted.at if counted.moment < moment else None
    facets_at = over_time.at if over_time else None
    is_behind = facets_at is not None and microseconds(facets_at) < moment
    return Ages(at if counted.filters else None, at, facets_at if is_behind else None)


def _is_outdated(stats: OverviewStats) -> bool:
    """Return whether something was erased since these counts. False on a large site, where counting
    again takes long.
    """
    return stats.conversations <= FEW and stats.erasure != newest_erasure()


def forget_headlines() -> None:
    """Drop the cached lines and counts at the top of the overview. Call this function after a
    change that readers must see at once, such as a muted cause.
    """
    cache.delete_many([CACHED_AS, COUNTED_AHEAD])


def kept_seconds(took: float) -> float:
    """Return the number of seconds for which to cache counts that took `took` seconds."""
    return min(max(SHARE * took, LEAST_SECONDS), MOST_SECONDS)


@one_snapshot()
def counted_headlines(
    moment: int, query: OverviewQuery | None = None, with_strip: bool = True
) -> Headlines:
    """Return the lines and counts at the top of the overview, counted now in one database snapshot.

    - `moment` is the time of the newest change that the caller knows, in microseconds since 1970.
      The function only stores it in the result.
    - The lines count the conversations that match the filters of `query`, by default all. The
      search, the flag and the day of `query` are ignored for this.
    - The statistics in `counted` are about all conversations.
    - If `with_strip` is False, the result has no `over_time`.
    """
    query = query or OverviewQuery()
    unflagged = replace(query, flagged="", day="", sort="activity", q="")
    among = None if unflagged.is_all else unflagged.which.rows()
    at = timezone.now()
    stats = overview_stats(midnight())
    shown = [flag for flag in flags() if flag.line and flag.counts and _has(stats, flag)]
    parts, counts = _in_parts(shown, stats, among)
    is_known = with_strip and stats.unexamined < stats.conversations
    over_time = rooms.over_time(query) if is_known else None
    told = over_time.told if over_time else {}
    more = over_time.causes if over_time else ()
    muted = rooms.muted() if shown or more else {}
    closed = {name: each for name, each in told.items() if each.closed_at}
    lines = [
        flag for flag in parts if flag.name not in closed and not _is_muted(flag, counts, muted)
    ]
    lines = lines[:MOST_LINES]
    counts = {**stats.flagged, **counts}
    quiet, of_quiet = _in_parts(_quiet(shown, stats), stats, among)
    counts |= of_quiet
    below = [*(each for each in parts if each not in lines), *quiet]
    folded = [
        Folded(flag.name, counts[flag.name], _mute(flag.name, muted))
        for flag in below
        if flag.name not in closed
    ]
    folded = list({each.name: each for each in folded}.values())
    folded += _muted_of_rooms(more, muted)
    muted_names = {each.name for each in folded}
    return Headlines(
        Counted(at, at, moment, stats),
        needing=_needing(lines, counts, among),
        causes=tuple(_causes(lines, stats, told, among)),
        more=tuple(each for each in more if each.name not in muted_names),
        folded=tuple(folded),
        resolved=tuple(_resolved(stats)),
        closed=tuple(_closed(closed, muted)) if among is None else (),
        questions=tuple(rooms.questions()),
        over_time=over_time,
    )


def _closed(closed: Mapping[str, room.Told], muted: Mapping[str, room.Muted]) -> Iterator[Closed]:
    """Yield the closed causes to show. Causes that somebody has dismissed after their end are left
    out.
    """
    for name, each in sorted(closed.items()):
        mute = muted.get(name)
        is_dismissed = mute is not None and each.closed_at is not None and mute.at > each.closed_at
        if each.is_shown and not is_dismissed:
            yield Closed(name, each)


def _quiet(shown: Sequence[Flag], stats: OverviewStats) -> list[Flag]:
    """Return the flags that some conversations have, but that are in no line."""
    return [
        flag
        for flag in flags()
        if flag.icon
        and Shown.IN_ROWS not in flag.shown
        and flag not in shown
        and flag.counts
        and _has(stats, flag)
    ]


def _whole(flag: Flag) -> str:
    """Return the name of the flag of which this flag is a part, such as `refused` for a rule of a
    provider. Return the own name of any other flag.
    """
    return flag.name.partition(".")[0]


def _in_parts(
    shown: Sequence[Flag], stats: OverviewStats, among: MemoryQuerySet | None
) -> tuple[list[Flag], dict[str, int]]:
    """Return the flags that some conversations have, and the number of conversations by flag name.
    A flag with parts, such as rules, is replaced by its parts.
    """
    counts: dict[str, int] = {}
    found: list[Flag] = []
    for flag in shown:
        parts = list(flag.cases.parts()) if flag.cases.parts else []
        some = parts or [flag]
        if among is None and not parts:
            counts[flag.name] = stats.flagged[flag.name]
        else:
            every = Memory.objects.filter(flag.where) if among is None else among
            wanted = {f"n{n}": Count("pk", filter=each.where) for n, each in enumerate(some)}
            numbers = every.aggregate(**wanted)
            counts |= {each.name: numbers[f"n{n}"] for n, each in enumerate(some)}
        found += sorted(
            (each for each in some if counts[each.name]), key=lambda each: -counts[each.name]
        )
    return found, counts


def _has(stats: OverviewStats, flag: Flag) -> bool:
    return stats.flagged[flag.name] > 0


def _is_muted(flag: Flag, counts: Mapping[str, int], muted: Mapping[str, room.Muted]) -> bool:
    """Return whether somebody muted this line, and the number of its cases has not grown by half
    since.
    """
    mute = _mute(flag.name, muted) or _mute(_whole(flag), muted)
    return _holds(mute, counts[flag.name])


def _holds(mute: room.Muted | None, count: int) -> bool:
    """Return whether a cause is muted, and the number of its cases has not grown by half since."""
    return mute is not None and 2 * count < 3 * mute.count


def _muted_of_rooms(
    causes: Iterable[room.RoomCause], muted: Mapping[str, room.Muted]
) -> Iterator[Folded]:
    """Yield the causes of rooms that are muted."""
    for each in causes:
        if _holds(mute := _mute(each.name, muted), each.count):
            yield Folded(each.name, each.count, mute, each)


def _mute(name: str, muted: Mapping[str, room.Muted]) -> room.Muted | None:
    """Return how a cause was muted. None if it was not, or if it was only dismissed after its
    end.
    """
    found = muted.get(name)
    return found if found and found.count else None


def _resolved(stats: OverviewStats) -> Iterator[Folded]:
    """Yield the causes whose last case ended today, each with its last number of cases. The cache
    has the counts of the day.
    """
    key = f"{COUNTED_AS}.{midnight():%Y-%m-%d}"
    before = cache.get(key, {})
    now = {flag.name: stats.flagged[flag.name] for flag in flags() if flag.line and flag.counts}
    cache.set(key, {name: now[name] or before.get(name, 0) for name in now}, DAY_SECONDS)
    for name, count in now.items():
        if not count and before.get(name):
            yield Folded(name, before[name])


def _needing(lines: Sequence[Flag], counts: Mapping[str, int], among: MemoryQuerySet | None) -> int:
    """Return the number of conversations in the lines, each counted once."""
    if len(lines) < 2:
        return sum(counts[flag.name] for flag in lines)
    every = Memory.objects.all() if among is None else among
    found: int = every.filter(reduce(or_, (flag.where for flag in lines))).count()
    return found


def _causes(
    lines: Sequence[Flag],
    stats: OverviewStats,
    told: Mapping[str, room.Told],
    among: MemoryQuerySet | None,
) -> Iterator[Cause]:
    today = midnight()
    days = [today - timedelta(days=n) for n in reversed(range(DAYS))]
    everywhere = Everywhere(stats.conversations) if lines else None
    for flag in lines:
        assert flag.line is not None
        assert everywhere is not None
        common = common_of(flag, among, everywhere)
        cases = cases_of(flag, days, among, common.newest)
        if among is None:
            cases = _with_resolved(flag.name, cases, days)
        newest = flag.line.newest
        words = newest(cases.newest) if newest and cases.newest else ""
        is_of_one = cases.count == 1 and bool(flag.line.route_of_one)
        yield Cause(
            flag.name,
            cases,
            words,
            _address(flag.name, flag.line, cases),
            common,
            common.since or cases.since,
            told.get(flag.name, NOTHING_TOLD),
            opens_all=among is not None and not cases.ids and not is_of_one,
        )


def _with_resolved(name: str, cases: Cases, days: Sequence[datetime]) -> Cases:
    """Return cases with `begun`, the number of cases by day including resolved cases: the highest
    count of each day, from the cache.
    """
    if not cases.by_day:
        return cases
    key = f"{COUNTED_AS}.days.{name}"
    known = cache.get(key, {})
    most = {day: max(n, known.get(day, 0)) for day, n in zip(days, cases.by_day, strict=True)}
    cache.set(key, most, DAYS * DAY_SECONDS)
    return replace(cases, begun=tuple(most.values()))


def _address(name: str, line: Line, cases: Cases) -> str:
    """Return the URL to which the link of a flag's line leads; "" if the linked page is not
    installed.
    """
    is_one = cases.count == 1 and line.route_of_one
    of_one = rooms.page_url(line.route_of_one, cases.newest) if is_one else ""
    address = rooms.page_url(line.route)
    which = {"ids": text_of_ids(cases.ids)} if cases.ids else {"flagged": name}
    return of_one or (address and f"{address}?{urlencode(which)}")
