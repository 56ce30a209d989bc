"""What commands print of findings: a line for each, and their sum."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from chatmemory.core.lint.rules import Finding
from chatmemory.core.lint.turns import PROVIDERS

# The name of a conversation, a provider, and what it would say to its window
Diagnosis = tuple[str, str, Sequence[Finding]]


def tell_diagnoses(
    diagnoses: Iterable[Diagnosis], write: Callable[[str], object], as_json: bool = False
) -> int:
    """Write a line for each finding, as text or JSON, and without JSON their sum; return how many
    conversations would be refused.
    """
    refused: set[str] = set()
    mishandled: set[str] = set()
    for name, provider, findings in diagnoses:
        for each in findings:
            (refused if each.severity == "refused" else mishandled).add(name)
            row = {"conversation": name, "provider": provider, "rule": each.rule}
            row |= {"severity": each.severity, "message": each.message}
            told = f"{name}: {PROVIDERS[provider]}, {each.severity}: {each.message} [{each.rule}]"
            write(json.dumps(row) if as_json else told)
    if not as_json:
        write(f"{len(refused):,} refused; {len(mishandled - refused):,} only mishandled")
    return len(refused)
