"""Tests each provider rule with its two examples: a window that breaks the rule, and a window that
does not.

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
    """The result of testing a provider's law with the two examples of its rule.

    - `severity`: the severity that the law states.
    - `bad`: the severity found for the example that breaks the rule, or "clean" if nothing was
      found.
    - `good`: the severity found for the example that does not break the rule, or "clean".
    - `source`: the URL of the report about the provider's behavior. `dated` is the month of the
      report, or "date not known".

    The law `holds` if `bad` equals `severity` and `good` is "clean".
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
    """Yield a test result for each law of each provider rule. A law says how one provider treats a
    window that breaks a rule. Each law is tested with the two examples of its rule.
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
    """Print the test result of each law (see `tried_laws`). Returns 1 if a law does not hold for
    the examples of its rule, else 0.
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
