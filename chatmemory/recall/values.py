"""Finds values: what a user gives in an answer, such as a code, a date, a name or an address.

Values are compared as whole words. Capitals, accents, spaces, hyphens and the grouping of digits do
not matter: `LH 454` equals `lh454`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from chatmemory.patterns import declared_pattern
from chatmemory.recall.days import days_in
from chatmemory.recall.numerals import small_numbers_in, times_in
from chatmemory.recall.phrases import (
    CJK,
    HAS_CJK,
    aligned,
    all_nouns,
    fillers,
    folded,
    introductions,
    narrow,
    sign_fillers,
)

MOST_CANDIDATES = 60  # in a message
_LONGEST_CHAIN = 12  # words of a code, such as the groups of a card's number
_MOST_WORDS = 6  # words of a value that is a name or a short answer
_LONGEST_KEY = 64  # signs of a code
_LONGEST_GROUPS = 40  # signs of a clause that may be one code
_LONGEST_WITH_GROUPS = 400  # signs of a message in which they are looked for
_MOST_GROUPS = 8
_LETTERS_OF_GROUP = 3
_MOST_LONG = 3  # longer words, which may be fillers or nouns
_MOST_STRIPPED = 24  # words of a part that may be a value with words around
_MOST_OF_PLACE = 14  # words of an address
DISTINCTIVE = 5  # signs of a code that nobody gives by chance
_MAIL = declared_pattern(
    r"(?<![A-Za-z0-9_.+\-])[A-Za-z0-9_.+\-]++@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+"
)
_LINK = declared_pattern(
    r"(?<![A-Za-z0-9_.@/\-])(?:https?://[^\s<>\"']+|www\.[^\s<>\"']+"
    r"|[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+){0,20}\.[a-z]{2,12}(?:/[^\s<>\"']*)?(?![A-Za-z0-9@]))"
)
_SCHEME = declared_pattern(r"^(?:https?://)?(?:www\.)?")
_SENTENCE_END = declared_pattern(r"(?<=[.!?])\s+|(?<=[。！？])|\n|: |：| - ")
_MAY_BE_LINK = declared_pattern(r"\.[a-z]{2}|://|www\.")  # a search for it is fast
_TOKEN = declared_pattern(r"[A-Za-z0-9]+")
_MAY_BEGIN = declared_pattern(  # a word of a code: with a digit, of few capitals, or before a glue
    r"(?<![A-Za-z0-9])(?:[A-Za-z]*[0-9]|[A-Z]{1,3}(?![A-Za-z0-9])|[A-Za-z]+[-_@+])"
)
_DIGIT = declared_pattern(r"\d")
_BETWEEN = declared_pattern(r"[ \u00a0\u202f]|[-‐–/_.,:@+]|\)[ ]?| \(| [-–/] ")  # parts of one code
_GLUE = declared_pattern(r"[-_@+]")  # no part of a code ends here
UNITS = frozenset(
    (
        *("kg", "g", "mg", "t", "km", "cm", "mm", "m", "qm", "m2", "kw", "kwh", "mwh", "w", "v"),
        *("a", "l", "ml", "cl", "gb", "mb", "tb", "eur", "usd", "min", "h", "pm", "am", "uhr"),
    )
)
# Words for units, with what they are in short
UNIT_WORDS = {
    word: unit
    for unit, words in {
        "kg": "kilo kilos quilo quilos chilo chili kilogram kilograms kilogramm",
        "g": "gram grams gramm gramos gramas grammi grammes gramme",
        "cm": "centimeter centimeters centimetres centimetros centimetri centimetres zentimeter",
        "m": "meter meters metre metres metros metri",
        "km": "kilometer kilometers kilometres kilometros quilometros chilometri",
        "l": "liter liters litre litres litros litri",
        "eur": "euro euros",
        "usd": "dollar dollars",
        "min": "minute minutes minuten minutos minuti",
    }.items()
    for word in words.split()
}
UNIT = f"(?:{'|'.join(sorted(UNITS))})"
_MEASURE = declared_pattern(
    rf"(?<![A-Za-z0-9.,])([0-9]+(?:[.,][0-9]+)?){UNIT}(?![A-Za-z0-9])", re.IGNORECASE
)
_SIDES = declared_pattern(
    r"(?<![A-Za-z0-9.,])[0-9]+(?:[.,][0-9]+)? [x×] [0-9]+(?:[.,][0-9]+)?(?![A-Za-z0-9])"
)
_COUNTED = declared_pattern(r"(?<![^\W_])(?<![0-9][.,])[0-9]{1,4} [^\W\d_]{2,20}(?![^\W_])")
_CAPITALS = declared_pattern(r"(?<![A-Za-z0-9])[A-Z]{5,}(?![A-Za-z0-9])")
_CURRENCY = r"[$€£¥₹]|円|元|(?:usd|eur|gbp|dollars?|euros?|yen|cents?|reais|francs?)\b"
_MONEY_BEHIND = declared_pattern(rf" ?(?:{_CURRENCY})", re.IGNORECASE)
_MONEY_BEFORE = declared_pattern(rf"(?:{_CURRENCY}) ?\Z", re.IGNORECASE, most=8)
_DECIMAL = declared_pattern(r"[0-9]{1,3}(?:[.,][0-9]{3})*[.,:][0-9]{1,2}")
_WORD = declared_pattern(r"[^\W_]++(?:['’\-][^\W_]++)*+")
_PLAIN_WORD = declared_pattern(r"[^\W_]+")
_CLAUSE = declared_pattern(
    r"(?:(?<![0-9]),|,(?![0-9]))|[;:!?。、，；：！？\n()\"“”„「」]|\.(?=\s|$)|—| - "
)
_CLAUSE_OR_SIGN = declared_pattern(rf"[,;:!?。、，；：！？\n()\"“”„「」{CJK}]++|\.(?=\s|$)|—| - ")
_NOT_SIGNS = declared_pattern(r"[\W_]+")


class Value(NamedTuple):
    """A value in a user's message, from index `start` to `end`. `text` is how it is written there.

    - `shape`: "mail", "link", "code", "date", "time", "words" (a name, or a short answer) or
      "place" (an address).
    - `key`: the text in the form in which values are compared.
    - `is_distinctive`: whether it is unlikely that somebody says the value by chance.
    - `is_whole`: whether the message says nothing else.
    - `is_cut`: whether it is a part of a longer code, as `1Z 9921` is of `1Z 9921 556`.
    """

    start: int
    end: int
    text: str
    shape: str
    key: str
    is_distinctive: bool = False
    is_whole: bool = False
    is_cut: bool = False

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def is_number(self) -> bool:
        """Whether the value is a number that texts may write with words, such as 7 or 15,000."""
        is_number = self.shape == "code" and self.key.isdecimal()
        return is_number and (len(self.key) < 3 or self.key.endswith("000"))

    @property
    def name(self) -> str:
        """The name that identifies the value among the facts of its conversation, such as
        `~code:lh454`. Facts that are not values have names without `~`.
        """
        return f"~{self.shape}:{self.key}"


def signs_of(text: str) -> str:
    """Return the letters and digits of a text, in lowercase without accents."""
    return signs_in(folded(text))


def signs_in(lowered: str) -> str:
    """Return the letters and digits of `lowered`, which is in lowercase without accents."""
    return _NOT_SIGNS.sub("", lowered)


# Values of a message


def longest_first(found: Iterable[Value]) -> list[Value]:
    return sorted(found, key=lambda each: (each.start - each.end, each.start))[:MOST_CANDIDATES]


def codes_in(text: str) -> list[Value]:
    """Return the email addresses, links, codes, dates and times in a text, as values."""
    text = narrow(text)
    exact = [*_mails(text), *_links(text)]
    taken = [(each.start, each.end) for each in exact]
    has_digit = _DIGIT.search(text)
    numbers = (
        [*_codes(text, taken), *_dates(text), *_groups(text), *_measures(text)] if has_digit else []
    )
    return [*exact, *numbers, *_times(text), *_capitals(text)]


def words_in(text: str) -> list[Value]:
    """Return the parts of a text that may be a name, a short answer or an address, as values. Also
    small numbers in words, such as "three".
    """
    text = narrow(text)
    return [*_words(text), *addresses_in(text), *words_for_numbers(text)]


def names_like(text: str, value: Value) -> list[Value]:
    """Return the names and short answers in a text that equal a value, even if they are written
    differently.
    """
    return [each for each in _words(narrow(text), value.key) if each.key == value.key]


def addresses_in(text: str) -> list[Value]:
    return [*_places(narrow(text))]


def _mails(text: str) -> Iterator[Value]:
    for each in _MAIL.finditer(text) if "@" in text else ():
        yield Value(*each.span(), each[0], "mail", folded(each[0]), is_distinctive=True)


def _links(text: str) -> Iterator[Value]:
    for each in _LINK.finditer(text) if _MAY_BE_LINK.search(text) else ():
        written = each[0].rstrip(".,;:!?)/")
        key = _SCHEME.sub("", folded(written))
        end = each.start() + len(written)
        yield Value(each.start(), end, written, "link", key, is_distinctive=True)


def _codes(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[Value]:
    for chain in _chains(text, taken):
        for first in range(len(chain)):
            for last in range(first, len(chain)):
                start, end = chain[first].start(), chain[last].end()
                if not _is_cut(text, start, end) and (value := _code(text, start, end)):
                    yield value._replace(is_cut=last - first + 1 < len(chain))


def _groups(text: str) -> Iterator[Value]:
    """Yield the clauses that consist of the groups of one code, such as `gh 418 lt`."""
    if len(text) > _LONGEST_WITH_GROUPS:
        return
    has_signs = HAS_CJK.search(text) is not None
    ends = _CLAUSE_OR_SIGN if has_signs else _CLAUSE
    longest = _LETTERS_OF_GROUP + has_signs
    for start, end in spans_between(ends, text):
        if end - start > _LONGEST_GROUPS or not _DIGIT.search(text, start, end):
            continue
        words = _PLAIN_WORD.findall(text, start, end)
        if sum(len(word) > longest and word.isalpha() for word in words) > _MOST_LONG:
            continue
        if len(words) == 1 and words[0].isascii():  # a code of one group
            continue
        span = _stripped(text, start, end)
        for each in dict.fromkeys((span, _with_letters(text, span, (start, end)))):
            if each and (value := _grouped(text, each, longest)):
                yield value


def _with_letters(
    text: str, span: tuple[int, int] | None, clause: tuple[int, int]
) -> tuple[int, int] | None:
    """Return the span of a whole clause if its words outside `span` are single letters, else
    None.
    """
    words = [*_PLAIN_WORD.finditer(text, *clause)]
    if span is None or all(span[0] <= each.start() < span[1] for each in words):
        return None
    others = [each[0] for each in words if not span[0] <= each.start() < span[1]]
    are_letters = all(len(each) == 1 and each.isascii() for each in others)
    return (words[0].start(), words[-1].end()) if are_letters else None


def _grouped(text: str, span: tuple[int, int], longest: int) -> Value | None:
    """Return the span of a text as a code if its words can be groups of one code, else None."""
    groups = _PLAIN_WORD.findall(text, *span)
    if len(groups) > _MOST_GROUPS or any(len(each) > longest and each.isalpha() for each in groups):
        return None
    value = _code(text, *span)
    has_filler = not fillers().isdisjoint(map(folded, groups))
    return value and value._replace(is_distinctive=value.is_distinctive and not has_filler)


def _times(text: str) -> Iterator[Value]:
    for each in times_in(text):
        yield Value(each.start, each.end, text[each.start : each.end], "time", each.key)


def words_for_numbers(text: str) -> Iterator[Value]:
    """Yield the numbers from 2 to 12 that a text writes in words, such as "three", as values. Their
    shape is "code", and their `key` has digits.
    """
    lowered, places = aligned(text)
    for start, end, digits in small_numbers_in(lowered):
        span = places[start], places[end]
        yield Value(*span, text[slice(*span)], "code", digits)


def _measures(text: str) -> Iterator[Value]:
    """Yield the numbers with a unit directly after them, such as `17kg`, and the sizes, such as `14
    x 12`.
    """
    for each in _MEASURE.finditer(text):
        if value := _code(text, *each.span(1)):
            yield value
    for each in _SIDES.finditer(text):
        if value := _code(text, *each.span()):
            yield value


def _chains(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[list[re.Match[str]]]:
    """Yield the words that together may be one code, such as `LH 454`. Spans in `taken` are left
    out.
    """
    chain: list[re.Match[str]] = []
    end = 0
    while token := _next_token(text, end, is_in_chain=bool(chain)):
        end = token.end()
        is_free = not any(start <= token.start() < end for start, end in taken)
        between = text[chain[-1].end() : token.start()] if chain else ""
        behind = text[end : end + 2]
        if chain and not (is_free and _goes_on(between, token[0], behind)):
            yield from _with_digit(chain)
            chain = []
        if is_free and (chain or _may_begin(token, text)):
            chain.append(token)
        if len(chain) == _LONGEST_CHAIN:
            yield from _with_digit(chain)
            chain = []
    yield from _with_digit(chain)


def _next_token(text: str, start: int, *, is_in_chain: bool) -> re.Match[str] | None:
    """Return the next word that may be a part of a code, from an index on. Outside a chain, it must
    be able to begin a code.
    """
    if is_in_chain:
        return _TOKEN.search(text, start)
    found = _MAY_BEGIN.search(text, start)
    return found and _TOKEN.match(text, found.start())


def _with_digit(chain: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    if not all(token[0].isalpha() for token in chain):
        yield chain


def _may_begin(token: re.Match[str], text: str) -> bool:
    word = token[0]
    return not word.isalpha() or _is_short(word) or _GLUE.match(text, token.end()) is not None


def _is_short(word: str) -> bool:
    return len(word) <= 3 and word.isupper()


def _goes_on(between: str, word: str, behind: str) -> bool:
    """Return whether a word continues a code. `between` is the text before it, and `behind` are the
    two characters after it.
    """
    if not _BETWEEN.fullmatch(between):
        return False
    is_coded = not word.isalpha() or _is_short(word)
    return is_coded or between.strip() != "" or _GLUE.match(behind) is not None


def _is_cut(text: str, start: int, end: int) -> bool:
    """Return whether a span is only a part of a longer word."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    is_cut_before = len(before) == 2 and _GLUE.match(before[1]) and before[0].isalnum()
    is_cut_behind = len(behind) == 2 and _GLUE.match(behind[0]) and behind[1].isalnum()
    return bool(is_cut_before or is_cut_behind)


