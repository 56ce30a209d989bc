"""The chart of the lab: the share of facts held against the cost, as circles and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from chatmemory.recall.advice import Advice, Chooser, Costed, percent_of
from chatmemory.windows.policies import WHOLE
from inspector.rooms.lab.words import HALF, dominated_words, policy_short

LETTER = 6.6  # pixels
ROW = 15.0
MOST_COST = 2.5
LEAST_HELD = 0.5


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
    """The chart on a screen: its frame, and its margins on the left, on top and below."""

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
PHONE = Size("front--phone", 358, 320, left=44, top=22, below=46, right=10, r=3.5)


class Frontier:
    """The policies of a frontier drawn in a size."""

    def __init__(self, chooser: Chooser, advice: Advice, yours: str, size: Size = WIDE) -> None:
        self.size, self._advice, self._chooser = size, advice, chooser
        self._recalls = chooser.sums.recalls
        today = advice.today
        lowest = min(LEAST_HELD, self._held(today) - 0.02 if today else 1)
        shown = [
            each for each in chooser.points if self._held(each) >= lowest and each.cost <= MOST_COST
        ]
        everything = chooser.everything
        costs = [each.cost for each in (*shown, everything, *([today] if today else []))]
        self._least_cost, self._most_cost = min(costs) - 0.03, max(costs) + 0.05
        self._least_held = max(0.0, min(map(self._held, [*shown, everything])) - 0.03)
        self.one = self._x(1.0)
        self.foot, self.right = _px(size.foot), _px(size.width - size.right)
        self.left = _px(size.left)
        self.zone = _px(size.width - size.right - float(self.one))
        self.zone_height = _px(size.foot - size.top)
        self._draw(shown, everything, today, yours)

    def _held(self, point: Costed) -> float:
        return point.tally.held / self._recalls

    def _x(self, cost: float) -> str:
        width = self.size.width - self.size.left - self.size.right
        share = (cost - self._least_cost) / (self._most_cost - self._least_cost)
        return _px(self.size.left + width * min(1.0, max(0.0, share)))

    def _y(self, held: float) -> str:
        height = self.size.foot - self.size.top - 14
        share = (held - self._least_held) / (1 - self._least_held)
        return _px(self.size.foot - height * min(1.0, max(0.0, share)))

    def _at(self, point: Costed) -> tuple[str, str]:
        return self._x(point.cost), self._y(self._held(point))

    def _draw(
        self, shown: Sequence[Costed], everything: Costed, today: Costed | None, yours: str
    ) -> None:
        sliding = [each for each in shown if self._is_as_today(each, str(WHOLE))]
        blocks = [each for each in shown if self._is_as_today(each, HALF)]
        lines = {*map(id, sliding), *map(id, blocks)}
        others = [each for each in shown if id(each) not in lines]
        self.slide_path = self._path([*sliding, everything])
        self.block_path = self._path([*blocks, everything])
        r = self.size.r
        self.dots = [self._dot("d-other", each, r - 1.5) for each in others]
        self.dots += [self._dot("d-slide", each, r) for each in sliding]
        self.dots += [self._dot("d-block", each, r) for each in blocks]
        self.all_x, self.all_y = (_px(float(at) - 5) for at in self._at(everything))
        self.rings: list[Dot] = []
        self._boxes: list[tuple[float, float, float, float]] = []
        self.texts: list[Text] = []
        self.move = ""
        pick = self._advice.pick
        if pick is not None:
            self.rings.append(self._dot("ring-in", pick, r + 6))
        if today is not None:
            self._draw_today(today, pick, yours)
        if pick is not None and pick.policy is not None:
            self._label(pick, policy_short(pick.policy), "t-in")
        for each in (*blocks[::-1], *sliding[::-1]):
            is_named = pick is not None and each.policy == pick.policy
            is_yours = today is not None and each[1:] == today[1:]
            if each.policy and not is_named and not is_yours and self._held(each) < 1:
                self._label(each, f"{each.policy.limit:,}", "")

    def _draw_today(self, today: Costed, pick: Costed | None, yours: str) -> None:
        is_out = self._advice.beaten_by is not None
        self.rings.append(self._dot("ring" if is_out else "ring-in", today, self.size.r + 5.5))
        self.dots.append(self._dot("d-you" if is_out else "d-block", today, self.size.r + 1.5))
        css = "t-you" if is_out else "t-in"
        # Below the point, because the line to what is suggested leads upwards
        below = float(self._at(today)[1]) + 2 * ROW
        dy = ROW if below < self.size.foot else 0
        self._label(today, f"yours today{f': {yours}' if yours else ''}", css, dy)
        if self._advice.beaten_by is not None and self.size is WIDE:
            told = dominated_words(today, self._advice.beaten_by, self._chooser.prices)
            self._label(today, told, "t-mid", dy + ROW)
        if pick is not None:
            (x, y), (to_x, to_y) = self._at(today), self._at(pick)
            self.move = f"M{x} {y}L{to_x} {to_y}"

    def _is_as_today(self, point: Costed, low_water: str) -> bool:
        kind = self._chooser.sums.tried.kind
        wanted = replace(kind, low_water=low_water)  # type: ignore[arg-type]
        return point.policy is not None and replace(point.policy, limit=kind.limit) == wanted

    def _path(self, points: Sequence[Costed]) -> str:
        return "M" + "L".join(" ".join(self._at(each)) for each in points)

    def _dot(self, css: str, point: Costed, r: float) -> Dot:
        held = f"{percent_of(point.tally.held, self._recalls)} %"
        if self.size is PHONE:
            return Dot(css, *self._at(point), _px(r), "")
        title = f"{policy_short(point.policy)}: {held} held, cost {point.cost:.2f}"
        return Dot(css, *self._at(point), _px(r), title)

    def _label(self, point: Costed, text: str, css: str, dy: float = 0) -> None:
        """Add a label beside a point where it touches no other; else none."""
        x, y = map(float, self._at(point))
        width, gap = LETTER * len(text), self.size.r + 8
        for anchor, start in (("start", x + gap), ("end", x - gap - width)):
            box = (start, y - 8 + dy, start + width, y + 6 + dy)
            inside = box[0] >= self.size.left - 20 and box[2] <= self.size.width
            if inside and not any(_touch(box, other) for other in self._boxes):
                self._boxes.append(box)
                at = start if anchor == "start" else start + width
                self.texts.append(Text(_px(at), _px(y + 4 + dy), anchor, css, text))
                return

    @property
    def held_ticks(self) -> list[Tick]:
        ticks = [number for number in range(101) if number / 100 >= self._least_held]
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
        """Where a window is worth it: x, y, width and height; None if that is not in the frame."""
        most = 1 - self._chooser.wanted.saving
        if most <= self._least_cost:
            return None
        bottom = float(self._y(self._chooser.wanted.share))
        width = float(self._x(most)) - self.size.left
        return self.left, _px(self.size.top), _px(width), _px(bottom - self.size.top)

    @property
    def words(self) -> str:
        """The chart in words."""
        everything = "Share held against cost, relative to sending everything."
        pick = self._advice.pick
        if pick is None or pick.policy is None:
            return f"{everything} Sending everything is suggested."
        held = percent_of(pick.tally.held, self._recalls)
        return f"{everything} Suggested: {policy_short(pick.policy)}, {held} % for {pick.cost:.2f}."


def _touch(box: tuple[float, float, float, float], other: tuple[float, ...]) -> bool:
    left, top, right, foot = box
    return left < other[2] and other[0] < right and top < other[3] and other[1] < foot


def _px(number: float) -> str:
    return f"{number:.1f}"
