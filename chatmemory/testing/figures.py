"""Figures of recorded conversations, compared with a baseline of earlier figures.

A baseline is a JSON file with an entry for each folder or file under one policy:

    {"runs/ token_window:4000": {"conversations": 100, "recalls": 2073, "held": 1983, …}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chatmemory.exceptions import InvalidValue
from chatmemory.recall.cost import rules_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.testing.judging import Costs, prices_of
from chatmemory.testing.recorded import Recorded
from chatmemory.windows.written_policies import text_of_policy

PROVIDER = "openai"  # the provider whose cache the cost includes

# Figures that are better when they are larger (1) or smaller (-1). Others must not change.
BETTER: Mapping[str, int] = {
    "conversations": 0,
    "messages": 0,
    "recalls": 0,
    "held": 1,
    "forced": -1,
    IncidentKind.USER_REPEATED: -1,
    IncidentKind.CALL_REPEATED: -1,
    "calls": 0,
    "prompt_tokens": -1,
    "cost": -1,
}
WORDS: Mapping[str, str] = {
    "conversations": "conversations",
    "messages": "messages",
    "recalls": "facts needed again",
    "held": "facts held",
    "forced": "incidents in which a user had to say something again",
    IncidentKind.USER_REPEATED: "incidents user_repeated",
    IncidentKind.CALL_REPEATED: "incidents call_repeated",
    "calls": "calls of the model",
    "prompt_tokens": "tokens of all prompts",
    "cost": "cost relative to sending everything",
}
Figures = Mapping[str, float]


def figures_of_runs(runs: Sequence[Recorded]) -> dict[str, float]:
    """Return the figures of all these conversations together, such as `messages`, `held` or `cost`.

    `cost` is the cost of the prompts under the policy, divided by the cost of sending everything,
    rounded to 4 decimals.
    """
    costs = Costs.of(runs, rules_of(PROVIDER))
    cost = prices_of(PROVIDER).relative(costs.bill, costs.everything)
    incidents = [each for run in runs for each in run.incidents]
    kinds = [each.kind for each in incidents]
    return {
        "conversations": len(runs),
        "messages": sum(len(run.messages) for run in runs),
        "recalls": sum(run.compared.recalls for run in runs),
        "held": sum(run.compared.held for run in runs),
        "forced": sum(each.is_forced for each in incidents),
        IncidentKind.USER_REPEATED.value: kinds.count(IncidentKind.USER_REPEATED),
        IncidentKind.CALL_REPEATED.value: kinds.count(IncidentKind.CALL_REPEATED),
        "calls": costs.bill.calls,
        "prompt_tokens": costs.bill.tokens,
        "cost": round(cost, 4) if cost is not None else 0.0,
    }


def key_of(what: str, runs: Sequence[Recorded]) -> str:
    """Return the name of a baseline's entry, such as `runs/ token_window:4000`: the files that were
    read (`what`), and the policy.
    """
    return f"{what} {text_of_policy(runs[0].policy)}"


@dataclass(frozen=True)
class Difference:
    """A figure that differs from the baseline: `before` is its value in the baseline, and `now` its
    new value.
    """

    name: str
    before: float
    now: float

    @property
    def is_worse(self) -> bool:
        return (self.now - self.before) * BETTER.get(self.name, 0) <= 0

    def __str__(self) -> str:
        change = "" if not self.before else f" ({100 * (self.now / self.before - 1):+.1f} %)"
        words = WORDS.get(self.name, self.name)
        return f"{words}: {_number(self.before)} → {_number(self.now)}{change}"


def differences(before: Figures, now: Figures) -> list[Difference]:
    """Return the figures that differ, in the order of `now`. A figure that is missing in `before`
    or in `now` is left out.
    """
    return [
        Difference(name, before[name], now[name])
        for name in now
        if name in before and before[name] != now[name]
    ]


def worsened(key: str, found: Sequence[Difference]) -> str:
    """Return all differences as lines of text, if at least one is worse than the baseline.
    Otherwise return "".

    A changed figure that is neither good nor bad, such as `messages`, counts as worse. `key` is the
    name of the baseline's entry.
    """
    worse = [each for each in found if each.is_worse]
    if not worse:
        return ""
    lines = [f"{key}: worse than the baseline", *(f"  {each}" for each in worse)]
    better = [f"  better: {each}" for each in found if not each.is_worse]
    return "\n".join([*lines, *better])


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


class Baseline:
    """A JSON file with the figures of an earlier run, to compare new figures with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = _read(path)
        self.added: dict[str, Figures] = {}

    def compare(self, key: str, now: Figures) -> list[Difference]:
        """Return how the figures differ from the entry `key` of the baseline.

        If there is no such entry, return [], and `write` will add the entry.
        """
        before = self._known.get(key)
        if before is None:
            self.added[key] = now
            return []
        return differences(before, now)

    def write(self) -> bool:
        """Write the file if there are new entries, and return whether it was written."""
        if not self.added:
            return False
        entries = dict(sorted((_read(self.path) | self.added).items()))
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.path)
        return True


def _read(path: Path) -> dict[str, Figures]:
    """Return the entries of a file, {} if there is no file. Raises InvalidValue."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror}") from error
    try:
        found: dict[str, Figures] = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"{path} is not a baseline file: {error}") from error
    is_sound = isinstance(found, dict) and all(map(_is_entry, found.values()))
    if not is_sound:
        raise InvalidValue(
            f"{path} is not a baseline file: it must contain a JSON object of figures by name"
        )
    return found


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int | float) for each in value.values())