def _code(text: str, start: int, end: int) -> Value | None:
    written = text[start:end]
    key = signs_of(written)
    if not any(map(str.isdecimal, key)) or len(key) > _LONGEST_KEY:
        return None
    has_letter = any(map(str.isalpha, key))
    is_money = is_amount(text, start, end)
    is_long = len(key) >= (4 if has_letter else DISTINCTIVE)
    is_distinctive = is_long and not is_money and not _DECIMAL.fullmatch(written)
    return Value(start, end, written, "code", key, is_distinctive)


def is_amount(text: str, start: int, end: int) -> bool:
    """Return whether a span of a text is an amount of money: a currency, such as "$" or "EUR", is
    directly beside it.
    """
    before = _MONEY_BEFORE.search(text[max(0, start - 8) : start])
    return before is not None or _MONEY_BEHIND.match(text, end) is not None


def _capitals(text: str) -> Iterator[Value]:
    """Yield the words in capitals. None if the whole text is in capitals."""
    found = list(_CAPITALS.finditer(text))
    words = [word for word in _PLAIN_WORD.findall(text) if word.isalpha()] if found else []
    is_shouted = len(words) > 2 and sum(map(str.isupper, words)) * 2 > len(words)
    for each in () if is_shouted else found:
        yield Value(*each.span(), each[0], "code", folded(each[0]), is_distinctive=True)


