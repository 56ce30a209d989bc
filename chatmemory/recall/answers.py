"""Answers: what users say again because the assistant asked for it, or because they say that they
said it before.

An answer repeats a value if an earlier message of the user gave it for the kind that the assistant
asks for. Whether memory had lost it is not known here: a replay or the ledger shows that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, text_of
from chatmemory.patterns import declared_pattern
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted
from chatmemory.recall.phrases import (
    ANY_NUMBER,
    CJK,
    COUNT,
    HAS_CJK,
    Noun,
    Request,
    aligned,
    all_nouns,
    fillers,
    folded,
    introductions,
    introductions_behind,
    is_open_question,
    narrow,
    refusals,
    reminders,
    requests_in,
    shapes_of,
)
from chatmemory.recall.sessions import is_by_program
from chatmemory.recall.values import (
    Search,
    Searched,
    Value,
    codes_in,
    is_amount,
    longest_first,
    signs_of,
    values_in,
    words_in,
)

_NEAR = 40  # signs before a value in which nouns name its kind
_BEHIND = 32  # the same behind it
_BESIDE = declared_pattern(rf"[ \-]?([{CJK}]|[^\W\d_]+)")
_REMINDED = 100  # signs behind a reminder in which a value is bound to it
_REMINDED_BEFORE = 60
_FEW_WORDS = 3  # words beside a reminder in a sentence that has no fact of its own
_LATEST = 24  # earlier messages in which a value is looked for
_SHORTEST_REMINDED = 3
_LONG_NOUN = 5  # letters of a word that is hardly a verb or a filler
_WORD = declared_pattern(r"[^\W_]+")
_SENTENCE_END = declared_pattern(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_CLAUSE_END = declared_pattern(r"[;:!?。；！？\n]|\.\s| - ")
_IS_TIME = declared_pattern(r"[0-9]{1,2}[:.h][0-9]{2}|[0-9]{1,2} ?(?:am|pm|uhr|h)", re.I)
_NUMBERS = frozenset(
    (
        *("order", "booking", "ticket", "customer", "card", "bank", "invoice", "tracking"),
        *("serial", "identity", "voucher", "room", "flight", "plate", "phone", "postcode"),
        ANY_NUMBER,
    )
)
_NATURAL = {"mail": frozenset({"email"}), "link": frozenset({"url"}), "date": frozenset({"date"})}
_NO_KINDS: frozenset[str] = frozenset()
_CLAUSES_END = "\n"


class Answer(NamedTuple):
    """A value that a user repeats.

    `is_requested` means that the assistant asked for it, and `is_reminded` that the user reminds
    the assistant of having given it. Without either, nobody forced the repetition.
    """

    value: Value
    is_requested: bool = False
    is_reminded: bool = False

    @property
    def is_forced(self) -> bool:
        return self.is_requested or self.is_reminded


class Answers:
    """The answers in consecutive messages, by position."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words = NO_WORDS) -> None:
        reader = _Reader(messages, words)
        self.at: Mapping[int, Sequence[Answer]] = {
            position: found
            for position, message in enumerate(messages)
            if is_written_by_user(message) and (found := reader.read(position))
        }
        self.search = Search(each.value for found in self.at.values() for each in found)


def is_written_by_user(message: ChatMessage) -> bool:
    """Return whether a user wrote a message, and did not paste it."""
    is_user = isinstance(message, UserMessage) and not is_by_program(message)
    return is_user and isinstance(message, UserMessage) and not is_pasted(message)


def nameable_values(text: str, words: Words = NO_WORDS) -> list[Value]:
    """Return all values of a user's text, and also the values of the text without its reminders."""
    read = _Text(text)
    reminders = read.reminders(words.reminders)
    rest = words_in(read.without(reminders)) if reminders else []
    return [*codes_in(text), *words_in(text), *rest]


