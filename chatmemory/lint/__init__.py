"""The linter: windows that a provider will refuse, or take otherwise than meant, and why.

    findings_in(turns, provider)    what rules find in a window
    refusals_in(turns, provider)    what of it is refused
    verdicts(turns)                 what providers say to a window, in a sentence each
    RULES                           the rules by id, each with its source and two examples

`chatmemory.lint.linter` asks about messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatmemory.lint.catalog import RULES
from chatmemory.lint.rules import Finding, Rule, findings
from chatmemory.lint.turns import ANTHROPIC, COMBINING, OPENAI, PROVIDERS, Sent, Turn, Waiting

__all__ = [
    "ASKED",
    "COMBINING",
    "PROVIDERS",
    "RULES",
    "Finding",
    "Rule",
    "Sent",
    "Turn",
    "Verdict",
    "Waiting",
    "findings_in",
    "refusals_in",
    "verdicts",
]

ASKED = (OPENAI, ANTHROPIC)  # the providers that lessons ask


def findings_in(turns: Iterable[Turn], provider: str, model: str | None = None) -> list[Finding]:
    """Return the findings of a provider in a window, refused or mishandled, in its order."""
    return findings(Sent(turns, provider, model=model), RULES.values())


def refusals_in(turns: Iterable[Turn], provider: str, models: Sequence[str] = ()) -> list[Finding]:
    """Return the refusals of a provider in a window, or of one of its models if any are named."""
    said = list(turns)
    found = (findings_in(said, provider, model) for model in models or (None,))
    return [each for findings in found for each in findings if each.severity == "refused"]


@dataclass(frozen=True)
class Verdict:
    """One provider's answer to a window, with the name that people have for it."""

    provider: str
    findings: Sequence[Finding] = ()

    @property
    def _refusal(self) -> Finding | None:
        return next((each for each in self.findings if each.severity == "refused"), None)

    @property
    def accepts(self) -> bool:
        return self._refusal is None

    @property
    def answer(self) -> str:
        """The answer in words, with the first finding that tells."""
        if refusal := self._refusal:
            return f"{'Not yet' if refusal.is_pending else 'No'}. {refusal.message}"
        minded = [each for each in self.findings if each.severity != "conditional"]
        if not minded:
            return "Yes."
        what = minded[0].message
        return f"Yes, although {what if what.startswith('AI') else what[0].lower() + what[1:]}"


def verdicts(turns: Sequence[Turn]) -> tuple[Verdict, ...]:
    """Return the verdicts of the providers that lessons ask."""
    return tuple(Verdict(PROVIDERS[name], findings_in(turns, name)) for name in ASKED)
