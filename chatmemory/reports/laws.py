"""Tests the rules of providers on their examples: a window that breaks the rule, and one that does
not.

A law says how one provider treats a window that breaks a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chatmemory.lint import PROVIDERS, Rule
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example, lint
from chatmemory.printing import Printer

CLEAN = "clean"


class TriedLaw(NamedTuple):
    """How one provider's law treats both examples of its rule. `bad` is the result for the window
    that breaks the rule, and `good` for the other: a severity, or "clean".

    The law `holds` if `bad` is its `severity` and `good` is "clean". `source` is the URL of the
    report about the law, and `dated` is the month of the report.
    """

    rule: str
    provider: str
    severity: str
    bad: str
    good: str
    source: str
    dated: str

    @property
    def holds(self) -> bool:
        return self.bad == self.severity and self.good == CLEAN


def tried_laws() -> Iterator[TriedLaw]:
    """Yield each law of each rule with its results for the two examples of the rule."""
    for rule in RULES.values():
        for provider, law in rule.laws.items():
            bad, good = (_verdict(rule, provider, each) for each in ("bad", "good"))
            yield TriedLaw(rule.id, provider, law.severity, bad, good, law.source, law.dated)


def _verdict(rule: Rule, provider: str, which: str) -> str:
    messages = example(getattr(rule, which), rule.example_provider)
    found = (each for each in lint(messages, provider=provider) if each.rule == rule.id)
    return next((each.severity for each in found), CLEAN)


def print_laws(printer: Printer) -> int:
    """Print each law with its results for both examples. Returns 1 if a law does not hold, else
    0.
    """
    count = broken = 0
    for each in tried_laws():
        count += 1
        broken += not each.holds
        line = f"{PROVIDERS[each.provider]}, {each.rule}: {each.bad} (bad), {each.good} (good)"
        printer.row({**each._asdict(), "holds": each.holds}, f"{line}; {each.source}, {each.dated}")
    printer.total(
        {"laws": count, "broken": broken},
        f"{count:,} rules, {broken:,} do not hold for their examples",
    )
    return 1 if broken else 0