class _Text:
    """A text of a user, with the nouns of kinds in it."""

    def __init__(self, text: str) -> None:
        self.text = narrow(text)

    @cached_property
    def _aligned(self) -> tuple[str, Sequence[int]]:
        return aligned(self.text)

    @cached_property
    def lowered(self) -> str:
        return self._aligned[0]

    @property
    def places(self) -> Sequence[int]:
        return self._aligned[1]

    def reminders(self, own: tuple[str, ...]) -> list[tuple[int, int]]:
        """Return where the text reminds the assistant that something was given."""
        found = reminders(own).finditer(self.lowered)
        return [(self.places[each.start()], self.places[each.end()]) for each in found]

    def without(self, parts: Iterable[tuple[int, int]]) -> str:
        """Return the text, of the same length, with some parts as ends of clauses."""
        rest = self.text
        for start, end in parts:
            rest = f"{rest[:start]}{_CLAUSES_END * (end - start)}{rest[end:]}"
        return rest

    @cached_property
    def searched(self) -> Searched:
        return Searched(self.text)

    @cached_property
    def nouns(self) -> list[Noun]:
        """The nouns, by their places in the text."""
        places = self.places
        return [
            Noun(places[each.start], places[each.end], each.kinds)
            for each in all_nouns().found_in(self.lowered)
        ]

    @cached_property
    def introduced(self) -> list[int]:
        """Where phrases such as `my name is` end, and where those behind a name begin."""
        before = introductions().finditer(self.lowered)
        behind = introductions_behind().finditer(self.lowered)
        ends = [each.end() for each in before] + [each.start() for each in behind]
        return [self.places[each] for each in ends]

    @cached_property
    def refuses(self) -> bool:
        return refusals().search(self.lowered) is not None

    def kinds_of(self, start: int, end: int) -> frozenset[str]:
        """Return the kinds that the words around a part of the text name."""
        before = self.text[max(0, start - _NEAR) : start]
        ends = [each.end() for each in _CLAUSE_END.finditer(before)]
        # a colon or a sentence directly before still names it: "My order number: A-1182"
        first = (
            start - len(before) + max((each for each in ends if each < len(before) - 2), default=0)
        )
        kinds = {
            kind
            for noun in self.nouns
            if first <= noun.start and noun.end <= start
            for kind in noun.kinds
        }
        if any(0 <= start - each <= 2 or each == end for each in self.introduced):
            kinds.add("name")
        if kinds:
            return frozenset(kinds)
        behind = self.text[end : end + _BEHIND]
        stop = _CLAUSE_END.search(behind)
        last = end + (stop.start() if stop else len(behind))
        near = (noun for noun in self.nouns if end <= noun.start and noun.end <= last)
        return next((noun.kinds for noun in near), _NO_KINDS)

    def words_beside(self, start: int, end: int) -> frozenset[str]:
        """Return the words directly before and behind a part, in languages without spaces the
        signs.
        """
        before = _BESIDE.match(folded(self.text[max(0, start - _NEAR) : start])[::-1])
        behind = _BESIDE.match(folded(self.text[end : end + _NEAR]))
        found = {before[1][::-1] if before else "", behind[1] if behind else ""}
        return frozenset(found - fillers() - {""})

    def nouns_before(self, start: int) -> frozenset[str]:
        """Return the words just before a part that name it, although no kind has them."""
        before = _WORD.findall(folded(self.text[max(0, start - _NEAR) : start]))
        known = fillers()
        while before and (before[-1] in known or before[-1] in _COPULAS):
            before.pop()
        return frozenset(word for word in before[-2:] if word not in known)

    def words_before(self, start: int) -> frozenset[str]:
        """Return the words of the sentence before a part that may name it."""
        before = folded(self.text[max(0, start - _NEAR) : start])
        *_, (first, last) = _sentences(before)
        return frozenset(_WORD.findall(before[first:last])) - fillers()

    def has_only(self, start: int, end: int) -> bool:
        """Return whether the text has nothing but a part, and words around the value of a short
        answer.
        """
        rest = folded(f"{self.text[:start]} {self.text[end:]}")
        return fillers().issuperset(_WORD.findall(rest))


_COPULAS = frozenset(["lautet", "ist", "est", "es", "son", "soy", "sont"])


