"""Decides whether a value in a user's text answers what the assistant asked for.

If a request names a known kind of fact, such as an email address, a value of this kind may be the
answer. Otherwise, three kinds of values may be answers:

- a value that is the whole text, or a whole clause
- a value that stands beside words of the request in an earlier text of the user
- a code that nobody says by chance, such as `A-1182`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from chatmemory.patterns import declared_pattern
from chatmemory.recall.phrases import (
    ANY_NUMBER,
    COUNT,
    HAS_CJK,
    fillers,
    numbers,
    shapes_of,
)
from chatmemory.recall.requests import Question, Request
from chatmemory.recall.user_texts import UserText, is_inside, place_in
from chatmemory.recall.values import Value, is_amount, signs_of

_LONG_NOUN = 5  # letters of a word that is hardly a verb or a filler
_STEM = 4  # letters by which two words are compared: `month` and `monthly`
_SHORTEST_TOLD = 3  # letters of a word, and digits of a number, that are an answer by themselves
_MOST_BESIDE = 5  # words beside a value that is an answer
_MOST_IN_CLAUSE = 5  # the same in the first clause of a longer answer
_SIGNS_OF_NAME = 3  # signs of a name in languages without spaces
_NUMBER = declared_pattern(r"[0-9]+")
_IS_TIME = declared_pattern(r"[0-9]{1,2}[:h][0-9]{2}|[0-9]{1,2} ?(?:am|pm|uhr|h)", re.I)
_NUMBERS = frozenset(
    (
        *("order", "booking", "ticket", "customer", "card", "bank", "invoice", "tracking"),
        *("serial", "identity", "voucher", "room", "flight", "plate", "phone", "postcode"),
        ANY_NUMBER,
    )
)
# Kinds for which questions without a noun ask; an answer may be of another kind
_LOOSE = frozenset(
    (
        *("amount", "count", "age", "time", "date", "address", "postcode", "email", "phone"),
        *("city", "country", "company", "product", "serial", "colour", ANY_NUMBER),
    )
)
# Kinds of which an answer is usually a few words
_IN_WORDS = frozenset(("colour", "city", "country", "company", "product"))
_NATURAL = {
    "mail": frozenset({"email"}),
    "link": frozenset({"url"}),
    "date": frozenset({"date"}),
    "time": frozenset({"time"}),
}
_NO_KINDS: frozenset[str] = frozenset()


@dataclass(eq=False)
class Given:
    """An earlier text in which the user gave a value. `asked` are the kinds of facts for which the
    assistant had asked just before.
    """

    text: UserText
    value: Value
    asked: frozenset[str]

    @cached_property
    def place(self) -> tuple[int, int]:
        return place_in(self.text, self.value)

    @property
    def kinds(self) -> frozenset[str]:
        return self.text.kinds_of(*self.place)


class AllGiven(Iterable[Given]):
    """The earlier texts in which the user gave a value. They are only searched for when somebody
    iterates.
    """

    def __init__(self, find: Callable[[], Iterator[Given]]) -> None:
        self._find = find
        self._found: list[Given] = []

    @cached_property
    def _rest(self) -> Iterator[Given]:
        return self._find()

    def __iter__(self) -> Iterator[Given]:
        yield from self._found
        for each in self._rest:
            self._found.append(each)
            yield each


def asks_for(request: Request, value: Value, text: UserText, given: Iterable[Given]) -> bool:
    """Return whether a request asks for this value in the user's text. `given` are the earlier
    texts in which the user gave the value.
    """
    if not may_ask_for(request, value, text):
        return False
    if request.is_again:
        return True
    if not request.kinds:
        is_named = value.is_distinctive and _is_named(request, value, text, given)
        return is_named or (request.is_which and _is_proper(value, text, given))
    own = text.kinds_of(*value.place)
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
    return any(_was_given_for(request, value, each) for each in given)


def may_ask_for(request: Request, value: Value, text: UserText) -> bool:
    """Return whether a request may ask for a value in the user's text: a fast test before
    `asks_for`, without the earlier texts.
    """
    if not request.takes(value.shape) or (request.is_other and not value.is_distinctive):
        return False
    if request.is_again:
        return value.is_distinctive and value.shape != "words" and not text.refuses
    return bool(request.kinds) or value.is_distinctive or request.is_which


def answers_openly(
    question: Question, value: Value, text: UserText, given: Iterable[Given]
) -> bool:
    """Return whether a text answers a question with a clause that only states `value`. Words of the
    question may stand beside the value, and other clauses may follow.

        "Where is it stored?" "It is stored in Camden." -> Camden

    `given` are the earlier texts in which the user gave the value. For a short value, such as `42`,
    one of these must be true of an earlier text:

    - The same word stands beside the value in both texts.
    - A word of the question stands near the value in the earlier text.
    - The value is the only number in the earlier text, and the question is no yes-or-no question.
    """
    return may_answer_openly(question, value, text) and (
        _is_telling(value, question)
        or any(_is_told_alike(value, text, question, each) for each in given)
    )


def may_answer_openly(question: Question, value: Value, text: UserText) -> bool:
    """Return whether a text may answer a question with a clause that only states `value`. This is a
    fast test before `answers_openly`, without the earlier texts.
    """
    if value.is_cut or (question.is_silent and not _is_exact(value)):
        return False
    if question.is_other and not value.is_distinctive:
        return False
    if text.is_consent and not question.asks_for_something:
        return False
    if not _is_clause(question, value, text) or _is_mostly(value, question.message):
        return False
    natural = _natural_kinds(value, text.text, value.place) if question.kinds else _NO_KINDS
    if natural and natural.isdisjoint(question.kinds):
        return False
    return not _is_part_of_question(value, text) and _may_answer(text, value.end, question, _LOOSE)


def _is_clause(question: Question, value: Value, text: UserText) -> bool:
    """Return whether a value is all that an answer says: the whole text, or one of its clauses."""
    words = question.words
    if text.opening[1] <= value.start and text.opens_with_sentence(words):
        return False  # the first clause answers already
    may_begin = text.may_begin_with(value.start, words)
    if may_begin and text.has_only(*value.place, besides=words, most=_MOST_BESIDE):
        return True
    is_opening = may_begin and text.begins_with(*value.place, words, _MOST_IN_CLAUSE)
    if is_opening and not question.is_silent and _is_unmistakable(value):
        return True
    return question.is_request and (
        is_opening
        or (value.is_distinctive and text.stands_alone(*value.place))
        or _begins(question, value, text)
    )


def _begins(question: Question, value: Value, text: UserText) -> bool:
    """Return whether an answer begins with a date, an address or a number with a unit, such as `23
    kilos on the scale`. A large number may have one other word beside it.
    """
    is_exact = value.shape in ("mail", "link", "date", "time")
    if not (is_exact or value.key.isdecimal()) or HAS_CJK.search(text.text):
        return False
    is_measure = value.key.isdecimal() and text.has_unit_behind(value.end)
    if is_measure or is_exact:
        return text.starts_with(*value.place, question.words, _MOST_BESIDE)
    others = text.others_in_opening(*value.place, question.words)
    is_large = value.is_distinctive or is_amount(text.text, *value.place)
    return is_large and value.key.isdecimal() and others is not None and others <= 1


def opens_with(question: Question, value: Value, text: UserText) -> bool:
    """Return whether a text answers a question with a first clause that is mostly `value`. False
    for a yes-or-no question, and for a value without a word of at least five letters.

    - The clause may have one other word for every two words of the value.
    - If the question asks for a city, country, colour, company or product, one other word is
      allowed for each word of the value.
    - Small words, words of the question and nouns for kinds of facts do not count as other words.
    """
    if not question.is_request or question.is_other or not _is_long(value):
        return False
    if text.is_consent and not question.asks_for_something:
        return False
    others = text.others_in_opening(*value.place, question.words)
    count = len(value.key.split())
    most = count if question.kinds & _IN_WORDS else count // 2
    if others is None or others > most or _is_mostly(value, question.message):
        return False
    kinds = _LOOSE | {"name"}
    return not _is_part_of_question(value, text) and _may_answer(text, value.end, question, kinds)


def _may_answer(text: UserText, end: int, question: Question, kinds: frozenset[str]) -> bool:
    is_other = text.refuses or text.is_reported(end) or text.is_anew(end) or text.quotes(end)
    return not is_other and (not question.kinds or not question.kinds.isdisjoint(kinds))


def _is_part_of_question(value: Value, text: UserText) -> bool:
    """Return whether the user asks a question with this value in it, such as `Is A-1182 late?`."""
    return text.asks_back(value.end) and not text.has_only(*value.place, most=_MOST_BESIDE)


def _is_exact(value: Value) -> bool:
    return value.is_distinctive or value.shape in ("mail", "link", "date", "time", "place")


def _is_unmistakable(value: Value) -> bool:
    """Return whether a value is a code, an email address, a URL or a date."""
    is_code = value.shape == "code" and value.is_distinctive
    return is_code or value.shape in ("mail", "link", "date")


def is_unlikely(value: Value, text: UserText, given: Iterable[Given]) -> bool:
    """Return whether the words of a value are unlikely to be repeated by chance:

    - Two words of at least five letters are unlikely.
    - One word of at least five letters is unlikely if it is a name. A name has a capital letter
      inside a sentence, both in `text` and in an earlier text of `given`.
    - A value in Chinese or Japanese is unlikely if it has at least three characters.
    """
    if not may_be_unlikely(value, text):
        return False
    if HAS_CJK.search(value.key) or len(_long_words(value)) > 1:
        return True
    return any(is_inside(each.text.text, value.text) for each in given)


def may_be_unlikely(value: Value, text: UserText) -> bool:
    """Return whether `is_unlikely` can be True for a value. This is a fast test, which does not
    look at earlier texts.
    """
    if HAS_CJK.search(value.key):
        return len(value.key) >= _SIGNS_OF_NAME
    long = _long_words(value)
    return len(long) > 1 or (
        bool(long) and value.text[0].isupper() and is_inside(text.text, value.text)
    )


def _long_words(value: Value) -> list[str]:
    return [word for word in value.key.split() if len(word) >= _LONG_NOUN and word not in fillers()]


def _is_long(value: Value) -> bool:
    return max(map(len, value.key.split()), default=0) >= _LONG_NOUN


def _is_mostly(value: Value, words: frozenset[str]) -> bool:
    """Return whether at least half of the words of a value are among `words`. Of a value with
    numbers, all numbers must be.
    """
    telling = frozenset(value.key.split()) - fillers()
    if numbers := frozenset(filter(str.isdecimal, telling)):
        return numbers <= words
    return value.shape in ("words", "place") and 2 * len(telling & words) >= len(telling) > 0


def _is_telling(value: Value, question: Question) -> bool:
    """Return whether a value is too special to be repeated by chance, as the whole answer to a
    question.
    """
    if _is_exact(value):
        return True
    if value.shape == "words" and value.key in numbers():
        return question.asks_for_something
    if HAS_CJK.search(value.key):
        return len(signs_of(value.key)) > 1
    if value.shape == "code" and any(map(str.isalpha, value.key)):
        return True
    return len(signs_of(value.key)) >= _SHORTEST_TOLD


def _is_told_alike(value: Value, text: UserText, question: Question, given: Given) -> bool:
    """Return whether a short value also fits in an earlier text: the same word is beside it, or a
    word of the question, or it is the only number there.
    """
    if question.asks_for_something and value.key.isdecimal():
        numbers = _NUMBER.findall(given.text.text)
        if len(numbers) == 1:
            return True
    beside = given.text.words_beside(*given.place)
    near = {each[:_STEM] for each in beside | given.text.words_before(given.place[0])}
    asked = {each[:_STEM] for each in question.words if len(each) >= _SHORTEST_TOLD}
    long = tuple(each for each in question.words if len(each) >= _LONG_NOUN)
    is_compound = any(each.endswith(long) for each in beside)
    is_beside = not beside.isdisjoint(text.words_beside(*value.place))
    return is_beside or is_compound or not near.isdisjoint(asked)


def _was_given_for(request: Request, value: Value, given: Given) -> bool:
    """Return whether an earlier text gave a value as the kind of fact that a request asks for."""
    said, place = given.text, given.place
    if COUNT in request.kinds and _are_beside(said.words_beside(*place), request.words):
        return True
    natural = _natural_kinds(value, said.text, place)
    named = frozenset(kind for kind in given.kinds if value.shape in shapes_of(kind))
    if natural & request.kinds:
        return True
    if (named | given.asked) & request.kinds:
        return True
    if named:
        return _are_alike(named, request.kinds, value)
    return value.is_distinctive or value.shape == "place"


def _is_named(request: Request, value: Value, text: UserText, given: Iterable[Given]) -> bool:
    """Return whether a request uses the words with which the user gave a value: all nouns directly
    before it. If the answer is only the value, one long word near it is enough.
    """
    is_bare = text.has_only(*value.place)
    for each in given:
        name = each.text.nouns_before(each.place[0])
        if name and name <= request.words and not each.kinds:
            return True
        near = each.text.words_before(each.place[0]) & request.words if is_bare else ()
        if any(len(word) >= _LONG_NOUN for word in near):
            return True
    return False


def _is_proper(value: Value, text: UserText, given: Iterable[Given]) -> bool:
    """Return whether a message has nothing but a code, or nothing but a name. A name also has
    capitals inside a sentence of an earlier text.
    """
    if value.shape == "code":
        return value.is_distinctive and signs_of(text.text) == value.key
    if value.shape != "words" or not value.is_whole or not value.text[0].isupper():
        return value.is_whole and HAS_CJK.search(value.text) is not None
    return value.is_distinctive or any(is_inside(each.text.text, value.text) for each in given)


def _is_loose(value: Value, request: Request) -> bool:
    """Return whether a value may only be an answer as the whole message: a number with words that
    is no address, a user name, or a code where words are expected.
    """
    if value.shape == "code":
        return all(shapes_of(kind)[0] == "words" for kind in request.kinds)
    if value.shape == "place":
        return "address" not in request.kinds
    worded = {kind for kind in request.kinds if "words" in shapes_of(kind)}
    return value.shape == "words" and worded == {"customer"}


def _are_beside(found: Iterable[str], asked: Iterable[str]) -> bool:
    """Return whether one of the words beside a number is also in a question."""
    words = frozenset(asked)
    return any(
        each in words or (HAS_CJK.search(each) and any(each in word for word in words))
        for each in found
    )


def _are_alike(named: frozenset[str], asked: frozenset[str], value: Value) -> bool:
    """Return whether a value given as the kinds `named` can answer a request for the kinds `asked`.
    A number of unknown kind can be any number.
    """
    if named & asked:
        return True
    is_number = value.shape == "code"
    named_number = named == {ANY_NUMBER} and not asked.isdisjoint(_NUMBERS)
    asked_number = ANY_NUMBER in asked and not named.isdisjoint(_NUMBERS)
    return is_number and (named_number or asked_number)


def _natural_kinds(value: Value, text: str, place: tuple[int, int]) -> frozenset[str]:
    """Return the kinds of facts that a value shows by its form, such as date or amount."""
    if value.shape == "code":
        if is_amount(text, *place):
            return frozenset({"amount"})
        return frozenset({"time"}) if _IS_TIME.fullmatch(value.text) else _NO_KINDS
    return _NATURAL.get(value.shape, _NO_KINDS)
