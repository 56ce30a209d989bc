"""The page about compactions of many conversations: how many needed terms the summaries hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory.explain import wording
from chatmemory.recall.compactions import TAILS, Level, NeededTerms
from inspector.conversation.links import conversation_url
from inspector.rooms.evidence.compactions import CompactionOf, Compactions
from inspector.rooms.evidence.lost import LEVELS as TERMS
from inspector.rooms.evidence.lost import TermsBar, bars_in_words, bars_of
from inspector.shell.chosen import FIELDS, ChosenConversations

LISTED = 50
LEVELS = {Level.RARE: "Rare terms", Level.TOLD: "Terms it was told", Level.ALL: "All terms"}
WITH_TERMS = (25, 50)


class CompactionRow(NamedTuple):
    """A row of the table: all compactions, or those with one `summarizer` (author of the summary)
    and one `trigger` (such as "auto").

    - `compactions` is the number of compactions.
    - `needed` is the number of needed terms, and `held` how many of these terms the summaries hold.
    - `share` is `held` as a percentage of `needed`, or "" if no term was needed.
    - `others` has four numbers: how many needed terms each of four alternatives would hold. The
      alternatives are the summaries with 25 or 50 lost terms appended to each, and the last 10,000
      or 20,000 tokens instead of the summaries.
    - `css` is the CSS class of the row, or "".
    """

    summarizer: str
    trigger: str
    compactions: int
    needed: int
    held: int
    share: str
    others: Sequence[int]
    css: str = ""


class LosingCompaction(NamedTuple):
    """A compaction whose summary lost terms, as a line of a list: the summary lacks `lost` of the
    `needed` terms.

    - `id`: the ID of the conversation.
    - `link`: the URL of the step.
    - `by`: the author of the summary and the trigger of the compaction, such as `openai MODEL,
      auto`. Unknown values are left out.
    """

    id: str
    link: str
    step: int
    lost: int
    needed: int
    by: str


class CompactionsPage:
    """Presents the compactions of many conversations. The figures count the terms of one level,
    such as rare terms.
    """

    def __init__(
        self, found: Compactions, chosen: ChosenConversations, level: Level | None
    ) -> None:
        self.found, self.choice, self.level = found, chosen, level or found.corpus.headline
        level = self.level
        self._all = self._sum(found.measured)
        self.rows = self._rows()
        total = self.rows[-1]
        self.count, self.needed, self.share = total.compactions, total.needed, total.share
        self.bars: list[TermsBar] = list(bars_of(self._all, TAILS, level))
        self.words = bars_in_words(self.bars, self.needed)
        self.columns = [f"summary + {terms} terms" for terms in WITH_TERMS]
        self.columns += [f"last {tokens:,} tok instead" for tokens in TAILS]

    @property
    def levels(self) -> list[tuple[str, str, bool]]:
        """The levels of terms to choose from, such as rare terms: for each level, the name, the
        URL, and whether the level is chosen.
        """
        parameters = {name: value for name in FIELDS if (value := getattr(self.choice, name))}
        address = reverse("inspector:lab-compactions")
        return [
            (
                name,
                f"{address}?{urlencode({**parameters, 'level': level.value})}",
                level is self.level,
            )
            for level, name in LEVELS.items()
            if level is not Level.RARE or self.found.corpus.headline is Level.RARE
        ]

    @property
    def name(self) -> str:
        """The name of a term at the chosen level: `rare exact term` or `exact term`."""
        return TERMS[self.level]

    @property
    def whose(self) -> str:
        return "" if self.level is Level.ALL else "was given and "

    @property
    def better(self) -> str:
        """A sentence that says that the last messages would have held more terms than the
        summaries, each with a list of 50 lost terms.

        Example: `The last 10,000 tokens, kept as they were, would have held more than the summaries
        with 50 terms.`

        "" if neither the last 10,000 nor the last 20,000 tokens would have held more terms.
        """
        most = self._all.held(self.level, WITH_TERMS[-1])
        ends = [tokens for tokens in TAILS if self._all.in_tail(tokens, self.level) > most]
        if not ends:
            return ""
        return (
            f"The last {ends[0]:,} tokens, kept as they were, would have held more than the "
            f"summaries with {WITH_TERMS[-1]} terms."
        )

    def _rows(self) -> list[CompactionRow]:
        """Return a row for each summarizer and trigger, the most frequent first, then the total."""
        groups: defaultdict[tuple[str, str], list[CompactionOf]] = defaultdict(list)
        for each in self.found.measured:
            groups[each.evidence.summarizer, each.evidence.trigger].append(each)
        ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        rows = [self._row(*by, found) for by, found in ordered]
        return [*rows, self._row("all", "", self.found.measured, "is-pick")]

    def _row(
        self, summarizer: str, trigger: str, found: Sequence[CompactionOf], css: str = ""
    ) -> CompactionRow:
        terms = self._sum(found)
        needed, held = len(terms.needed(self.level)), terms.held(self.level)
        others = [terms.held(self.level, count) for count in WITH_TERMS]
        others += [terms.in_tail(tokens, self.level) for tokens in TAILS]
        share = wording.percent(held, needed) if needed else ""
        name = summarizer or "not recorded"
        return CompactionRow(name, trigger, len(found), needed, held, share, others, css)

    @property
    def losing(self) -> Iterator[LosingCompaction]:
        """Up to 50 compactions that lost terms, those that lost the most terms first."""
        found = [(len(self._sum([each]).lost(self.level)), each) for each in self.found.measured]
        found.sort(key=lambda pair: (-pair[0], pair[1].memory_id, pair[1].evidence.step))
        for lost, each in found[:LISTED]:
            if lost:
                id, evidence = each.memory_id, each.evidence
                link = conversation_url(id, at=evidence.step)
                needed = len(self._sum([each]).needed(self.level))
                by = ", ".join(filter(None, [evidence.summarizer, evidence.trigger]))
                yield LosingCompaction(id, link, evidence.step, lost, needed, by)

    def _sum(self, found: Sequence[CompactionOf]) -> NeededTerms:
        terms = (each.evidence.needed_terms(self.found.corpus).terms for each in found)
        return NeededTerms(tuple(chain.from_iterable(terms)))