class _Said:
    """The messages that the user wrote before, to find values in them."""

    def __init__(self) -> None:
        self._at: defaultdict[str, list[int]] = defaultdict(list)
        self.texts: dict[int, _Text] = {}
        self._cut: dict[int, frozenset[str]] = {}  # names of parts of longer codes

    def add(self, position: int, text: _Text, values: Sequence[Value]) -> None:
        self.texts[position] = text
        whole = {each.name for each in values if not each.is_cut}
        self._cut[position] = frozenset({each.name for each in values} - whole)
        for anchor in {*_anchors(text.lowered), *(_anchor(each) for each in values)}:
            self._at[anchor].append(position)

    def holding(self, value: Value) -> list[int]:
        """Return the latest positions whose texts hold a value. A part that two longer codes share
        is no value: `1Z 9921 556` does not repeat `1Z 9921 555`.
        """
        known = self._at.get(_anchor(value), [])
        return [
            each
            for each in known[-_LATEST:]
            if self.texts[each].searched.holds(value)
            and not (value.is_cut and value.name in self._cut[each])
        ]


def _anchors(lowered: str) -> Iterator[str]:
    yield from _WORD.findall(lowered)
    if HAS_CJK.search(lowered):
        yield from (lowered[at : at + 2] for at in range(len(lowered) - 1))


def _anchor(value: Value) -> str:
    """Return a part of a value that is looked up: each text that holds it has this part."""
    if value.shape in ("words", "place"):
        words = value.key.split()
        longest = max(words, key=len, default="")
        return longest[:2] if HAS_CJK.search(longest) else longest
    return value.name


