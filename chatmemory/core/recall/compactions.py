"""What a summary lost of the exact terms in what it replaced, without any model.

A term is a fact (see `facts`). It was needed again if the assistant used it in a later message that
is no summary. Only what happened afterwards shows that, so that what was needed is a lower bound.
The summary holds a term if the term stands in it, or in a message that was kept. Words with the
same sense are not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chatmemory.core.estimators import TokenCountEstimator, estimator_for
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import DEFAULT_ESTIMATOR
from chatmemory.core.recall.facts import DATE, NO_WORDS, Sayings, Words, facts_of, said_texts
from chatmemory.core.recall.held import Terms
from chatmemory.core.sessions import Compaction, Session

APPENDED = (10, 25, 50, 100)  # how many terms are tried
TAILS = (10_000, 20_000)  # how many tokens
LIMIT = 50
RARE = 2  # sessions of a corpus
ENOUGH = 0.5  # of what was replaced
# More is in no prompt before the first message of a session.
_MOST_AT_FIRST = 45_000
_NUMBER = re.compile(r"[\d.,+\-]+", re.ASCII)
_VERSION = re.compile(r"\d+(\.\d+){2,}", re.ASCII)
_WEIGHTS = {MessageType.USER: 3, MessageType.AI: 3}  # others: 1


class Level(StrEnum):
    """Which terms are counted: all of them, those that the assistant had been told, or the told
    ones that few sessions mention.
    """

    ALL = "all"
    TOLD = "told"
    RARE = "rare"


class CameBack(StrEnum):
    """How a lost term was there again when the assistant used it."""

    TOOL = "tool"
    USER = "user"
    UNKNOWN = "no recorded mention"


@dataclass(frozen=True)
class NeededTerm:
    """A term that was replaced, and that the assistant used again.

    `said`, `came` and `used` are positions: where a user said it last, else a tool, else the
    assistant; the first mention after the summary, if one was recorded before the use; and the use.
    `place` is that among the dropped terms, from 0; None for one that is none of them, such as a
    plain number. `tail` are the tokens of the shortest end of the window that holds it.
    """

    term: str
    said: int
    used: int
    back: CameBack
    came: int | None
    is_held: bool
    is_told: bool
    is_rare: bool
    is_number: bool
    place: int | None
    tail: int

    def counts_at(self, level: Level) -> bool:
        return {Level.ALL: True, Level.TOLD: self.is_told, Level.RARE: self.is_rare}[level]


@dataclass(frozen=True)
class NeededTerms:
    """The terms that were needed after a compaction, in the order of their uses."""

    terms: tuple[NeededTerm, ...]

    def needed(self, level: Level = Level.ALL) -> list[NeededTerm]:
        return [each for each in self.terms if each.counts_at(level)]

    def lost(self, level: Level = Level.ALL) -> list[NeededTerm]:
        return [each for each in self.needed(level) if not each.is_held]

    def held(self, level: Level = Level.ALL, terms: int = 0) -> int:
        """Return how many needed terms the summary holds, with so many dropped terms appended."""
        return sum(
            each.is_held or (each.place is not None and each.place < terms)
            for each in self.needed(level)
        )

    def in_tail(self, tokens: int, level: Level = Level.ALL) -> int:
        """Return how many the last so many tokens would have held in place of the summary."""
        return sum(each.tail <= tokens for each in self.needed(level))


@dataclass(frozen=True)
class Evidence(NeededTerms):
    """What one compaction lost, `number` from 1.

    `dropped` are the terms that would be appended, best first, and `mentions` the positions of the
    latest replaced messages that mention them. `coverage` is the share of the prompt's tokens that
    the replaced messages account for; None if the prompts are not known.
    """

    number: int
    compaction: Compaction
    dropped: tuple[str, ...]
    mentions: tuple[int, ...]
    coverage: float | None

    @property
    def why_left_out(self) -> str | None:
        """Why the compaction cannot be measured; None if it can."""
        return why_left_out(self.coverage, is_opaque=self.compaction.is_opaque)


def why_left_out(coverage: float | None, *, is_opaque: bool) -> str | None:
    """Return why a compaction cannot be measured; None if it can."""
    if is_opaque:
        return "its summary is encrypted"
    if coverage is not None and coverage < ENOUGH:
        return f"only {coverage:.0%} of what it replaced is recorded"
    return None


def dropped_terms(
    replaced: Sequence[ChatMessage],
    summary: str,
    limit: int = LIMIT,
    *,
    words: Words = NO_WORDS,
) -> list[str]:
    """Return the terms of messages that a summary does not hold, those first that matter most.

    A term weighs one for each message that mentions it, three if that is the user's or the
    assistant's; of equal ones, the one mentioned latest is first. Plain numbers are left out.
    Raises InvalidValue for a limit below 0.
    """
    if limit < 0:
        raise InvalidValue(f"the limit of terms must be 0 or more, but is: {limit}")
    weights = [_WEIGHTS.get(each.type, 1) for each in replaced]
    facts = [facts_of(each, words) for each in replaced]
    mentions = _mentions_in(dict(enumerate(facts)))
    held = Terms(mentions).held_by(summary)
    return [term for term, _ in _dropped(mentions, weights, held)[:limit]]


def compaction_evidence(
    session: Session,
    *,
    mentions: Mapping[str, int] | None = None,
    words: Words = NO_WORDS,
    estimator: str = DEFAULT_ESTIMATOR,
) -> list[Evidence]:
    """Return what each compaction of a session lost.

    `mentions` tell for each term how many sessions of a corpus mention it; without them, this
    session is the corpus. Raises UnknownEstimator.
    """
    return list(_Sources(session, mentions, words, estimator_for(estimator)).evidence())


def terms_of(session: Session, words: Words = NO_WORDS) -> frozenset[str]:
    """Return all terms that a session mentions."""
    return frozenset().union(*(facts_of(each, words) for each in session.messages))


class _Sources:
    """The terms and texts of a session, read once."""

    def __init__(
        self,
        session: Session,
        mentions: Mapping[str, int] | None,
        words: Words,
        estimator: TokenCountEstimator,
    ) -> None:
        self._session, self._estimator = session, estimator
        self._summaries = session.summaries
        self._mentions = mentions or {}
        self._facts = [facts_of(each, words) for each in session.messages]
        self._texts = [tuple(said_texts(each)) for each in session.messages]
        self._types = list(map(self._type, range(len(self._facts))))
        self._tokens: dict[int, int] = {}
        facts = dict(enumerate(self._facts))
        self._mentioned = _mentions_in(facts)
        self._mentioned_by_others = _mentions_in(
            {each: facts[each] for each in facts if each not in self._summaries}
        )

    def _type(self, position: int) -> MessageType:
        """Return the type of a message; what a program wrote for the user is a tool's."""
        if position in self._session.by_programs:
            return MessageType.TOOL_EXECUTION_RESULT
        return self._session.messages[position].type

    def evidence(self) -> Iterator[Evidence]:
        for number, compaction in enumerate(self._session.compactions, 1):
            seen = [each for each in compaction.covered if not self._is_cleared(each, compaction)]
            held = self._held_after(seen, compaction)
            found = self._dropped(seen, held)
            dropped = tuple(term for term, _ in found)
            terms = tuple(self._needed(seen, compaction, dropped, held))
            mentions = tuple(seen[place] for _, place in found)
            coverage = self._coverage(seen, compaction)
            yield Evidence(terms, number, compaction, dropped, mentions, coverage)

    def _is_cleared(self, position: int, compaction: Compaction) -> bool:
        cleared = self._session.cleared.get(position)
        return cleared is not None and cleared <= compaction.summary

    def _held_after(self, seen: Sequence[int], compaction: Compaction) -> set[str]:
        """Return the terms of messages that the window after a compaction holds."""
        terms = Terms(frozenset().union(*(self._facts[each] for each in seen)))
        texts = (text for each in compaction.window for text in self._texts[each])
        return set().union(*map(terms.held_by, texts))

    def _dropped(self, seen: Sequence[int], held: Collection[str]) -> list[tuple[str, int]]:
        weights = [_WEIGHTS.get(self._types[each], 1) for each in seen]
        mentions = _mentions_in({at: self._facts[each] for at, each in enumerate(seen)})
        return _dropped(mentions, weights, held)

    def _needed(
        self,
        seen: Sequence[int],
        compaction: Compaction,
        dropped: Sequence[str],
        held: Collection[str],
    ) -> Iterator[NeededTerm]:
        mentions = _mentions_in({each: self._facts[each] for each in seen})
        used = self._uses_after(compaction.summary, mentions)
        sayings = Sayings()
        for position in seen:
            sayings.hear(position, self._types[position], self._facts[position])
        needed = sorted(used, key=lambda term: (used[term], term))
        places = {term: place for place, term in enumerate(dropped)}
        tails = self._tails([*seen, *compaction.kept], needed)
        for term in needed:
            said = sayings.said(term)
            first = next(self._after(term, compaction.summary))
            came = first if first < used[term] else None
            is_told = self._types[self._mentioned[term][0]] is not MessageType.AI
            yield NeededTerm(
                term,
                mentions[term][-1] if said is None else said,
                used[term],
                self._how(came),
                came,
                is_held=term in held,
                is_told=is_told,
                is_rare=is_told and self._mentions.get(term, 1) <= RARE,
                is_number=_is_number(term),
                place=places.get(term),
                tail=tails[term],
            )

    def _uses_after(self, summary: int, terms: Iterable[str]) -> dict[str, int]:
        """Return where the assistant used each of some terms first after a summary."""
        uses: dict[str, int] = {}
        for term in terms:
            for position in self._after(term, summary):
                if self._types[position] is MessageType.AI:
                    uses[term] = position
                    break
        return uses

    def _after(self, term: str, summary: int) -> Iterator[int]:
        """Yield the later messages that mention a term, without summaries."""
        mentioned = self._mentioned_by_others.get(term, ())
        for place in range(bisect_right(mentioned, summary), len(mentioned)):
            yield mentioned[place]

    def _how(self, came: int | None) -> CameBack:
        if came is None:
            return CameBack.UNKNOWN
        return CameBack.USER if self._types[came] is MessageType.USER else CameBack.TOOL

    def _tails(self, window: Sequence[int], terms: Iterable[str]) -> dict[str, int]:
        """Return the tokens of the shortest end of a window that holds each term."""
        missing, tokens = set(terms), 0
        looked_for = Terms(missing)
        tails: dict[str, int] = {}
        for position in reversed(window):
            if not missing:
                break
            tokens += self._count(position)
            found = missing & set().union(*map(looked_for.held_by, self._texts[position]))
            tails |= dict.fromkeys(found, tokens)
            missing -= found
        return tails

    def _count(self, position: int) -> int:
        if position not in self._tokens:
            count = self._estimator.estimate_token_count_in_text
            self._tokens[position] = sum(map(count, self._texts[position]))
        return self._tokens[position]

    def _coverage(self, seen: Sequence[int], compaction: Compaction) -> float | None:
        prompts = sorted(self._session.prompts.items())
        before = [tokens for position, tokens in prompts if position < compaction.summary]
        after = [tokens for position, tokens in prompts if position > compaction.summary]
        if not before:
            return None
        replaced = before[-1] - min([before[0], *after[:1], _MOST_AT_FIRST])
        return sum(map(self._count, seen)) / replaced if replaced > 0 else None


def _mentions_in(facts: Mapping[int, Collection[str]]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, each in facts.items():
        for fact in each:
            found[fact].append(position)
    return found


def _dropped(
    mentions: Mapping[str, Sequence[int]], weights: Sequence[int], held: Collection[str]
) -> list[tuple[str, int]]:
    """Return the terms that are not held and that are no plain numbers, best first, each with the
    place of the last facts that have it.

    `mentions` are the places of the facts that have a term, and `weights` what each place counts.
    """
    weighed = {term: sum(weights[place] for place in mentions[term]) for term in mentions}
    ranked = sorted(mentions, key=lambda term: (-weighed[term], -mentions[term][-1], term))
    dropped = (term for term in ranked if not _is_number(term) and term not in held)
    return [(term, mentions[term][-1]) for term in dropped]


def _is_number(term: str) -> bool:
    """Return whether a term is a plain number: dates and dotted versions are none."""
    is_named = DATE.fullmatch(term) or _VERSION.fullmatch(term)
    return _NUMBER.fullmatch(term) is not None and is_named is None
