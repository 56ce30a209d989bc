"""Adds up turns, tokens, cost and cases by hour and by day, for any groups of conversations. The
hours of a conversation are added up only once for all groupings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from inspector.rooms.hours.fleet import Counting, Spent

Written = list[Any]  # turns, tokens and cost a turn, cases, and how many have calls, or have not


class Cell(NamedTuple):
    """The figures of one conversation in one hour or day: turns, tokens and cost for each turn (0
    without an answer), and cases by flag.

    `is_counted` means that the tokens are those of recorded calls, not estimates.
    """

    turns: int
    tokens: float
    cost: float
    is_counted: bool
    cases: dict[str, int] | None


class Columns:
    """The figures of conversations by day and by hour. The last days and hours begin at the times
    in `days` and `hours`.
    """

    def __init__(self, days: Sequence[int], hours: Sequence[int]) -> None:
        self._days, self._hours = days, {hour: n for n, hour in enumerate(hours)}
        self._sizes = {"days": len(days), "hours": len(hours)}
        self.cells: dict[str, list[tuple[int, str, Cell]]] = {}

    def add(self, rows: Iterable[Spent], known: Container[str], counting: Counting) -> None:
        """Add up the rows of conversations that are in `known`."""
        by_day: dict[tuple[int, str], list[Any]] = {}
        by_hour: dict[tuple[int, str], list[Any]] = {}
        for row in rows:
            if row.memory_id not in known:
                continue
            cases = counting.cases(row) if row.cases else None
            day = bisect_right(self._days, row.hour) - 1
            if day >= 0:
                _add(by_day, (day, row.memory_id), row, cases)
            hour = self._hours.get(row.hour)
            if hour is not None:
                _add(by_hour, (hour, row.memory_id), row, cases)
        self.cells = {"days": _cells(by_day), "hours": _cells(by_hour)}

    def grouped(self, group_of: Callable[[str], str]) -> dict[str, dict[str, list[Written]]]:
        """Return the figures by day and by hour of each group, for groups with any figures."""
        groups: dict[str, dict[str, list[list[Cell]]]] = {}
        for span, cells in self.cells.items():
            for place, memory_id, cell in cells:
                name = group_of(memory_id)
                if name not in groups:
                    groups[name] = {
                        each: [[] for _ in range(size)] for each, size in self._sizes.items()
                    }
                groups[name][span][place].append(cell)
        return {
            name: {span: [_written(cells) for cells in columns] for span, columns in spans.items()}
            for name, spans in groups.items()
        }

    def empty(self) -> dict[str, list[Written]]:
        return {span: [_written([]) for _ in range(size)] for span, size in self._sizes.items()}


def _add(
    sums: dict[tuple[int, str], list[Any]],
    key: tuple[int, str],
    row: Spent,
    cases: dict[str, int] | None,
) -> None:
    found = sums.get(key)
    if found is None:
        sums[key] = [row.turns, row.tokens, row.cost, row.is_counted, cases]
        return
    found[0] += row.turns
    found[1] += row.tokens
    found[2] += row.cost
    found[3] = found[3] or row.is_counted
    if cases:
        found[4] = _together(chain((found[4] or {}).items(), cases.items()))


def _cells(sums: dict[tuple[int, str], list[Any]]) -> list[tuple[int, str, Cell]]:
    return [
        (place, id, Cell(turns, tokens / (turns or 1), cost / (turns or 1), is_counted, cases))
        for (place, id), (turns, tokens, cost, is_counted, cases) in sums.items()
    ]


def _written(cells: Sequence[Cell]) -> Written:
    sent = [each for each in cells if each.turns and each.tokens]
    counted = sum(each.is_counted for each in sent)
    return [
        sum(each.turns for each in cells),
        round(median([each.tokens for each in sent])) if sent else 0,
        round(median([each.cost for each in sent])) if sent else 0,
        _together(pair for each in cells if each.cases for pair in each.cases.items()),
        counted,
        len(sent) - counted,
    ]


def _together(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, number in pairs:
        found[name] = found.get(name, 0) + number
    return found
