"""The chart of the lab: what each limit holds, as paths, with its axis and the limits in force."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from chatmemory.queries import Fleet, Point
from inspector.conversation.timeline import Label
from inspector.lab.today import NARROW, WIDE, Limit, labels_in, number_at

DRAWN = 240
MARKED_LIMITS = 3
TICKS = 8


@dataclass(frozen=True)
class Mark:
    """A line at a limit, at x of 1,000, with its words."""

    x: float
    words: str

    @property
    def label(self) -> Label:
        return number_at(self.words, self.x)


class Curve:
    """The chart of a fleet, in which a limit can be marked."""

    def __init__(self, found: Fleet, pick: Point | None) -> None:
        self._found = found
        self._points = found.points
        self._pick = pick

    @cached_property
    def _drawn(self) -> list[Point]:
        points = self._points
        apart = max(1, -(-len(points) // DRAWN))
        return [*points[apart - 1 :: apart], *points[-1:]] if points else []

    @property
    def _last(self) -> int:
        return self._points[-1].limit if self._points else 1

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
        return self._path([point.held for point in self._drawn], self._found.sums.recalls)

    @property
    def held_area(self) -> str:
        first = self._x(self._drawn[0].limit) if self._drawn else 0
        return f"{self.held_path}L1000 100L{first:.1f} 100Z" if self._drawn else ""

    @property
    def lossless_path(self) -> str:
        return self._path([point.lossless for point in self._drawn], self._found.sums.count)

    @property
    def cost_path(self) -> str:
        return self._path([point.prompts for point in self._drawn], self._found.sums.everything)

    @cached_property
    def today(self) -> list[Limit]:
        """The limits in force that most conversations have."""
        common = self._found.limits.most_common(MARKED_LIMITS)
        return [Limit(limit, self._x(limit)) for limit, _ in sorted(common)]

    @property
    def today_on_phones(self) -> list[Label]:
        return labels_in(self.today, NARROW)

    @property
    def today_on_desks(self) -> list[Label]:
        return labels_in(self.today, WIDE)

    @property
    def picked(self) -> Mark | None:
        return Mark(self._x(self._pick.limit), f"{self._pick.limit:,}") if self._pick else None

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
