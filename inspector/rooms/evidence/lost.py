"""The card of the terms that a summary lost: terms that the assistant needed later, and that the
summary lacks. The side panel shows this card at the step of the compaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.explain import wording
from chatmemory.reading.rows import StepRow
from chatmemory.recall.compactions import (
    APPENDED,
    CORPUS,
    TAILS,
    Level,
    NeededTerm,
    NeededTerms,
)
from chatmemory.recall.facts import LIMIT as TERMS_APPENDED
from inspector.rooms.evidence import words
from inspector.rooms.evidence.compactions import ShownEvidence
from inspector.rooms.evidence.losses import StoredEvidence


@dataclass(frozen=True)
class TermsBar:
    """A bar that shows how many needed terms (`count`) a text holds.

    - `label` names the text: the summary, the summary with a list of lost terms, or the last
      messages.
    - `is_tail` is True for the last messages.
    - `share` is the percentage of needed terms that the summary alone holds, or that the last
      messages hold.
    - `more` is the percentage of needed terms that the list of lost terms adds; 0 without a list.
    """

    label: str
    count: int
    share: float
    more: float = 0.0
    is_tail: bool = False


LEVELS = {
    Level.RARE: "rare exact term",
    Level.TOLD: "exact term",
    Level.ALL: "exact term",
}


class EvidenceCard:
    """Presents the terms that a step's summary lost. `is_over` is True for a conversation that will
    not continue, because it was imported.
    """

    def __init__(self, shown: ShownEvidence, step: StepRow, *, is_over: bool) -> None:
        self._shown, self._terms, self._level = shown, shown.terms, shown.level
        self.evidence = shown.evidence
        self.when = "later" if is_over else "so far"
        self.became = words.what_became_a_summary(self.evidence)
        self.tokens = words.tokens_around(self.evidence, (step.before.tokens, step.after.tokens))
        self.until = None if shown.is_current else shown.until
        self.dropped = shown.dropped
        self.appendable = min(self.evidence.dropped_count, TERMS_APPENDED)
        self.needed, self.held = len(self._terms.needed()), self._terms.held()
        self.bars = list(bars_of(self._terms, tails_of(self.evidence), self._level))
        self.words = bars_in_words(self.bars, self.needed_first)

    @property
    def needed_first(self) -> int:
        """The number of needed terms that `headline` counts: rare terms. While it is unknown which
        terms are rare, all terms that a user or a tool gave to the assistant count.
        """
        return len(self._terms.needed(self._level))

    @property
    def headline(self) -> str:
        """The headline of the card: `Of 12 rare exact terms that the assistant was given and needed
        so far, the summary holds 7.`

        While it is unknown which terms are rare, the headline counts all exact terms that the
        assistant was given and needed.
        """
        name = LEVELS[self._level]
        if not self.needed_first:
            return f"Of the replaced messages, the assistant needed no {name} {self.when}."
        needed, held = wording.counted(self.needed_first, name), self._terms.held(self._level)
        whose = f"that the assistant was given and needed {self.when}"
        return f"Of {needed} {whose}, the summary holds {held:,}."

    @property
    def of_all(self) -> str:
        """The sentence after the headline. It also counts terms that are not rare: `Of all 30 terms
        that the assistant was given and needed, the summary holds 9.`

        With fewer than five compacted conversations, the sentence says that rare terms are not
        known yet.
        """
        if self._level is Level.TOLD:
            return (
                "All exact terms are counted. Rare terms are known from "
                f"{CORPUS} conversations with a summary on."
            )
        needed, held = len(self._terms.needed(Level.TOLD)), self._terms.held(Level.TOLD)
        terms = wording.counted(needed, "term")
        return (
            f"Of all {terms} that the assistant was given and needed, the summary holds {held:,}."
        )

    @property
    def better(self) -> str:
        """A sentence that says that the last messages would have held more terms than the summary
        with a list of 50 lost terms.

        Example: `The last 10,000 tokens, kept as they were, would have held more terms than the
        summary with 50 terms.`

        "" if the last messages would not have held more terms. `tails_of` returns the compared
        sizes of the last messages.
        """
        level = self._level
        most = self._terms.held(level, TERMS_APPENDED)
        tails = tails_of(self.evidence)
        ends = [each for each in tails if self._terms.in_tail(each, level) > most]
        if not ends:
            return ""
        return (
            f"The last {ends[0]:,} tokens, kept as they were, would have held more terms than the "
            f"summary with {TERMS_APPENDED} terms."
        )

    @property
    def lost(self) -> list[LostTerm]:
        """The lost terms in the card's list that `headline` counts."""
        return list(map(self._lost, self._listed_at(self._level)))

    @property
    def others(self) -> list[LostTerm]:
        """The lost terms in the card's list that `headline` does not count, such as terms that are
        not rare.
        """
        first = set(self._listed_at(self._level))
        return [self._lost(each) for each in self._shown.listed if each not in first]

    def _listed_at(self, level: Level) -> list[NeededTerm]:
        return [each for each in self._shown.listed if each.counts_at(level)]

    def _lost(self, term: NeededTerm) -> LostTerm:
        return LostTerm(term, words.came_back(term.back), self._came_by(term))

    def _came_by(self, term: NeededTerm) -> str:
        tool = self._shown.tools.get(term.came or 0)
        return f"from {tool} in" if tool else "again in"

    @property
    def more(self) -> int:
        """The number of lost terms that are not in the card's list."""
        return len(self._terms.lost()) - len(self._shown.listed)


class LostTerm(NamedTuple):
    """A lost term, as a line of the card.

    - `term`: the term, with the messages that said it and used it.
    - `how`: how the term came back, such as `repeated by the user`.
    - `by`: the words before the number of the message that brought the term back, such as `again
      in`.
    """

    term: NeededTerm
    how: str
    by: str


def bars_of(found: NeededTerms, tails: Sequence[int], level: Level) -> Iterator[TermsBar]:
    """Yield bars that show how many needed terms of the `level` a text holds. Nothing is yielded if
    no terms of the `level` were needed.

    The first bar is for the summary alone. The next four are for the summary with a list of 10, 25,
    50 and 100 lost terms. The others are for the last messages, one bar for each number of tokens
    in `tails`.
    """
    needed, held = len(found.needed(level)), found.held(level)
    if not needed:
        return
    share = 100 * held / needed
    yield TermsBar("summary alone", held, share)
    for terms in APPENDED:
        count = found.held(level, terms)
        yield TermsBar(f"summary + {terms} terms", count, share, 100 * (count - held) / needed)
    for tokens in tails:
        count = found.in_tail(tokens, level)
        yield TermsBar(f"last {tokens:,} tok instead", count, 100 * count / needed, is_tail=True)


def bars_in_words(bars: Sequence[TermsBar], needed: int) -> str:
    """Return a sentence with the counts of the bars, for screen readers: `Held of 12 terms: summary
    alone 7, summary + 10 terms 8`. `needed` is the number of needed terms.
    """
    figures = ", ".join(f"{each.label} {each.count:,}" for each in bars)
    return f"Held of {wording.counted(needed, 'term')}: {figures}"


def tails_of(evidence: StoredEvidence) -> list[int]:
    """Return the sizes of the last messages that the bars compare with the summary: 10,000 and
    20,000 tokens. If `evidence.tokens_before` is known, only sizes below this number are returned.
    """
    before = evidence.tokens_before
    return [tokens for tokens in TAILS if before is None or tokens < before]
