"""Figures of a benchmark: ratios of two things that were timed in turns, each with its limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """How a measured ratio compares with its limit; `detail` names what was timed."""

    name: str
    ratio: float
    limit: float
    detail: str
    at_least: bool = False

    @property
    def ok(self) -> bool:
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    def as_json(self) -> str:
        """Return the figure as one line: name, ratio, limit, ok and detail."""
        shown = asdict(self) | {"ratio": round(self.ratio, 3), "ok": self.ok}
        del shown["at_least"]
        return json.dumps(shown)


def in_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median time of each call in seconds; the calls take turns, so that whatever else
    the machine does slows all of them alike.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: median(each) for name, each in times.items()}


def show(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Print a line of the table for each figure, as soon as it is measured."""
    for figure in figures:
        sign = "≥" if figure.at_least else "≤"
        mark = "ok  " if figure.ok else "MISS"
        print(
            f"{mark} {figure.ratio:8.2f} {sign} {figure.limit:<6g} {figure.name}: {figure.detail}"
        )
        yield figure
