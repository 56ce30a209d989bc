"""Finds the exact terms that a summary lost from the messages that it replaced. Needs no model.

- A term is a fact (see `facts`). Paraphrases are not recognized.
- A term was needed again if the assistant used it in a later message. Only recorded messages are
  searched, so more terms may have been needed than are found.
- A needed term is held if the summary, or a message that stayed in memory, contains it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple, TypeVar

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.estimators import TokenCountEstimator, estimator_for
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.recall.again import Sayings
from chatmemory.recall.facts import LIMIT, NO_WORDS, Words, texts_with_facts
from chatmemory.recall.lexicon import Lexicon, MessageFacts
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

APPENDED = (10, 25, 50, 100)  # numbers of appended terms to try
TAILS = (10_000, 20_000)  # lengths of the end of the window to try, in tokens
RARE = 2  # a term is rare if at most so many sessions of a corpus mention it
CORPUS = 5  # the fewest sessions among which a term can be rare
ENOUGH = 0.5  # the least share of the replaced messages that must be readable
# More is in no prompt before the first message of a session.
_MOST_AT_FIRST = 45_000
_TELLERS = (MessageType.USER, MessageType.TOOL_EXECUTION_RESULT)
_WEIGHTS = {MessageType.USER: 3, MessageType.AI: 3}  # others: 1


class Level(StrEnum):
    """Which terms are counted.

    - ALL: all terms.
    - TOLD: the terms whose first mention is not by the assistant.
    - RARE: the terms of TOLD that at most two sessions mention.
    """

    ALL = "all"
    TOLD = "told"
    RARE = "rare"


def headline(sessions: int) -> Level:
    """Return the level whose figures are shown first: RARE for at least CORPUS sessions,
    else TOLD.
    """
    return Level.RARE if sessions >= CORPUS else Level.TOLD


class ReturnedBy(StrEnum):
    """Who mentioned a term again, after a summary and before the assistant used the term: a tool or
    the user. UNKNOWN if no recorded message did.
    """

    TOOL = "tool"
    USER = "user"
    UNKNOWN = "no recorded mention"


# Wide: all that is known of one use of a term, of which stored rows keep the numbers.
@dataclass(frozen=True)
class NeededTerm:
    """A term of a replaced message that the assistant used again after the compaction.

    - `term`: the term as the assistant wrote it. `name` is the same for all ways to write the term,
      such as those of a date.
    - `said`: the position of the last replaced user message with the term. If there is none, the
      position of the last tool result with the term, or else of the last message with it.
    - `used`: the position of the first message after the summary in which the assistant uses the
      term.
    - `back`: who first mentioned the term again, after the summary and before the message at
      `used`. `came` is the position of this mention, or None.
    - `is_held`: whether memory still had the term after the compaction.
    - `is_told`, `is_rare`: whether the term counts at the level TOLD, and at RARE.
    - `place`: the index of the term among the lost terms; None if it is held.
    - `tail`: the tokens from the last message with the term to the end of the window before the
      compaction.
    """

    term: str
    name: str
    said: int
    used: int
    back: ReturnedBy
    came: int | None
    is_held: bool
    is_told: bool
    is_rare: bool
    place: int | None
    tail: int

    def counts_at(self, level: Level) -> bool:
        return {Level.ALL: True, Level.TOLD: self.is_told, Level.RARE: self.is_rare}[level]


@dataclass(frozen=True)
class NeededTerms:
    """The terms that the assistant used again after a compaction, in the order of their uses."""

    terms: tuple[NeededTerm, ...]

    def needed(self, level: Level = Level.ALL) -> list[NeededTerm]:
        return [each for each in self.terms if each.counts_at(level)]

    def lost(self, level: Level = Level.ALL) -> list[NeededTerm]:
        return [each for each in self.needed(level) if not each.is_held]

    def held(self, level: Level = Level.ALL, terms: int = 0) -> int:
        """Return how many needed terms memory still had. Only terms of this level count.

        If `terms` is 10, the first ten lost terms count as held, as if they had been appended to
        the summary.
        """
        return sum(
            each.is_held or (each.place is not None and each.place < terms)
            for each in self.needed(level)
        )

    def in_tail(self, tokens: int, level: Level = Level.ALL) -> int:
        """Return how many needed terms are in the last `tokens` tokens of the window before the
        compaction. Only terms of this level count.
        """
        return sum(each.tail <= tokens for each in self.needed(level))


@dataclass(frozen=True)
class Evidence(NeededTerms):
    """The terms that one compaction of a session lost (`dropped`), and the terms that were needed
    again (`terms`). A needed term can be lost or held.

    - `number`: the number of the compaction in its session, from 1.
    - `dropped`: the lost terms. The first is the best to append to the summary.
    - `mentions`: for each lost term, the position of the latest replaced message with the term.
    - `coverage`: how much of the replaced messages is recorded, as an estimated share of their
      tokens; None if unknown.
    """

    number: int
    compaction: Compaction
    dropped: tuple[str, ...]
    mentions: tuple[int, ...]
    coverage: float | None

    @property
    def why_left_out(self) -> str | None:
        """Why the compaction cannot be measured, in words; None if it can be measured."""
        return why_left_out(self.coverage, is_opaque=self.compaction.is_opaque)


def why_left_out(coverage: float | None, *, is_opaque: bool) -> str | None:
    """Return why a compaction cannot be measured, in words; None if it can be measured.

    `coverage` is the share of the replaced tokens whose messages are recorded; None if unknown.
    `is_opaque` means that the summary is encrypted.
    """
    if is_opaque:
        return "its summary is encrypted"
    if coverage is not None and coverage < ENOUGH:
        return f"only {coverage:.0%} of the messages that it replaced is recorded"
    return None


def dropped_terms(
    replaced: Sequence[ChatMessage],
    summary: str,
    limit: int = LIMIT,
    *,
    words: Words = NO_WORDS,
) -> list[str]:
    """Return at most `limit` terms of replaced messages that a summary does not contain, the
    heaviest first.

    A term weighs 3 for each message of a user or the assistant with the term, and 1 for each other
    message with it. Of equally heavy terms, the latest comes first. Raises InvalidValue for a limit
    below 0.
    """
    ranked, _ = _ranked(replaced, summary, limit, words)
    return list(ranked.values())


def dropped_and_beside(
    replaced: Sequence[ChatMessage],
    summary: str,
    stay: Iterable[ChatMessage],
    limit: int = LIMIT,
    *,
    words: Words = NO_WORDS,
) -> tuple[list[str], int]:
    """Return the `dropped_terms` of a summary, and how many of these terms the messages in `stay`
    contain. `stay` are the messages in memory beside the summary.
    """
    ranked, lexicon = _ranked(replaced, summary, limit, words)
    texts = chain.from_iterable(map(texts_with_facts, stay))
    held = lexicon.mentioned_in(["\n".join([summary, *texts])])
    lost = {text for term, text in ranked.items() if term not in held}
    return list(ranked.values()), len(set(ranked.values()) - lost)


def _ranked(
    replaced: Sequence[ChatMessage], summary: str, limit: int, words: Words
) -> tuple[dict[str, str], Lexicon]:
    """Return the `dropped_terms`, and the lexicon of the replaced messages. Each term is as
    written, by its name.
    """
    if limit < 0:
        raise InvalidValue(f"the limit of terms must be 0 or more, but is: {limit}")
    lexicon = Lexicon(replaced, words)
    weights = [_WEIGHTS.get(each.type, 1) for each in replaced]
    mentions = _mentions_in({at: _terms(each) for at, each in enumerate(lexicon.of)})
    ranked = _dropped(mentions, weights, lexicon.mentioned_in([summary]))[:limit]
    return {term: lexicon.of[place].own[term] for term, place in ranked}, lexicon


def _terms(facts: MessageFacts) -> Collection[str]:
    """Return the names of the facts in a message that can count as lost. Pairs of key and value
    cannot.
    """
    return facts.own.keys() - facts.pairs


def compaction_evidence(
    session: Session,
    *,
    mentions: Mapping[str, int] | None = None,
    words: Words = NO_WORDS,
    estimator: str = DEFAULT_ESTIMATOR,
) -> list[Evidence]:
    """Return the evidence of each compaction of a session, in order: the terms that were lost, and
    the terms that were needed again.

    `mentions` maps each term to the number of sessions that mention it. By default, this number is
    1 for all terms. Raises UnknownEstimator.
    """
    return list(_Sources(session, mentions, words, estimator_for(estimator)).evidence())


def newest_dropped(session: Session, words: Words = NO_WORDS) -> list[tuple[str, int]]:
    """Return the terms that the newest summary of a session lost, the heaviest first (see
    `dropped_terms`). Each term comes with the position of the last replaced message that mentions
    it.

    Empty if the session has no compaction, or if its newest summary is encrypted.
    """
    if not session.compactions or session.compactions[-1].is_opaque:
        return []
    return _Sources(session, None, words, None).dropped_by(session.compactions[-1])


def terms_of(session: Session, words: Words = NO_WORDS) -> frozenset[str]:
    """Return all terms that a session mentions."""
    return frozenset().union(*map(_terms, Lexicon(session.messages, words).of))


class SessionPath(NamedTuple):
    """One path through a recorded session. A session has several paths if the user went back to an
    earlier message. All paths of a session share a beginning.

    `root` identifies the session and is the same for all its paths. `name` is shown to people.
    """

    root: str
    name: str
    session: Session


class CompactionId(NamedTuple):
    """The identity of a compaction, which is the same on all paths of its session. `root`
    identifies the session, and `boundary` is the key from `boundary_of`.
    """

    root: str
    boundary: str


def boundary_of(session: Session, compaction: Compaction) -> str:
    """Return a key of a compaction: a hash of the summary's text, followed by the number of
    replaced messages. The key is the same on all paths of a session (see `SessionPath`).
    """
    import hashlib  # with it comes OpenSSL, which nothing else here needs

    text = "\n".join(texts_with_facts(session.messages[compaction.summary]))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{digest}-{len(compaction.covered)}"


Found = TypeVar("Found")


def each_once(
    found: Iterable[Found],
    identity: Callable[[Found], CompactionId],
    weight: Callable[[Found], tuple[int, int]],
) -> list[Found]:
    """Return one item for each compaction, in order of first occurrence. Several items can be about
    the same compaction, because several paths of a session can have it.

    `identity` returns the compaction that an item is about. Of the items about the same compaction,
    the item with the highest `weight` is returned.
    """
    chosen: dict[CompactionId, Found] = {}
    for each in found:
        key = identity(each)
        known = chosen.get(key)
        if known is None or weight(each) > weight(known):
            chosen[key] = each
    return list(chosen.values())


class CorpusEvidence(NamedTuple):
    """What the compactions of many sessions lost. `found` has each compaction's evidence, with the
    path through its session. `sessions` is the number of sessions.
    """

    sessions: int
    found: Sequence[tuple[SessionPath, Evidence]]


def corpus_evidence(
    paths: Sequence[SessionPath], words: Words = NO_WORDS, estimator: str = DEFAULT_ESTIMATOR
) -> CorpusEvidence:
    """Return what the compactions of some sessions lost. A compaction counts once, even if several
    paths contain it. A term is rare if at most two of these sessions mention it (see `Level`).
    """
    terms: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        terms[path.root] |= terms_of(path.session, words)
    mentions = Counter(term for each in terms.values() for term in each)
    found = (
        (path, each)
        for path in paths
        for each in compaction_evidence(
            path.session, mentions=mentions, words=words, estimator=estimator
        )
    )
    chosen = each_once(
        found,
        lambda each: CompactionId(each[0].root, boundary_of(each[0].session, each[1].compaction)),
        lambda each: (
            len(each[1].terms),
            len(each[0].session.messages) - each[1].compaction.summary,
        ),
    )
    return CorpusEvidence(len(terms), chosen)


class _Sources:
    """The terms and texts of a session, read once."""

    def __init__(
        self,
        session: Session,
        mentions: Mapping[str, int] | None,
        words: Words,
        estimator: TokenCountEstimator | None,
    ) -> None:
        self._session, self._estimator = session, estimator
        self._summaries = session.summaries
        self._mentions = mentions or {}
        self._facts = Lexicon(session.messages, words).of
        self._texts = [tuple(texts_with_facts(each)) for each in session.messages]
        self._types = list(map(self._type, range(len(self._facts))))
        self._tokens: dict[int, int] = {}
        everyone = {at: each.mentions for at, each in enumerate(self._facts)}
        self._mentioned = _mentions_in(everyone)
        self._mentioned_by_others = _mentions_in(
            {at: each for at, each in everyone.items() if at not in self._summaries}
        )

    def _type(self, position: int) -> MessageType:
        """Return the type of a message. A user message that a program wrote counts as a tool
        result.
        """
        if position in self._session.by_programs:
            return MessageType.TOOL_EXECUTION_RESULT
        return self._session.messages[position].type

    def evidence(self) -> Iterator[Evidence]:
        for number, compaction in enumerate(self._session.compactions, 1):
            readable, in_window = self._readable(compaction), self._in_window(compaction)
            found = self._dropped(readable, in_window)
            places = {term: place for place, (term, _) in enumerate(found)}
            terms = tuple(self._needed(readable, compaction, places, in_window))
            mentions = tuple(readable[place] for _, place in found)
            dropped = tuple(self._facts[readable[place]].own[term] for term, place in found)
            coverage = self._coverage(readable, compaction)
            yield Evidence(terms, number, compaction, dropped, mentions, coverage)

    def dropped_by(self, compaction: Compaction) -> list[tuple[str, int]]:
        readable = self._readable(compaction)
        found = self._dropped(readable, self._in_window(compaction))
        return [
            (self._facts[at].own[term], at) for term, at in ((t, readable[p]) for t, p in found)
        ]

    def _readable(self, compaction: Compaction) -> list[int]:
        """Return the positions of the replaced messages whose text the agent still saw."""
        return [each for each in compaction.covered if not self._is_cleared(each, compaction)]

    def _in_window(self, compaction: Compaction) -> frozenset[str]:
        return frozenset().union(*(self._facts[at].mentions for at in compaction.window))

    def _is_cleared(self, position: int, compaction: Compaction) -> bool:
        cleared = self._session.cleared.get(position)
        return cleared is not None and cleared <= compaction.summary

    def _dropped(
        self, readable: Sequence[int], in_window: Collection[str]
    ) -> list[tuple[str, int]]:
        weights = [_WEIGHTS.get(self._types[each], 1) for each in readable]
        mentions = _mentions_in({at: _terms(self._facts[each]) for at, each in enumerate(readable)})
        return _dropped(mentions, weights, in_window)

    def _needed(
        self,
        readable: Sequence[int],
        compaction: Compaction,
        places: Mapping[str, int],
        in_window: Collection[str],
    ) -> Iterator[NeededTerm]:
        mentions = _mentions_in({each: _terms(self._facts[each]) for each in readable})
        used = self._uses_after(compaction.summary, mentions)
        sayings = Sayings()
        for position in readable:
            sayings.hear(position, self._types[position], self._facts[position].said)
        needed = sorted(used, key=lambda name: (used[name], name))
        tails = self._tails([*readable, *compaction.kept], needed)
        for name in needed:
            source = sayings.last_mention(name)
            first_mention = self._came_back(name, compaction.summary, used[name])
            is_told = self._types[self._mentioned[name][0]] is not MessageType.AI
            yield NeededTerm(
                self._facts[used[name]].own[name],
                name,
                mentions[name][-1] if source is None else source,
                used[name],
                self._how(first_mention),
                first_mention,
                is_held=name in in_window,
                is_told=is_told,
                is_rare=is_told and self._mentions.get(name, 1) <= RARE,
                place=places.get(name),
                tail=tails[name],
            )

    def _uses_after(self, summary: int, terms: Iterable[str]) -> dict[str, int]:
        """Return the position of the assistant's first use of each term after a summary."""
        uses: dict[str, int] = {}
        for term in terms:
            for position in self._after(term, summary):
                if self._types[position] is MessageType.AI and term in self._facts[position].own:
                    uses[term] = position
                    break
        return uses

    def _came_back(self, term: str, summary: int, used: int) -> int | None:
        """Return the position of the first message of a user or a tool with a term, after the
        summary and before the use. None if there is none.
        """
        for position in self._after(term, summary):
            if position >= used:
                return None
            if self._types[position] in _TELLERS and term in self._facts[position].said:
                return position
        return None

    def _after(self, term: str, summary: int) -> Iterator[int]:
        """Yield the positions of later messages with a term. Summaries are left out."""
        mentioned = self._mentioned_by_others.get(term, ())
        for place in range(bisect_right(mentioned, summary), len(mentioned)):
            yield mentioned[place]

    def _how(self, first_mention: int | None) -> ReturnedBy:
        if first_mention is None:
            return ReturnedBy.UNKNOWN
        return (
            ReturnedBy.USER if self._types[first_mention] is MessageType.USER else ReturnedBy.TOOL
        )

    def _tails(self, window: Sequence[int], terms: Iterable[str]) -> dict[str, int]:
        """Return, for each term, the tokens from the last message with it to the end of the
        window.
        """
        missing, tokens = set(terms), 0
        tails: dict[str, int] = {}
        for position in reversed(window):
            if not missing:
                break
            tokens += self._count(position)
            found = missing & self._facts[position].mentions
            tails |= dict.fromkeys(found, tokens)
            missing -= found
        return tails

    def _count(self, position: int) -> int:
        if position not in self._tokens:
            assert self._estimator is not None
            count = self._estimator.estimate_token_count_in_text
            self._tokens[position] = sum(map(count, self._texts[position]))
        return self._tokens[position]

    def _coverage(self, readable: Sequence[int], compaction: Compaction) -> float | None:
        prompts = sorted(self._session.prompts.items())
        before = [tokens for position, tokens in prompts if position < compaction.summary]
        after = [tokens for position, tokens in prompts if position > compaction.summary]
        if not before:
            return None
        replaced = before[-1] - min([before[0], *after[:1], _MOST_AT_FIRST])
        return sum(map(self._count, readable)) / replaced if replaced > 0 else None


def _mentions_in(facts: Mapping[int, Collection[str]]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, each in facts.items():
        for fact in each:
            found[fact].append(position)
    return found


def _dropped(
    mentions: Mapping[str, Sequence[int]], weights: Sequence[int], in_window: Collection[str]
) -> list[tuple[str, int]]:
    """Return the terms that are not in the window, the best first. Each has the index of the last
    message with it.

    `mentions` are the indices of the messages with each term, and `weights` the weight of each
    message.
    """
    weighed = {term: sum(weights[place] for place in mentions[term]) for term in mentions}
    ranked = sorted(mentions, key=lambda term: (-weighed[term], -mentions[term][-1], term))
    return [(term, mentions[term][-1]) for term in ranked if term not in in_window]
