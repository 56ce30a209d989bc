"""The chart of the lab. Each point stands for a policy: its height is the share of needed facts
that the policy would have held. Its place from left to right is the cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from chatmemory.advice import Advice, Option
from chatmemory.advice.words import name_of, policy_short, share_words
from chatmemory.windows.policies import WHOLE
from inspector.rooms.lab.frameworks import Mark

LETTER = 6.6  # pixels
ROW = 15.0
LOWER = (0.0, ROW, 2 * ROW, -ROW)  # pixels by which a label is lower than its place
Box = tuple[float, float, float, float]  # left, top, right, foot
Segment = tuple[float, float, float, float]  # from x, y to x, y
EVERYTHING = "sending everything"  # above the line of its cost
MOST_COST = 2.5
LEAST_HELD = 0.5
HALF = Decimal("0.5")  # of the limit, to which a window is trimmed


class Dot(NamedTuple):
    css: str
    x: str
    y: str
    r: str
    title: str


class Text(NamedTuple):
    x: str
    y: str
    anchor: str
    css: str
    text: str


class Tick(NamedTuple):
    at: str
    text: str
    css: str = ""


@dataclass(frozen=True)
class Size:
    """A size of the chart for one kind of screen, in pixels.

    - `css`: the CSS class of the chart.
    - `left`, `top`, `below`, `right`: the margins around the plot.
    - `r`: the radius of points.
    """

    css: str
    width: float
    height: float
    left: float = 44
    top: float = 26
    below: float = 44
    right: float = 24
    r: float = 4

    @property
    def foot(self) -> float:
        return self.height - self.below


WIDE = Size("front--wide", 1040, 430)
TABLET = Size("front--tablet", 700, 380)
PHONE = Size("front--phone", 358, 320, left=44, top=22, below=46, right=10, r=3.5)


class Frontier:
    """Draws the chart of the lab in one size. The points are policies of the `advice`, and
    strategies of agent frameworks from `marks`.

    Points that cost too much for the scale are left out, and so are policies that hold too few
    facts. Today's policy and sending everything are always drawn.
    """

    def __init__(
        self,
        advice: Advice,
        everything: Option,
        size: Size = WIDE,
        marks: Sequence[Mark] = (),
    ) -> None:
        self.size, self._advice = size, advice
        self._marks = [each for each in marks if each.cost <= MOST_COST]
        today = advice.today
        lowest = min(LEAST_HELD, today.share - 0.02 if today else 1)
        shown = sorted(
            (each for each in advice.options if each.share >= lowest and each.cost <= MOST_COST),
            key=lambda each: each.policy.limit if each.policy else 0,
        )
        costs = [each.cost for each in (*shown, everything, *([today] if today else []))]
        costs += [each.cost for each in self._marks]
        self._least_cost, self._most_cost = min(costs) - 0.03, max(costs) + 0.05
        shares = [each.share for each in (*shown, everything)]
        shares += [each.share for each in self._marks]
        self._least_share = max(0.0, min(shares) - 0.03)
        self.one = self._x(1.0)
        self.foot, self.right = _px(size.foot), _px(size.width - size.right)
        self.left = _px(size.left)
        self.zone = _px(size.width - size.right - float(self.one))
        self.zone_height = _px(size.foot - size.top)
        self._draw(shown, everything, today)

    def _x(self, cost: float) -> str:
        width = self.size.width - self.size.left - self.size.right
        share = (cost - self._least_cost) / (self._most_cost - self._least_cost)
        return _px(self.size.left + width * min(1.0, max(0.0, share)))

    def _y(self, share_held: float) -> str:
        height = self.size.foot - self.size.top - 14
        share = (share_held - self._least_share) / (1 - self._least_share)
        return _px(self.size.foot - height * min(1.0, max(0.0, share)))

    def _at(self, point: Option | Mark) -> tuple[str, str]:
        return self._x(point.cost), self._y(point.share)

    def _draw(
        self,
        shown: Sequence[Option],
        everything: Option,
        today: Option | None,
    ) -> None:
        sliding = [each for each in shown if self._is_as_today(each, WHOLE)]
        blocks = [each for each in shown if self._is_as_today(each, HALF)]
        lines = {*map(id, sliding), *map(id, blocks)}
        others = [each for each in shown if id(each) not in lines]
        self.slide_path = self._path([*sliding, everything])
        self.block_path = self._path([*blocks, everything])
        self._lines = [*self._segments([*sliding, everything])]
        self._lines += self._segments([*blocks, everything])
        r = self.size.r
        self.dots = [self._dot("d-other", each, r - 1.5) for each in others]
        self.dots += [self._dot("d-slide", each, r) for each in sliding]
        self.dots += [self._dot("d-block", each, r) for each in blocks]
        self.dots += map(self._dot_of_framework, self._marks)
        self.all_x, self.all_y = (_px(float(at) - 5) for at in self._at(everything))
        self.rings: list[Dot] = []
        self.title, half = EVERYTHING, LETTER * len(EVERYTHING) / 2
        one = float(self.one)
        self._lines.append((one, 0, one, self.size.foot))
        self._boxes: list[Box] = [(one - half, 4, one + half, 18)]
        self.texts: list[Text] = []
        self.move = ""
        pick = self._advice.pick
        if pick is not None:
            self.rings.append(self._dot("ring-in", pick, r + 6))
        if today is not None:
            self._draw_today(today, pick)
        if pick is not None and pick.policy is not None:
            self._label(pick, [("t-in", policy_short(pick.policy))])
        for mark in self._marks if self.size is not PHONE else ():
            self._label(mark, [("t-lib", mark.name)])
        for each in (*blocks[::-1], *sliding[::-1]):
            if each in self._advice.others and each.policy:
                self._label(each, [("", f"{each.policy.limit:,}")])

    def _draw_today(self, today: Option, pick: Option | None) -> None:
        is_out = self._advice.is_dominated(today)
        self.rings.append(self._dot("ring" if is_out else "ring-in", today, self.size.r + 5.5))
        self.dots.append(self._dot("d-you" if is_out else "d-block", today, self.size.r + 1.5))
        if pick is not None:
            self.move = self._path([today, pick])
            self._lines += self._segments([today, pick])
        yours = "" if today.mixed or self.size is PHONE else f": {name_of(today)}"
        rows = [("t-you" if is_out else "t-in", f"today{yours}")]
        # Below the point, because the line to what is suggested leads upwards
        below = float(self._at(today)[1]) + len(rows) * ROW
        self._label(today, rows, ROW if below < self.size.foot else 0)

    def _is_as_today(self, point: Option, low_water: Decimal) -> bool:
        """Return whether the policy of a point is trimmed to this share (`low_water`) and has no
        other options.
        """
        policy = point.policy
        if policy is None or policy.snap_to_user or policy.whole_results:
            return False
        return policy.low_water == low_water

    def _path(self, points: Sequence[Option]) -> str:
        return "M" + "L".join(" ".join(self._at(each)) for each in points)

    def _segments(self, points: Sequence[Option]) -> Iterator[Segment]:
        places = [tuple(map(float, self._at(each))) for each in points]
        for (x, y), (to_x, to_y) in pairwise(places):
            yield x, y, to_x, to_y

    def _dot(self, css: str, point: Option, r: float) -> Dot:
        """Return a circle. On wide screens, today's policy, the advised policy and other good
        options have a title.
        """
        advice = self._advice
        if self.size is not WIDE or point not in (advice.today, advice.pick, *advice.others):
            return Dot(css, *self._at(point), _px(r), "")
        title = (
            f"{name_of(point)}: {share_words(point)} of facts held, relative cost {point.cost:.2f}"
        )
        return Dot(css, *self._at(point), _px(r), title)

    def _dot_of_framework(self, mark: Mark) -> Dot:
        """Return the circle of a framework's memory, with its version in the title."""
        name = f"{mark.name}, {mark.version}" if mark.version else mark.name
        title = f"{name}: {mark.held_words} of facts held, relative cost {mark.cost:.2f}"
        shown = title if self.size is WIDE else ""
        return Dot("d-lib", *self._at(mark), _px(self.size.r), shown)

    def _label(self, point: Option | Mark, rows: Sequence[tuple[str, str]], dy: float = 0) -> None:
        """Add a label for a point, where it touches no other label and no line. Each row has a text
        and a class.

        If there is no such place, a line may cross a row that has a class.
        """
        found = (each for more in LOWER for each in self._places(point, rows, dy + more))
        places = [each for each in found if self._is_free(each[1])]
        clear = [each for each in places if not self._is_crossed(each[1])]
        chosen = clear or [each for each in places if rows[0][0]]
        if not chosen:
            return
        anchor, box = chosen[0]
        self._boxes.append(box)
        at = {"start": box[0], "middle": (box[0] + box[2]) / 2, "end": box[2]}[anchor]
        for n, (css, text) in enumerate(rows):
            self.texts.append(Text(_px(at), _px(box[1] + 12 + n * ROW), anchor, css, text))

    def _places(
        self, point: Option | Mark, rows: Sequence[tuple[str, str]], dy: float
    ) -> Iterator[tuple[str, Box]]:
        """Yield the possible places of a label: right, left, above and below the point."""
        x, y = map(float, self._at(point))
        width, gap = LETTER * max(len(text) for _, text in rows), self.size.r + 8
        height = 14 + ROW * (len(rows) - 1)
        yield "start", (x + gap, y - 8 + dy, x + gap + width, y - 8 + dy + height)
        yield "end", (x - gap - width, y - 8 + dy, x - gap, y - 8 + dy + height)
        left, right = x - width / 2, x + width / 2
        yield "middle", (left, y - gap - height, right, y - gap)
        yield "middle", (left, y + gap, right, y + gap + height)

    def _is_free(self, box: Box) -> bool:
        """Return whether a box is within the frame and touches no label."""
        inside = box[0] >= self.size.left - 20 and box[2] <= self.size.width
        return inside and box[3] <= self.size.foot and not any(_touch(box, o) for o in self._boxes)

    def _is_crossed(self, box: Box) -> bool:
        return any(_cross(line, box) for line in self._lines)

    @property
    def share_ticks(self) -> list[Tick]:
        ticks = [number for number in range(101) if number / 100 >= self._least_share]
        apart = next(step for step in (1, 2, 5, 10, 20, 50) if len(ticks) / step <= 6)
        return [
            Tick(self._y(number / 100), f"{number} %" if number == 100 else str(number))
            for number in ticks
            if number % apart == 0
        ]

    @property
    def cost_ticks(self) -> list[Tick]:
        span = self._most_cost - self._least_cost
        apart = next((step for step in (10, 20, 25, 50) if 100 * span / step <= 9), 100)
        first = -(-int(100 * self._least_cost) // apart) * apart
        numbers = range(max(first, 0), int(100 * self._most_cost) + 1, apart)
        return [
            Tick(self._x(number / 100), f"{number / 100:.2f}", "t-ink" if number == 100 else "")
            for number in numbers
        ]

    @property
    def worth(self) -> tuple[str, str, str, str] | None:
        """The rectangle of the chart where policies reach the goals of the advice: they hold enough
        facts and save enough.

        The values are x and y of the upper left corner, width and height. None if no cost on the
        chart is low enough.
        """
        most = 1 - self._advice.goals.saving
        if most <= self._least_cost:
            return None
        bottom = float(self._y(self._advice.goals.share))
        width = float(self._x(most)) - self.size.left
        return self.left, _px(self.size.top), _px(width), _px(bottom - self.size.top)

    @property
    def words(self) -> str:
        """A description of the chart in words, for screen readers."""
        everything = "Share of facts held, by cost relative to sending everything."
        pick = self._advice.pick
        if pick is None or pick.policy is None:
            return f"{everything} Sending everything is suggested."
        held = share_words(pick)
        return (
            f"{everything} Suggested: {policy_short(pick.policy)}, {held} of facts held at "
            f"{pick.cost:.2f}."
        )


def _touch(box: Box, other: Box) -> bool:
    left, top, right, foot = box
    return left < other[2] and other[0] < right and top < other[3] and other[1] < foot


def _cross(line: Segment, box: Box) -> bool:
    (x, y, to_x, to_y), (left, top, right, foot) = line, box
    start, end = 0.0, 1.0  # the part of the line between the sides, then also between top and foot
    for at, by, least, most in ((x, to_x - x, left, right), (y, to_y - y, top, foot)):
        if by:
            first, last = sorted(((least - at) / by, (most - at) / by))
            start, end = max(start, first), min(end, last)
        elif not least <= at <= most:
            return False
    return start <= end


def _px(number: float) -> str:
    return f"{number:.1f}"
