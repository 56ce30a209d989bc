"""Which conversations a provider will refuse, or take otherwise than they were meant, and why.

    findings_in(turns, provider)    what rules find in a window
    RULES                           the rules by id, each with its source and two examples

`chatmemory.linting` asks about messages.
"""

from collections.abc import Iterable

from chatmemory.core.lint.catalog import RULES
from chatmemory.core.lint.rules import Finding, Law, Rule, findings
from chatmemory.core.lint.turns import COMBINING, PROVIDERS, Sent, Turn, Waiting
from chatmemory.core.lint.verdicts import ASKED, Verdict, verdicts

__all__ = [
    "ASKED",
    "COMBINING",
    "PROVIDERS",
    "RULES",
    "Finding",
    "Law",
    "Rule",
    "Sent",
    "Turn",
    "Verdict",
    "Waiting",
    "findings_in",
    "verdicts",
]


def findings_in(turns: Iterable[Turn], provider: str) -> list[Finding]:
    """Return what a provider refuses or mishandles in a window, in its order."""
    return findings(Sent(turns, provider), RULES.values())