class _Reader:
    """Reads the messages that the user wrote, one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words) -> None:
        self._messages, self._words = messages, words
        self._said = _Said()
        self._requests: dict[int, list[Request]] = {}

    def read(self, position: int) -> list[Answer]:
        text = _Text(text_of(self._messages[position]))
        codes = codes_in(text.text)
        reminded = self._reminded(text)
        requests = self.requests_before(position) if position else []
        may_be_words = reminded or any(map(_takes_words, requests))
        parts = text.reminders(self._words.reminders) if reminded else []
        values = [*codes, *words_in(text.without(parts))] if may_be_words else codes
        found = [*self._answers(position, text, longest_first(values), reminded)]
        self._said.add(position, text, codes)
        return found

    def requests_before(self, position: int) -> list[Request]:
        """Return the requests of the assistant's message directly before a position."""
        if position not in self._requests:
            before = self._messages[position - 1] if position else None
            text = before.text if isinstance(before, AiMessage) else None
            own = self._words.requests
            self._requests[position] = requests_in(text, own) if text else []
        return self._requests[position]

    def _answers(
        self,
        position: int,
        text: _Text,
        values: Sequence[Value],
        reminded: Sequence[tuple[int, int]],
    ) -> Iterator[Answer]:
        known = [(value, at) for value in values if (at := self._said.holding(value))]
        if not known:
            return
        before = self._messages[position - 1] if position else None
        if isinstance(before, AiMessage) and before.text:
            offered = Search(value for value, _ in known).found_in(before.text)
            known = [(value, at) for value, at in known if value.name not in offered]
        found: list[Answer] = []
        for value, at in known:
            if not _is_free(value, found):
                continue
            requests = self.requests_before(position)
            is_answer = bool(requests) and value.is_whole
            is_reminded = _is_in(value, reminded) and (
                is_answer or self._can_remind(position, value, text, at)
            )
            is_requested = any(self._asks_for(each, value, text, at) for each in requests)
            is_requested |= not requests and self._is_bare(position, value, text, at)
            if is_requested or is_reminded:
                found.append(Answer(value, is_requested, is_reminded))
        for value, _ in known:
            is_exact = value.shape in ("code", "mail", "link") and value.is_distinctive
            if is_exact and _is_free(value, found):
                found.append(Answer(value))
        yield from found

    # Requests

    def _asks_for(self, request: Request, value: Value, text: _Text, at: Sequence[int]) -> bool:
        """Return whether a request asks for a value that earlier messages `at` gave for the kind
        that is asked for.
        """
        if not request.takes(value.shape):
            return False
        own = text.kinds_of(*value.place)
        if request.is_again:
            return value.is_distinctive and value.shape != "words" and not text.refuses
        if not request.kinds:
            is_named = value.is_distinctive and self._is_named(request, value, text, at)
            return is_named or (request.is_which and self._is_proper(value, text, at))
        natural = _natural_kinds(value, text.text, value.place)
        if value.shape == "code" and natural and natural.isdisjoint(request.kinds):
            return False
        if own and not _are_alike(own, request.kinds, value):
            return False
        if text.refuses and own.isdisjoint(request.kinds):
            return False
        if _is_loose(value, request) and not text.has_only(*value.place):
            return False
        is_own = bool(own & request.kinds)
        if value.shape == "words" and not (value.is_whole or value.is_distinctive or is_own):
            return False
        return any(self._was_given_for(request, value, each) for each in at)

    def _is_bare(self, position: int, value: Value, text: _Text, at: Sequence[int]) -> bool:
        """Return whether a message answers a question, which asks for nothing by name, with nothing
        but a value that nobody gives by chance, or that an earlier message named alike.
        """
        before = self._messages[position - 1] if position else None
        if not isinstance(before, AiMessage) or not is_open_question(before.text or ""):
            return False
        if value.shape not in ("code", "mail", "link") or not text.has_only(*value.place):
            return False
        own = text.kinds_of(*value.place)
        earlier = map(self._said.texts.__getitem__, at)
        return value.is_distinctive or any(
            own & said.kinds_of(*_place_in(said, value)) for said in earlier
        )

    def _was_given_for(self, request: Request, value: Value, position: int) -> bool:
        """Return whether the message at a position gave a value for the kind of a request."""
        said = self._said.texts[position]
        place = _place_in(said, value)
        if COUNT in request.kinds and _are_beside(said.words_beside(*place), request.words):
            return True
        natural = _natural_kinds(value, said.text, place)
        named = frozenset(kind for kind in said.kinds_of(*place) if value.shape in shapes_of(kind))
        if natural & request.kinds:
            return True
        answered = frozenset(kind for each in self.requests_before(position) for kind in each.kinds)
        if (named | answered) & request.kinds:
            return True
        if named:
            return _are_alike(named, request.kinds, value)
        return value.is_distinctive or value.shape == "place"

    def _is_named(self, request: Request, value: Value, text: _Text, at: Sequence[int]) -> bool:
        """Return whether a request names a value by the words with which it was given: by all that
        stand directly before it, or, if the answer is nothing else, by a long one near it.
        """
        is_bare = text.has_only(*value.place)
        for position in at:
            said = self._said.texts[position]
            place = _place_in(said, value)
            name = said.nouns_before(place[0])
            if name and name <= request.words and not said.kinds_of(*place):
                return True
            near = said.words_before(place[0]) & request.words if is_bare else ()
            if any(len(each) >= _LONG_NOUN for each in near):
                return True
        return False

    def _is_proper(self, value: Value, text: _Text, at: Sequence[int]) -> bool:
        """Return whether a message has nothing but a code, or but a name that an earlier message
        has with its capitals, too: not only as the first word of a sentence.
        """
        if value.shape == "code":
            return value.is_distinctive and signs_of(text.text) == value.key
        if value.shape != "words" or not value.is_whole or not value.text[0].isupper():
            return value.is_whole and HAS_CJK.search(value.text) is not None
        return value.is_distinctive or any(
            _is_inside(self._said.texts[each].text, value.text) for each in at
        )

    # Reminders

    def _reminded(self, text: _Text) -> list[tuple[int, int]]:
        """Return the parts of a text in which a value is bound to a reminder."""
        pattern = reminders(self._words.reminders)
        if not pattern.search(text.lowered):
            return []
        bound: list[tuple[int, int]] = []
        sentences = [*_sentences(text.lowered)]
        for number, (start, end) in enumerate(sentences):
            found = pattern.search(text.lowered, start, end)
            if found is None or text.lowered[start:end].rstrip().endswith(("?", "？")):
                continue
            bound.append((found.start(), min(end, found.end() + _REMINDED)))
            bound.append((max(start, found.start() - _REMINDED_BEFORE), found.start()))
            rest = text.lowered[start : found.start()] + text.lowered[found.end() : end]
            words = [word for word in _WORD.findall(rest) if word not in fillers()]
            if len(words) < _FEW_WORDS and (not HAS_CJK.search(rest) or len(rest) < 8):
                bound += sentences[max(0, number - 1) : number] + sentences[number + 1 : number + 2]
        places = text.places
        return [(places[start], places[end]) for start, end in bound]

    def _is_unheard(self, value: Value, position: int) -> bool:
        """Return whether a text has no spaces, and the assistant has said no two signs of it."""
        if not HAS_CJK.search(value.key):
            return False
        signs = signs_of(value.key)
        pairs = {signs[at : at + 2] for at in range(len(signs) - 1)}
        texts = (each.text for each in self._messages[:position] if isinstance(each, AiMessage))
        return len(signs) >= _SHORTEST_REMINDED and not any(
            pair in text for text in texts if text for pair in pairs
        )

    def _can_remind(self, position: int, value: Value, text: _Text, at: Sequence[int]) -> bool:
        """Return whether a reminder may be about a value: one that nobody says by chance, or of a
        kind that this text and an earlier one name. A short number has the same word beside it in
        both, as in `14 inch`.
        """
        if value.is_distinctive or value.shape in ("mail", "link"):
            return True
        if value.shape == "date" or self._is_unheard(value, position):
            return True
        if value.shape == "code" and len(value.key) >= _SHORTEST_REMINDED:
            return True
        place = value.place
        own, beside = text.kinds_of(*place), text.words_beside(*place)
        earlier = [(each, _place_in(each, value)) for each in map(self._said.texts.get, at) if each]
        return any(
            own & said.kinds_of(*there)
            or (value.shape == "code" and beside & said.words_beside(*there))
            for said, there in earlier
        )


