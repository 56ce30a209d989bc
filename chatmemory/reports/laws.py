"""Tests the rules of providers: tries each rule on its two example windows, a faulty one and a
correct one.

A law is what one provider does with a window that breaks a rule.
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
    """A provider's law, tried on both examples of its rule. `bad` is the result for the faulty
    window, and `good` the result for the correct window: a severity, or `clean`.

    The law `holds` if `bad` is the law's own `severity`, and `good` is `clean`. `source` is the URL
    of the report about the law, and `dated` the month of the report.
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
    """Yield all laws, each tried on both examples of its rule. A law is what one provider does with
    a window that breaks a rule.
    """
    for rule in RULES.values():
        for provider, law in rule.laws.items():
            bad, good = (_verdict(rule, provider, each) for each in ("bad", "good"))
            yield TriedLaw(rule.id, provider, law.severity, bad, good, law.source, law.dated)


def _verdict(rule: Rule, provider: str, which: str) -> str:
    messages = example(getattr(rule, which), rule.example_provider)
    found = (each for each in lint(messages, provider=provider) if each.rule == rule.id)
    return next((each.severity for each in found), CLEAN)


def print_laws(printer: Printer) -> int:
    """Print each law with what it finds in both examples. Return 1 if any law does not hold, else
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