def _dates(text: str) -> Iterator[Value]:
    for each in days_in(text):
        yield Value(each.start, each.end, text[each.start : each.end], "date", each.key)


def _words(text: str, key: str = "") -> Iterator[Value]:
    """Yield the words that may be a name or a short answer. With a `key`, only those with this key
    are needed.
    """
    part = key.partition(" ")[0]
    clauses = [*spans_between(_CLAUSE, text)]
    if part:
        clauses = [span for span in clauses if part in folded(text[slice(*span)])]
    parts = [_stripped(text, *span) for span in clauses]
    spans = [span for span in parts if span]
    for span in spans:
        yield from _words_at(text, *span, is_whole=len(spans) == 1)
    for span in _behind_introductions(text):
        yield from _words_at(text, *span, is_whole=False)
    for each in _NAME.finditer(text):
        if (not part or part in folded(each[0])) and (name := _stripped(text, *each.span())):
            yield from _words_at(text, *name, is_whole=False)


_NAME = declared_pattern(
    r"(?<![^\W_])[A-ZÀ-ÖØ-Þ][^\W\d_]+(?:['’\-][^\W\d_]+)*"
    r"(?: (?:(?:de|da|do|dos|das|di|del|della|van|von|der|den|la|le|bin|al|el|y) ){0,2}"
    r"[A-ZÀ-ÖØ-Þ](?:\.|[^\W\d_]+(?:['’\-][^\W\d_]+)*)){0,4}"
)


