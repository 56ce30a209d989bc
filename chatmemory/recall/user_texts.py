"""Reads the texts of users: the values in them, the nouns beside the values, and which earlier
texts have a value.
"""

# Long: one text of a user, and all that is read in it.
from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import takewhile

from chatmemory.patterns import declared_pattern
from chatmemory.recall.kept_readings import MOST_KEPT, kept_if_short
from chatmemory.recall.neighbours import phrases_in
from chatmemory.recall.numerals import numbers_in
from chatmemory.recall.phrases import (
    CJK,
    HAS_CJK,
    Noun,
    Phrases,
    aligned,
    all_nouns,
    anew,
    consents,
    denials,
    fillers,
    folded,
    in_one_kana,
    introductions,
    introductions_behind,
    narrow,
    refusals,
    reminders_in,
    reported,
    sign_fillers,
)
from chatmemory.recall.value_search import Searched, searched, stem_of
from chatmemory.recall.values import (
    UNIT_WORDS,
    UNITS,
    Value,
    addresses_in,
    codes_in,
    longest_first,
    names_like,
    spans_between,
    words_for_numbers,
    words_in,
)

_NEAR = 40  # signs before a value in which nouns name its kind
_BEHIND = 32  # the same behind it
_MOST_SMALL = 3
_LONGEST_SHORT = 3  # letters of a word that changes no value
_LONGEST_ANSWER = 60  # signs of an answer that nobody asked for in words
_LATEST = 24  # earlier messages in which a value is looked for
_BESIDE = declared_pattern(rf"[ \-]?([{CJK}]|[^\W\d_]+)")
_WORD = declared_pattern(r"[^\W_]+")
_LATIN = declared_pattern(rf"[^\W_{CJK}]+")
_SENTENCE_END = declared_pattern(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_CLAUSE_END = declared_pattern(r"[;:!?。；！？\n]|\.\s| - ")
_CLAUSE = declared_pattern(
    r"(?<![0-9]),|,(?![0-9])|[;:!?。、，；：！？\n()…]|\.(?=\s|$)| [-–] "
    r"| (?:so|because|but|and|weil|aber|denn|und|car|mais|et|porque|pero|mas|perche|ma)(?= )"
)
_REST_OF_QUESTION = declared_pattern(r"[^,;:.!?。、，；：！？\n]{0,200}+[?？]")
_QUOTATION = declared_pattern(
    r"«[^«»]{1,400}»|[\"“„”][^\"“„”]{1,400}[\"“”]|[「『][^」』]{1,400}[」』]"
)
_FEW_QUOTED = 3  # words in quotation marks that may be a value
_NO_KINDS: frozenset[str] = frozenset()
_CLAUSES_END = "\n"
_COLONS = (":", "：")


@kept_if_short(MOST_KEPT)
def user_text(text: str, own_reminders: tuple[str, ...] = ()) -> UserText:
    """Return a user's text as an object that finds words and values. Results for short texts are
    cached.

    `own_reminders` are the project's phrases that mean "as I said".
    """
    return UserText(text, own_reminders)


# Long: one text, read in many ways; each way keeps what it has found for the others.
class UserText:
    """A user's text. Finds the values in it, and the nouns that say what a value is, such as "order
    number".
    """

    def __init__(self, text: str, own_reminders: tuple[str, ...] = ()) -> None:
        self.text = narrow(text)
        self._own_reminders = own_reminders
        self._found_before: dict[tuple[int, Phrases], bool] = {}

    @cached_property
    def _aligned(self) -> tuple[str, Sequence[int]]:
        return aligned(self.text)

    @cached_property
    def lowered(self) -> str:
        return self._aligned[0]

    @property
    def places(self) -> Sequence[int]:
        return self._aligned[1]

    @cached_property
    def reminders(self) -> list[tuple[int, int]]:
        """The spans of the reminders in the text, such as "as I said"."""
        found = reminders_in(self.lowered, self._own_reminders)
        spans = [(self.places[start], self.places[end]) for start, end in found]
        return [span for span in spans if not self.quotes(span[0])]

    @cached_property
    def _quotations(self) -> list[tuple[int, int]]:
        """The spans between quotation marks with some words in them, which somebody else wrote."""
        return [
            each.span()
            for each in _QUOTATION.finditer(self.text)
            if len(_WORD.findall(each[0])) > _FEW_QUOTED
        ]

    def quotes(self, index: int) -> bool:
        """Return whether an index is inside a quotation of more than three words."""
        return any(start <= index < end for start, end in self._quotations)

    @cached_property
    def plain(self) -> str:
        """The text with line breaks in place of its reminders, such as "as I said". The length is
        the same.
        """
        return _without(self.text, self.reminders)

    @cached_property
    def codes(self) -> list[Value]:
        return codes_in(self.text)

    @cached_property
    def words(self) -> list[Value]:
        """The parts of the text that may be a name, a short answer, an address or a small number in
        words. Reminders, such as "as I said", are not searched.
        """
        return words_in(self.plain)

    @cached_property
    def first_phrases(self) -> list[Value]:
        """The phrases in the first clause (see `opening`). A phrase is up to four words next to
        each other.
        """
        return [*phrases_in(self.plain, *self.opening)]

    @cached_property
    def contradicting(self) -> list[Value]:
        """The phrases of the text, if it has a contradicting word, such as "not" or "but".
        Otherwise empty.
        """
        spans = sentences(self.text) if self.contradicts else ()
        return [each for span in spans for each in phrases_in(self.plain, *span)]

    @cached_property
    def cut_names(self) -> frozenset[str]:
        """The names (`Value.name`) of codes that the text has only as parts of longer codes, such
        as `1Z 9921` in `1Z 9921 556`.
        """
        whole = {each.name for each in self.codes if not each.is_cut}
        return frozenset({each.name for each in self.codes} - whole)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The keys by which `Said` finds this text when it searches for a value: the words, their
        stems, and the names of codes, dates and numbers (`Value.name`). In languages without
        spaces, also each pair of neighboring characters.
        """
        return frozenset(_anchors(self.lowered)).union(map(_anchor, self.codes))

    @cached_property
    def _addresses(self) -> list[Value]:
        return addresses_in(self.text)

    @cached_property
    def _numbers(self) -> list[Value]:
        return [*words_for_numbers(self.text)]

    def same_as(self, value: Value) -> Value | None:
        """Return the value in this text that equals `value`, even if it is written differently. If
        several values equal it, return the longest. None if there is no equal value.
        """
        if value.shape == "words":
            known = names_like(self.text, value) if self.searched.has_words_of(value) else []
        else:
            known = self._addresses if value.shape == "place" else [*self.codes, *self._numbers]
        same = [each for each in known if each.name == value.name]
        return next(iter(longest_first(same)), None)

    @cached_property
    def searched(self) -> Searched:
        return searched(self.text)

    @cached_property
    def nouns(self) -> list[Noun]:
        """The nouns that name kinds of facts, with their indices in the text."""
        places = self.places
        return [
            Noun(places[each.start], places[each.end], each.kinds)
            for each in all_nouns().found_in(self.lowered)
        ]

    @cached_property
    def introduced(self) -> list[int]:
        """The indices at which a phrase such as "my name is" ends, so that a name may follow. In
        languages where the phrase follows the name, the indices at which the phrase begins.
        """
        before = introductions().finditer(self.lowered)
        behind = introductions_behind().finditer(self.lowered)
        ends = [each.end() for each in before] + [each.start() for each in behind]
        return [self.places[each] for each in ends]

    @property
    def is_long(self) -> bool:
        """Whether the text is too long to be a short answer."""
        return len(self.text) > _LONGEST_ANSWER

    def is_reported(self, end: int) -> bool:
        """Return whether a phrase such as "he said" introduces the words of somebody else.

        Searches the text up to the end of the sentence that contains the index `end`.
        """
        return self._is_said_before(end, reported())

    def is_anew(self, end: int) -> bool:
        """Return whether a word says that something is new, such as "another" or "this time". Words
        in a reminder, such as "as I said", do not count.

        Searches the text up to the end of the sentence that contains the index `end`.
        """
        return self._is_said_before(end, anew())

    def _is_said_before(self, end: int, phrases: Phrases) -> bool:
        """Return whether one of these phrases occurs up to the end of the sentence at the index
        `end`. Results are kept.
        """
        whole = len(self.plain)
        if end < whole and not self._is_said_before(whole, phrases):
            return False
        found = _SENTENCE_END.search(self.plain, end)
        last = found.start() if found else whole
        if (last, phrases) not in self._found_before:
            is_found = phrases.search(folded(self.plain[:last])) is not None
            self._found_before[last, phrases] = is_found
        return self._found_before[last, phrases]

    @cached_property
    def is_consent(self) -> bool:
        """Whether the text begins with yes or no."""
        found = consents().search(self.lowered)
        return found is not None and not _WORD.search(self.lowered, 0, found.start())

    @cached_property
    def contradicts(self) -> bool:
        return denials().search(self.lowered) is not None

    @cached_property
    def refuses(self) -> bool:
        return refusals().search(self.lowered) is not None

    def asks_back(self, end: int) -> bool:
        """Return whether the text from the index `end` on is the rest of a question: a question
        mark follows before any other punctuation.
        """
        return _REST_OF_QUESTION.match(self.text, end) is not None

    def kinds_of(self, start: int, end: int) -> frozenset[str]:
        """Return the kinds of facts, such as "email", that the text names shortly before a span, or
        else shortly after it. Empty if it names none.
        """
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
        """Return the words directly before and after a span of the text, without small words. In
        languages without spaces, these are single characters.
        """
        before = _BESIDE.match(folded(self.text[max(0, start - _NEAR) : start])[::-1])
        behind = _BESIDE.match(folded(self.text[end : end + _NEAR]))
        found = {before[1][::-1] if before else "", behind[1] if behind else ""}
        return frozenset(UNIT_WORDS.get(each, each) for each in found - fillers() - {""})

    def has_unit_behind(self, end: int) -> bool:
        """Return whether the number that ends at the index `end` has a unit, such as "kg", directly
        after it.
        """
        found = _BESIDE.match(folded(self.text[end : end + _NEAR]))
        return found is not None and (found[1] in UNITS or found[1] in UNIT_WORDS)

    def nouns_before(self, start: int) -> frozenset[str]:
        """Return the last two words before an index, such as "locker" and "combination". They may
        say what the value at this index is.

        Small words are left out. The words need not be nouns of a known kind of fact.
        """
        before = _WORD.findall(folded(self.text[max(0, start - _NEAR) : start]))
        known = fillers()
        while before and (before[-1] in known or before[-1] in _COPULAS):
            before.pop()
        return frozenset(word for word in before[-2:] if word not in known)

    def words_before(self, start: int) -> frozenset[str]:
        """Return the words before the index `start` in its sentence, without small words. They may
        say what the value at this index is.
        """
        before = folded(self.text[max(0, start - _NEAR) : start])
        *_, (first, last) = sentences(before)
        return frozenset(_WORD.findall(before[first:last])) - fillers()

    def has_only(
        self, start: int, end: int, *, besides: frozenset[str] = frozenset(), most: int = 100
    ) -> bool:
        """Return whether the text says nothing but the words from `start` to `end`.

        Reminders and nouns for kinds of facts do not count. There may be at most `most` other
        words, which must be small words or in `besides`.
        """
        return self._has_only((0, len(self.text)), (start, end), besides, most)

    def begins_with(self, start: int, end: int, besides: frozenset[str], most: int) -> bool:
        """Return whether the text begins with a clause that says nothing but the words from `start`
        to `end`. The text after this clause does not matter.

        `besides` and `most` allow other words, as in `has_only`. False for a clause that ends with
        a colon, such as `Size:`
        """
        behind = _CLAUSE.search(self.plain, end)
        if behind and behind[0] in _COLONS:
            return False  # `Question:` is a label, and no answer
        first, last = self._clause_before(start), behind.start() if behind else len(self.text)
        return self._has_only((first, last), (start, end), besides, most) and self._has_only(
            (0, first), (0, 0), besides, most
        )

    @cached_property
    def opening(self) -> tuple[int, int]:
        """The span of the first clause that has more than small words such as "the" or "please".

        It is (0, 0) if there is no such clause, or if the clause is a label that ends with a colon,
        such as `Size:`
        """
        start = 0
        for end in (*(each.start() for each in _CLAUSE.finditer(self.plain)), len(self.text)):
            words = frozenset(_WORD.findall(folded(self.plain[start:end])))
            if not words <= fillers():
                return (0, 0) if self.text[end : end + 1] in _COLONS else (start, end)
            start = end + 1
        return 0, 0

    def opens_with_sentence(self, words: frozenset[str]) -> bool:
        """Return whether the first clause has several words, and one of them is in `words`. Small
        words in `words` do not count.
        """
        said = _WORD.findall(folded(self.plain[slice(*self.opening)]))
        return len(said) > 1 and not (words - fillers()).isdisjoint(said)

    def starts_with(self, start: int, end: int, besides: frozenset[str], most: int) -> bool:
        """Return whether the first clause (`opening`) says little but the words from `start` to
        `end`.

        At most three words may come before `start`: small words, or words in `besides`. The number
        of other words (`others_in_opening`) may be at most `most`.
        """
        others = self.others_in_opening(start, end, besides)
        before = (0, start), (0, 0)
        return (
            others is not None and others <= most and self._has_only(*before, besides, _MOST_SMALL)
        )

    def others_in_opening(self, start: int, end: int, besides: frozenset[str]) -> int | None:
        """Return the number of other words in the first clause (`opening`): the words outside the
        span from `start` to `end`. None if the span is not inside the first clause.

        Small and short words, nouns for kinds of facts, and words in `besides` do not count.
        """
        first, last = self.opening
        if not first <= start <= end <= last:
            return None
        words = _words_beside(self._without_nouns, self.opening, (start, end))
        known = _small_words() | besides
        return sum(word not in known and not _is_short(word) for word in words)

    def stands_alone(self, start: int, end: int) -> bool:
        """Return whether a span of the text is a clause of its own. The clause may have up to three
        small words more.
        """
        behind = _CLAUSE.search(self.plain, end)
        span = self._clause_before(start), behind.start() if behind else len(self.text)
        return self._has_only(span, (start, end), frozenset(), _MOST_SMALL)

    def _has_only(
        self, span: tuple[int, int], part: tuple[int, int], besides: frozenset[str], most: int
    ) -> bool:
        if self._says_more(span, part, besides):
            return False
        words, small = _words_beside(self._without_nouns, span, part), _small_words()
        return len(words) <= most and all(
            word in small or word in besides or _is_of_signs(word, besides) for word in words
        )

    def _says_more(
        self, span: tuple[int, int], part: tuple[int, int], besides: frozenset[str]
    ) -> bool:
        """Return whether a word shows at once that `_has_only` is False."""
        (first, last), (start, end) = span, part
        return any(
            (first <= at and behind < start) or (end < at and behind <= last)
            for at, behind, word in self._telling_words
            if word not in besides
        )

    def may_begin_with(self, start: int, besides: frozenset[str]) -> bool:
        """Return whether `has_only` or `begins_with` can be True for words that begin at the index
        `start`. A fast test, which reads only the words before `start`.
        """
        before = takewhile(lambda each: each[1] < start, self._telling_words)
        return all(word in besides for *_, word in before)

    @cached_property
    def _telling_words(self) -> list[tuple[int, int, str]]:
        """The words that are not small, nor in nouns and reminders, with their indices. Texts with
        other letters than those of English have none, as their length may change.
        """
        if not self.text.isascii():
            return []
        small, words = _small_words(), _WORD.finditer(self._without_nouns.lower())
        return [(*each.span(), each[0]) for each in words if each[0] not in small]

    def _clause_before(self, start: int) -> int:
        """Return where the clause that contains an index begins."""
        known = bisect_left(self._clause_ends, start)
        first = self._clause_ends[known - 1] if known else 0
        for found in _CLAUSE.finditer(self.plain, first, start):
            first = found.end()
        return first

    @cached_property
    def _clause_ends(self) -> list[int]:
        return [each.end() for each in _CLAUSE.finditer(self.plain)]

    @cached_property
    def _without_nouns(self) -> str:
        """The text with its reminders and nouns overwritten. The length is the same."""
        return _without(self.plain, [(each.start, each.end) for each in self.nouns])


def _without(text: str, parts: Iterable[tuple[int, int]]) -> str:
    """Return a text with some spans overwritten by ends of clauses. The length is the same."""
    for start, end in parts:
        text = f"{text[:start]}{_CLAUSES_END * (end - start)}{text[end:]}"
    return text


def _words_beside(text: str, span: tuple[int, int], part: tuple[int, int]) -> list[str]:
    """Return the words in a span of a text, except those in `part`."""
    first, last = span
    start, end = (min(max(first, each), last) for each in part)
    return _WORD.findall(folded(f"{text[first:start]}{_CLAUSES_END}{text[end:last]}"))


def _is_short(word: str) -> bool:
    """Return whether a word is too short to change a value, such as `uai` or `pls`."""
    return len(word) <= _LONGEST_SHORT and word.isalpha() and not HAS_CJK.search(word)


@cache
def _small_words() -> frozenset[str]:
    return fillers() | UNITS


def _is_of_signs(text: str, besides: Iterable[str]) -> bool:
    """Return whether a text without spaces consists of small words, or is a part of a text in
    `besides`.
    """
    if not HAS_CJK.search(text):
        return False
    rest = text
    while found := next(filter(rest.startswith, sign_fillers()), ""):
        rest = rest[len(found) :]
    return any(rest in each for each in ("", *besides))


_COPULAS = frozenset(["lautet", "ist", "est", "es", "son", "soy", "sont"])


class Said:
    """The earlier texts of the user, in which values are searched for."""

    def __init__(self) -> None:
        self._at: defaultdict[str, list[int]] = defaultdict(list)
        self.texts: dict[int, UserText] = {}

    def add(self, position: int, text: UserText) -> None:
        self.texts[position] = text
        for anchor in text.anchors:
            self._at[anchor].append(position)

    def has(self, value: Value) -> bool:
        """Return whether an earlier text contains a value; see `holding`."""
        return next(self.holding(value), None) is not None

    def _positions(self, value: Value) -> list[int]:
        """Return the positions of the latest messages that may contain a value. Its words may be
        written as one there.
        """
        positions = self._at.get(_anchor(value), [])[-_LATEST:]
        words = value.key.split()
        if len(words) == 1:
            return positions
        whole = "".join(words)
        if joined := self._at.get(whole):
            positions = sorted({*positions, *joined[-_LATEST:]})[-_LATEST:]
        if value.shape != "words" or HAS_CJK.search(value.key):
            return positions
        stems = frozenset(map(stem_of, words))
        known = ((each, self.texts[each].anchors) for each in positions)
        return [each for each, anchors in known if stems <= anchors or whole in anchors]

    def holding(self, value: Value) -> Iterator[int]:
        """Yield the positions of the user's earlier texts that contain a value, in order. Only the
        latest 24 texts that may contain the value are searched.

        A value that is only a shared part of two longer codes, such as `1Z 99` in `1Z 99 55` and
        `1Z 99 56`, is not found.
        """
        for position in self._positions(value):
            text = self.texts[position]
            is_cut = value.is_cut and value.name in text.cut_names
            if not is_cut and text.searched.holds(value):
                yield position


def _anchors(lowered: str) -> Iterator[str]:
    words = _WORD.findall(lowered)
    yield from words
    yield from map(stem_of, words)
    yield from (f"~code:{digits}" for digits in numbers_in(lowered, words))
    if HAS_CJK.search(lowered):
        yield from map(stem_of, _LATIN.findall(lowered))
        signs = in_one_kana(lowered)
        yield from (signs[at : at + 2] for at in range(len(signs) - 1))


def _anchor(value: Value) -> str:
    """Return the key by which a value is looked up. Each text with the value has this key."""
    if value.shape in ("words", "place"):
        words = value.key.split()
        longest = max(words, key=len, default="")
        has_signs = not longest.isascii() and HAS_CJK.search(longest)
        return in_one_kana(longest[:2]) if has_signs else stem_of(longest)
    return value.name


def sentences(text: str) -> Iterator[tuple[int, int]]:
    return spans_between(_SENTENCE_END, text)


def is_inside(text: str, part: str) -> bool:
    """Return whether a text has `part` inside a sentence. The beginning of a sentence does not
    count.
    """
    starts = {start for start, _ in sentences(text)}
    at = text.find(part)
    while at in starts:
        at = text.find(part, at + 1)
    return at >= 0


def place_in(text: UserText, value: Value) -> tuple[int, int]:
    """Return the span of a value in a text. The span is approximate if the text writes the value
    differently.
    """
    start = text.text.find(value.text)
    if start >= 0:
        return start, start + len(value.text)
    if same := text.same_as(value):
        return same.place
    first = text.lowered.find(value.key.split()[0]) if value.key else len(text.lowered)
    place = text.places[first] if 0 <= first < len(text.places) else len(text.text)
    return place, place
