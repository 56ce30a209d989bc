"""What providers say to a window, in a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.lint.catalog import RULES
from chatmemory.core.lint.rules import Finding, findings
from chatmemory.core.lint.turns import ANTHROPIC, OPENAI, PROVIDERS, Sent, Turn

ASKED = (OPENAI, ANTHROPIC)


@dataclass(frozen=True)
class Verdict:
    """One provider's answer to a window, with the name that people have for it."""

    provider: str
    findings: tuple[Finding, ...] = ()

    @property
    def accepts(self) -> bool:
        return not any(each.severity == "refused" for each in self.findings)

    @property
    def answer(self) -> str:
        """The answer in words, with the first finding that tells."""
        if not self.findings:
            return "Yes."
        refused = (each for each in self.findings if each.severity == "refused")
        first = next(refused, None)
        if first is None:
            what = self.findings[0].message
            return f"Yes, although {what if what.startswith('AI') else what[0].lower() + what[1:]}"
        is_waiting = first.message.endswith("is waiting for its results.")
        return f"{'Not yet' if is_waiting else 'No'}. {first.message}"


def verdicts(turns: Sequence[Turn]) -> tuple[Verdict, ...]:
    """Return the verdicts of the providers that pages ask."""
    return tuple(
        Verdict(PROVIDERS[name], tuple(findings(Sent(turns, name), RULES.values())))
        for name in ASKED
    )
