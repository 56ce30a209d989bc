"""Figures of a benchmark: ratios of calls that were timed in turns, each with its limit."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from statistics import median

from benchmarks.database import migrated

QUICK = os.environ.get("QUICK") == "1"


@dataclass(frozen=True)
class Figure:
    """A measured ratio and its limit. `detail` has the times.

    The ratio is infinite where nothing could be measured.
    """

    name: str
    ratio: float
    limit: float
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.ratio <= self.limit

    def __str__(self) -> str:
        """A line of the table."""
        mark = "ok  " if self.ok else "MISS"
        return f"{mark} {self.ratio:8.2f} of {self.limit:<5g} {self.name} ({self.detail})"

    def as_json(self) -> str:
        """The figure as one line of JSON."""
        ratio = round(self.ratio, 3) if math.isfinite(self.ratio) else None
        shown = {"name": self.name, "ratio": ratio, "limit": self.limit}
        return json.dumps(shown | {"ok": self.ok, "detail": self.detail})


@dataclass(frozen=True)
class Elsewhere:
    """A call that is timed elsewhere, such as in another process, and returns milliseconds."""

    call: Callable[[], float]


Timed = Callable[[], object] | Elsewhere


def in_turns(calls: Mapping[str, Timed], rounds: int) -> dict[str, float]:
    """Return the median time of each call in milliseconds.

    The calls take turns, so that other work of the machine slows all of them alike. The first round
    is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + (rounds // 5 if QUICK else rounds)):
        for name, call in calls.items():
            times[name].append(_milliseconds(call))
    return {name: median(each[1:]) for name, each in times.items()}


def _milliseconds(call: Timed) -> float:
    if isinstance(call, Elsewhere):
        return call.call()
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def compared(name: str, limit: float, times: Mapping[str, float]) -> Figure:
    """Return the ratio of the first of two times to the second."""
    (what, first), (other, second) = times.items()
    detail = f"{what} {first:.3g} ms, {other} {second:.3g} ms"
    return Figure(name, first / second, limit, detail)


def measure(part: str) -> list[Figure]:
    """Measure the figures of a module in a new database, and print each as soon as it is known."""
    figures = []
    with migrated() as folder:
        for figure in import_module(f"benchmarks.{part}").figures(folder):
            print(figure, flush=True)
            figures.append(figure)
    return figures