def _is_loose(value: Value, request: Request) -> bool:
    """Return whether words are an answer only if a message has nothing else: a number with words
    that is no address, and a user name without digits.
    """
    if value.shape == "place":
        return "address" not in request.kinds
    worded = {kind for kind in request.kinds if "words" in shapes_of(kind)}
    return value.shape == "words" and worded == {"customer"}


def _are_beside(found: Iterable[str], asked: Iterable[str]) -> bool:
    """Return whether one of the words beside a number is among those of a question; a sign of a
    language without spaces is within one.
    """
    words = frozenset(asked)
    return any(
        each in words or (HAS_CJK.search(each) and any(each in word for word in words))
        for each in found
    )


def _takes_words(request: Request) -> bool:
    if not request.kinds:
        return request.is_which
    return request.takes("words") or request.takes("place")


def _is_inside(text: str, part: str) -> bool:
    """Return whether a text has a part within a sentence, not only at the beginning of one."""
    starts = {start for start, _ in _sentences(text)}
    at = text.find(part)
    while at in starts:
        at = text.find(part, at + 1)
    return at >= 0


def _is_free(value: Value, found: Iterable[Answer]) -> bool:
    """Return whether no answer has any of these signs."""
    return all(value.end <= each.value.start or each.value.end <= value.start for each in found)


def _is_in(value: Value, parts: Iterable[tuple[int, int]]) -> bool:
    return any(start <= value.start and value.end <= end for start, end in parts)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _SENTENCE_END.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _are_alike(named: frozenset[str], asked: frozenset[str], value: Value) -> bool:
    """Return whether a value that is named by kinds can be the answer to a request for kinds. A
    number of which nothing else is known can be any number.
    """
    if named & asked:
        return True
    is_number = value.shape == "code"
    named_number = named == {ANY_NUMBER} and not asked.isdisjoint(_NUMBERS)
    asked_number = ANY_NUMBER in asked and not named.isdisjoint(_NUMBERS)
    return is_number and (named_number or asked_number)


def _natural_kinds(value: Value, text: str, place: tuple[int, int]) -> frozenset[str]:
    """Return the kinds that a value shows by itself, at its place in a text."""
    if value.shape == "code":
        if is_amount(text, *place):
            return frozenset({"amount"})
        return frozenset({"time"}) if _IS_TIME.fullmatch(value.text) else _NO_KINDS
    return _NATURAL.get(value.shape, _NO_KINDS)


def _place_in(text: _Text, value: Value) -> tuple[int, int]:
    """Return where a text has a value; of one that is written in another way, about where."""
    start = text.text.find(value.text)
    if start >= 0:
        return start, start + len(value.text)
    same = (each for each in values_in(text.text) if each.name == value.name)
    found = next(same, None)
    if found is not None:
        return found.start, found.end
    first = text.lowered.find(value.key.split()[0]) if value.key else len(text.lowered)
    place = text.places[first] if 0 <= first < len(text.places) else len(text.text)
    return place, place
