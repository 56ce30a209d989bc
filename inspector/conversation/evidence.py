"""What a summary lost, in Why? of its step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatmemory import explain
from chatmemory.queries import (
    APPENDED,
    TAILS,
    TERMS_APPENDED,
    CameBack,
    Level,
    NeededTerm,
    NeededTerms,
    ShownEvidence,
    StepRow,
    StoredEvidence,
)


@dataclass(frozen=True)
class Held:
    """How many of the needed terms something holds: `more` than the summary does, if it is that
    with terms appended. `tail` tells that it is the end of the window.
    """

    label: str
    count: int
    share: float
    more: float = 0.0
    is_tail: bool = False


class EvidenceCard:
    """The presenter of what the summary of a step lost; `is_over` if nothing more will be said."""

    def __init__(self, shown: ShownEvidence, step: StepRow, *, is_over: bool) -> None:
        self._shown = shown
        self.evidence = shown.evidence
        self._terms = shown.evidence.needed_terms
        self.when = "later" if is_over else "so far"
        self.became = explain.what_became_a_summary(self.evidence)
        self.tokens = explain.tokens_around(self.evidence, (step.before.tokens, step.after.tokens))
        self.until = None if shown.is_current else shown.until
        self.dropped = shown.dropped
        self.appendable = min(self.evidence.dropped_count, TERMS_APPENDED)
        self.needed, self.held = len(self._terms.needed()), self._terms.held()
        self.bars = list(bars_of(self._terms, tails_of(self.evidence)))
        self.words = bars_in_words(self.bars, self.needed)

    @property
    def told(self) -> str:
        """How many of the terms the assistant had been told; empty where it was told all."""
        needed, held = len(self._terms.needed(Level.TOLD)), self._terms.held(Level.TOLD)
        if needed == self.needed:
            return ""
        return f"Of {needed:,} that it had been told, the summary holds {held:,}."

    @property
    def better(self) -> str:
        """That an end of the window would have held more than the summary with terms, if so."""
        most = self._terms.held(terms=TERMS_APPENDED)
        ends = [each for each in tails_of(self.evidence) if self._terms.in_tail(each) > most]
        if not ends:
            return ""
        return (
            f"The last {ends[0]:,} tokens, kept as they were, would have held more than the "
            f"summary with {TERMS_APPENDED} terms."
        )

    @property
    def numbers(self) -> str:
        """How many lost terms are plain numbers; empty without any."""
        lost = self._terms.lost()
        count = sum(each.is_number for each in lost)
        if not count:
            return ""
        are = "is a plain number" if count == 1 else "are plain numbers"
        return f"{count:,} of {len(lost):,} lost {are}, which no list of terms holds."

    @property
    def lost(self) -> list[tuple[NeededTerm, str, str]]:
        """Each lost term, how it came back, and the words before the message by which it did."""
        listed = self._shown.listed
        return [(each, explain.came_back(each.back), self._came_by(each)) for each in listed]

    def _came_by(self, term: NeededTerm) -> str:
        if term.back is CameBack.USER:
            return "said again in"
        tool = self._shown.tools.get(term.came or 0)
        return f"from {tool} in" if tool else "again in"

    @property
    def more(self) -> int:
        """How many lost terms are not listed."""
        return len(self._terms.lost()) - len(self._shown.listed)


def bars_of(found: NeededTerms, tails: Sequence[int], level: Level = Level.ALL) -> Iterator[Held]:
    """Yield what summaries hold, what they would with terms, and what the ends of the windows
    would.
    """
    needed, held = len(found.needed(level)), found.held(level)
    if not needed:
        return
    share = 100 * held / needed
    yield Held("the summary", held, share)
    for terms in APPENDED:
        count = found.held(level, terms)
        yield Held(f"+ {terms} terms", count, share, 100 * (count - held) / needed)
    for tokens in tails:
        count = found.in_tail(tokens, level)
        yield Held(f"last {tokens:,} tok", count, 100 * count / needed, is_tail=True)


def bars_in_words(bars: Sequence[Held], needed: int) -> str:
    """Return what bars show."""
    told = ", ".join(f"{each.label} {each.count:,}" for each in bars)
    return f"Held of {explain.counted(needed, 'term')}: {told}"


def tails_of(evidence: StoredEvidence) -> list[int]:
    """Return the tokens of the ends that are shorter than what there was."""
    before = evidence.tokens_before
    return [tokens for tokens in TAILS if before is None or tokens < before]
