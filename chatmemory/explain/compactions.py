"""Compactions in words: what became a summary, and how what it lost came back."""

from __future__ import annotations

from chatmemory.core.recall.compactions import CameBack
from chatmemory.core.texts import named
from chatmemory.explain.wording import counted
from chatmemory.queries import StoredEvidence

_BACK = {
    CameBack.TOOL: "fetched again",
    CameBack.USER: "the user said it again",
    CameBack.UNKNOWN: "no recorded mention",
}


def what_became_a_summary(evidence: StoredEvidence) -> str:
    """Return what one summary replaced: `#1 to #411 became one summary`."""
    first, last, count = evidence.first, evidence.last, evidence.replaced
    if first is None or last is None:
        return "A summary of what is not recorded"
    if count > 1 and last - first + 1 == count:
        return f"{named(first)} to {named(last)} became one summary"
    return f"{counted(count, 'message')} became one summary"


def tokens_around(evidence: StoredEvidence, window: tuple[int, int]) -> str:
    """Return the tokens before and after: `91,204 tok in 2,711`. Those that an agent recorded are
    of its prompts, and not those of the `window`; empty if none are known.
    """
    before, after = evidence.tokens_before, evidence.tokens_after
    told = "" if (before, after) == window else "prompts of "
    if before is None:
        return "" if after is None else f"{told}{after:,} tok afterwards"
    return f"{told}{before:,} tok" + (" before" if after is None else f" in {after:,}")


def came_back(back: CameBack) -> str:
    """Return how a lost term was there again: it is never said that it was invented."""
    return _BACK[back]
