"""The page of many conversations: which limit is right for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from chatmemory import explain, policy_kinds, text_of_policy
from chatmemory.queries import Fleet, FleetLists, Point, smallest_limit
from inspector.conversation.links import conversation_url
from inspector.conversation.timeline import Label
from inspector.lab.asked import Asked
from inspector.lab.fleet_asked import FleetAsked
from inspector.lab.today import NARROW, WIDE, Limit, labels_in

SHARES = (0.9, 0.95, 0.99, 1.0)
ANSWER = 0.95
DRAWN = 240
MARKED_LIMITS = 3
TICKS = 8


@dataclass(frozen=True)
class LimitRow:
    """A row of the table."""

    label: str
    limit: str
    lost: str
    lossless: str
    per_call: str
    share: str
    cost: str
    css: str = ""
    link: str = ""


@dataclass(frozen=True)
class Mark:
    """A line at a limit, at x of 1,000, with its words at a percentage of the width."""

    x: float
    words: str

    @property
    def percent(self) -> str:
        return f"{self.x / 10:.2f}%"


@dataclass(frozen=True)
class Listed:
    """A conversation of a list: a fact of it, its numbers and the links to where they are seen."""

    id: str
    link: str
    fact: str
    count: str
    first: int
    second: int


class FleetPage:
    """The page of a fleet. With a file's name, the fleet is in that file, and has no addresses."""

    def __init__(self, found: Fleet, asked: FleetAsked, file: str = "") -> None:
        self.found = found
        self.asked = asked
        self.file = file
        self.lists = FleetLists()
        self.sums = found.sums
        kind = asked.query.kind
        self.unit, self.short_unit, self.estimator = kind.unit, kind.short_unit, kind.estimator
        self.least_limit = kind.least_limit
        self.grid_noun = kind.unit.removesuffix("s")
        self.is_chosen = bool(asked.q or asked.label or asked.prefix or asked.since)

    @property
    def is_done(self) -> bool:
        return self.found.is_done

    @cached_property
    def best(self) -> Point | None:
        return smallest_limit(self.found.points, self.sums.recalls, ANSWER)

    @cached_property
    def pick(self) -> Point | None:
        """What the chosen limit gives: that of the address, or else of the answer.

        It is on the grid, and goes together with the options. None only without any figures.
        """
        points = self.found.points
        if not points:
            return None
        if self.asked.limit is None:
            return self.best or points[-1]
        every = self.sums.every
        least = -(-self.least_limit // every)
        return points[min(max(self.asked.limit // every, least), len(points)) - 1]

    # The answer

    @property
    def limit_words(self) -> str:
        return explain.counted(self.pick.limit, self.grid_noun) if self.pick else ""

    @property
    def held_share(self) -> str:
        return percent(self.pick.held, self.sums.recalls) if self.pick else ""

    @property
    def token_share(self) -> str:
        return percent(self.pick.prompts, self.sums.everything) if self.pick else ""

    @property
    def lost(self) -> int:
        return self.sums.recalls - self.pick.held if self.pick else 0

    # The table

    @property
    def rows(self) -> Iterator[LimitRow]:
        if self.sums.today_count:
            yield self._today()
        for share in SHARES:
            point = smallest_limit(self.found.points, self.sums.recalls, share)
            if point is None:
                yield LimitRow(f"{share:.0%}".replace("%", " %"), "no limit", *[""] * 5)
                continue
            css = "is-pick" if self.pick and point.limit == self.pick.limit else ""
            yield self._row(f"{share:.0%}".replace("%", " %"), point, css)
        picked = self.asked.limit is not None and self.pick
        if picked:
            yield self._row("chosen", picked, "is-pick")
        sums = self.sums
        yield LimitRow(
            "everything",
            "no limit",
            "0",
            f"{sums.count:,}",
            self._per_call(sums.everything),
            "100 %",
            self._cost(sums.everything),
        )

    def _row(self, label: str, point: Point, css: str) -> LimitRow:
        return LimitRow(
            label,
            f"{point.limit:,} {self.short_unit}",
            f"{self.sums.recalls - point.held:,}",
            f"{point.lossless:,}",
            self._per_call(point.prompts),
            percent(point.prompts, self.sums.everything),
            self._cost(point.prompts),
            css,
            "" if self.file else self.asked.link(limit=point.limit),
        )

    def _today(self) -> LimitRow:
        sums = self.sums
        lost = sums.today_recalls - sums.today_held
        many = len(self.found.limits)
        limit = f"{next(iter(self.found.limits)):,} {self.short_unit}" if many == 1 else "their own"
        return LimitRow(
            "today",
            limit,
            f"{lost:,}",
            f"{sums.today_lossless:,}",
            self._per_call(sums.today_prompts, sums.today_calls),
            percent(sums.today_prompts, sums.everything),
            self._cost(sums.today_prompts, sums.today_calls),
            "is-today",
        )

    def _per_call(self, tokens: int, calls: int | None = None) -> str:
        calls = self.sums.calls if calls is None else calls
        return f"{round(tokens / calls):,} tok" if calls else ""

    def _cost(self, tokens: int, calls: int | None = None) -> str:
        calls = self.sums.calls if calls is None else calls
        cost = self.asked.prices.cost(tokens, 0, 0)
        return self.asked.prices.words(cost, 1_000 / calls) if calls else ""

    # The chart

    @cached_property
    def _drawn(self) -> list[Point]:
        points = self.found.points
        apart = max(1, -(-len(points) // DRAWN))
        return [*points[apart - 1 :: apart], *points[-1:]] if points else []

    @property
    def _last(self) -> int:
        return self.found.points[-1].limit if self.found.points else 1

    def _x(self, limit: int) -> float:
        return min(1000.0, limit * 1000 / self._last)

    def _path(self, values: list[int], whole: int) -> str:
        pairs = (
            f"{self._x(point.limit):.1f} {100 - 100 * value / max(1, whole):.2f}"
            for point, value in zip(self._drawn, values, strict=True)
        )
        return f"M{'L'.join(pairs)}" if values else ""

    @property
    def held_path(self) -> str:
        return self._path([point.held for point in self._drawn], self.sums.recalls)

    @property
    def held_area(self) -> str:
        first = self._x(self._drawn[0].limit) if self._drawn else 0
        return f"{self.held_path}L1000 100L{first:.1f} 100Z" if self._drawn else ""

    @property
    def lossless_path(self) -> str:
        return self._path([point.lossless for point in self._drawn], self.sums.count)

    @property
    def cost_path(self) -> str:
        return self._path([point.prompts for point in self._drawn], self.sums.everything)

    @cached_property
    def today(self) -> list[Limit]:
        """The limits in force that most conversations have."""
        common = self.found.limits.most_common(MARKED_LIMITS)
        return [Limit(limit, self._x(limit)) for limit, _ in sorted(common)]

    @property
    def today_on_phones(self) -> list[Label]:
        return labels_in(self.today, NARROW)

    @property
    def today_on_desks(self) -> list[Label]:
        return labels_in(self.today, WIDE)

    @property
    def picked(self) -> Mark | None:
        return Mark(self._x(self.pick.limit), f"{self.pick.limit:,}") if self.pick else None

    @property
    def ticks(self) -> list[Mark]:
        """Round limits along the axis."""
        rough = self._last / TICKS
        apart = next(
            step * 10**power
            for power in range(12)
            for step in (1, 2, 5)
            if step * 10**power >= max(rough, 1)
        )
        return [Mark(self._x(n), f"{n:,}") for n in range(apart, self._last + 1, apart)]

    # The lists

    @property
    def losers(self) -> Iterator[Listed]:
        if self.pick is None:
            return
        policy = self.asked.policy(self.pick.limit)
        for each in self.lists.losers:
            asked = Asked(each.id, (text_of_policy(policy), "everything"), each.at, each.fact)
            count = f"{each.lost:,} of {each.recalls:,}"
            link = "" if self.file else asked.link()
            yield Listed(each.id, link, each.fact, count, each.said, each.needed)

    @property
    def repeats(self) -> Iterator[Listed]:
        for each in self.lists.repeats:
            link = conversation_url(each.id, msg=each.again, find=each.fact)
            yield Listed(each.id, link, each.fact, "", each.said, each.again)

    # The forms

    @property
    def kinds(self) -> list[tuple[str, str, str, bool]]:
        """The kinds of policies: name, unit, address, and whether it is the chosen one."""
        return [
            (name, kind.unit, self.asked.link(kind=name, limit=""), name == self.asked.kind)
            for name, kind in policy_kinds().items()
        ]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The parameters that the form of the next slice repeats."""
        return list(self.asked.given.items())

    @property
    def csv(self) -> str:
        return self.asked.link(**{"as": "csv"})

    @property
    def stop(self) -> str:
        return self.asked.link(stop="1")

    @property
    def policy_text(self) -> str:
        """The policy of the chosen limit, which can be put in force."""
        if self.pick is None or self.pick.limit < self.least_limit:
            return ""
        return text_of_policy(self.asked.policy(self.pick.limit))


def percent(part: int, whole: int) -> str:
    """Return a share, rounded to a whole percent."""
    return f"{round(100 * part / whole)} %" if whole else "0 %"