def _words_at(text: str, start: int, end: int, *, is_whole: bool) -> Iterator[Value]:
    written = text[start:end]
    words = _PLAIN_WORD.findall(folded(written))
    if 0 < len(words) <= _MOST_WORDS and not any(map(str.isdecimal, written)):
        is_name = len(words) > 1 and all(_is_capital(each) for each in _WORD.findall(written))
        key = " ".join(words)
        if len(key) > 1:
            yield Value(start, end, written, "words", key, is_name, is_whole)


def _is_capital(word: str) -> bool:
    return not word[0].islower() or word in _PARTICLES


_PARTICLES = frozenset(
    (
        *("de", "da", "do", "dos", "das", "di", "del", "della", "van", "von", "der", "den"),
        *("la", "le", "bin", "al", "el", "y"),
    )
)


def spans_between(ends: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text between the matches of `ends`, such as between the ends of
    sentences.
    """
    start = 0
    for found in ends.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _behind_introductions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans after phrases such as `my name is`, up to the next comma or `and`."""
    lowered, places = aligned(text)
    for found in introductions().finditer(lowered):
        start = places[found.end()]
        rest = _END_OF_NAME.search(text, start)
        if span := _stripped(text, start, rest.start() if rest else len(text)):
            yield span


_END_OF_NAME = declared_pattern(r"[,;:!?。、，；：！？.\n(]| (?:and|und|y|et|e|aus|from|with) ")


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return a span without small words and nouns for kinds of facts at its ends. None if nothing
    is left.
    """
    span = _inner(text[start:end])
    return span and (start + span[0], start + span[1])


@lru_cache(maxsize=512)
def _inner(part: str) -> tuple[int, int] | None:
    """Return the span of a text without small words and nouns for kinds of facts at its ends. None
    if nothing is left.
    """
    if not part.isascii() and HAS_CJK.search(part):
        return stripped_of_signs(part, 0, len(part))
    words = [*islice(_WORD.finditer(part), _MOST_STRIPPED + 1)]
    if len(words) > _MOST_STRIPPED:
        return None
    nouns, known = _nouns_in(part), fillers()
    while words and (_is_filler(words[0], known) or _is_noun(words[0], nouns)):
        words.pop(0)
    while words and (_is_filler(words[-1], known) or _is_noun(words[-1], nouns)):
        words.pop()
    return (words[0].start(), words[-1].end()) if words else None


@lru_cache(maxsize=256)
def _nouns_in(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the nouns for kinds of facts in a text."""
    lowered, places = aligned(text)
    found = all_nouns().found_in(lowered)
    return tuple((places[each.start], places[each.end]) for each in found)


def _is_noun(word: re.Match[str], nouns: Iterable[tuple[int, int]]) -> bool:
    return any(first <= word.start() < end for first, end in nouns)


def _is_filler(word: re.Match[str], known: frozenset[str]) -> bool:
    whole = folded(word[0])
    if whole in known or whole.isalnum():
        return whole in known
    return all(part in known for part in _PLAIN_WORD.findall(whole))


def stripped_of_signs(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return a span without punctuation and small words at its ends, and without a leading noun
    such as "name". None if nothing is left.

    For languages without spaces.
    """
    has_changed = True
    while has_changed and start < end:
        has_changed = False
        if not text[start].isalnum():
            start, has_changed = start + 1, True
            continue
        if not text[end - 1].isalnum():
            end, has_changed = end - 1, True
            continue
        part = text[start:end]
        for filler in sign_fillers():
            if part.startswith(filler) and (len(filler) > 1 or not _is_sign_of_name(part)):
                start, has_changed = start + len(filler), True
                break
            if part.endswith(filler):
                end, has_changed = end - len(filler), True
                break
        else:
            for first, last in _nouns_in(part):
                if first == 0:
                    start, has_changed = start + last, True
                    break
    return (start, end) if start < end else None


def _is_sign_of_name(part: str) -> bool:
    """Return whether a part has one or two characters, so that its first character may belong to a
    name.
    """
    return len(part) <= 2


def _places(text: str) -> Iterator[Value]:
    """Yield what may be an address: words with a number, as values."""
    has_digit = any(map(str.isdecimal, text))
    sentences = [*spans_between(_SENTENCE_END, text)] if has_digit else []
    whole = (0, len(text))
    parts = [part for span in (whole, *sentences) for part in _parts_of(text, *span)]
    counted = [each.span() for each in _COUNTED.finditer(text)]
    spans = (
        [whole, *sentences, *parts, *spans_between(_CLAUSE, text), *counted] if has_digit else []
    )
    for span in dict.fromkeys(spans):
        stripped = _stripped(text, *span) if _DIGIT.search(text, *span) else None
        if stripped is None:
            continue
        written = text[slice(*stripped)]
        key = place_key(written)
        has_both = any(map(str.isdecimal, key)) and any(map(str.isalpha, key))
        if has_both and (2 <= len(key.split()) <= _MOST_OF_PLACE or HAS_CJK.search(key)):
            yield Value(*stripped, written, "place", key)


def _parts_of(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans from the beginning of a sentence to each of its commas. An address may be one
    of them.
    """
    at = text.find(",", start, end)
    while 0 <= at < end:
        yield start, at
        at = text.find(",", at + 1, end)


def place_key(text: str) -> str:
    """Return the `Value.key` of an address: its words without small words, in lowercase without
    accents.
    """
    words = _PLAIN_WORD.findall(folded(text))
    return " ".join(each for each in words if each not in fillers() or each.isdecimal())
