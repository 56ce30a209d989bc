"""Finds facts: terms that nobody can guess, such as order numbers, dates and ids.

Most facts are recognized in any message. A code is a number, or a run of capitals. It is a fact
only if some message marks it, such as by the word "order" before it. It is then a fact in the whole
conversation.

Durations and the names of linters' rules, such as `E501`, are no facts, because they occur in many
conversations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from string import ascii_letters, digits
from time import process_time
from typing import NamedTuple, Protocol, TypeVar

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.contents import TextContent
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.messages.tombstones import is_tombstone
from chatmemory.patterns import declared_pattern
from chatmemory.recall.dates import Date, dates_in, without_times
from chatmemory.recall.kept_readings import MOST_KEPT, kept_if_short

SHORTEST, LONGEST = 4, 200
# A number that follows one of these words, or #, is a fact.
NAMES_OF_NUMBERS = ("order", "number", "id", "ticket", "account", "code", "ending in")
# Names that compilers, linters and machines give.
VOCABULARY = declared_pattern(
    r"(?:u?int|float|complex|sha|md|base|arm|amd|utf-?|ipv|x86_)[0-9]+|[01]-(?:based|indexed)"
    r"|(?:0-9|[aA]-[fFzZ]|_)+"
    r"|(?:[BCDEFGNSW]|SA|ST|QF|SC|TS|PT|UP|DEP|PL[CERW])[0-9]{3,4}"
)
# Words that code and tests count, such as `line1`, and descriptions, such as `12-hex-char`.
_COUNTED = declared_pattern(
    r"(?<![a-z])[a-z]{3,}+[1-9][0-9]?"
    r"|[0-9]{1,4}(?:-[a-z]{2,}){0,2}-(?:char(?:acter)?|digit|bit|byte|letter|word|line|column|step"
    r"|page|part|point|way|fold|level|second|minute|hour|day|night|week|month|year|person|star)s?"
)
_LONGEST_PLACEHOLDER, _FEWEST_LETTERS = 24, 3
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "01234567890"
# A user's message above these sizes is a pasted log or transcript.
LONGEST_SAID, MOST_LINES = 1_000, 10
LIMIT = 50  # facts that are appended to a summary, unless another number is given
PUNCTUATION = "._@/+-"
_RUN = declared_pattern(r"[A-Za-z0-9._@/+\-]+")
_OF_RUNS = f"{ascii_letters}{digits}{PUNCTUATION}"
# The rest of a run from its first digit on, and a run that begins with five capitals. The patterns
# are possessive, so that a search is linear in the text's length.
_FROM_DIGIT = declared_pattern(r"[0-9][A-Za-z0-9._@/+\-]*+")
_CAPITAL_RUN = declared_pattern(r"(?<![A-Za-z0-9._@/+\-])[._@/+\-]*+[A-Z]{5}[A-Za-z0-9._@/+\-]*+")
_DIGIT, _CAPITALS = declared_pattern(r"[0-9]"), declared_pattern(r"[A-Z](?=[A-Z]{4})")
_CODE = declared_pattern(r"[0-9]{4,}|[A-Z]{5,}")
# Codes that are written in groups, whose first group alone would be a term: bank accounts, and the
# postcodes and plates of Great Britain.
_GROUPED = declared_pattern(
    r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z][0-9][A-Z0-9] "
    r"(?:[A-Z0-9]{4}(?: [0-9]{4}){2,6}(?: [A-Z0-9]{1,3})?|[0-9][A-Z]{2}|[A-Z]{3})(?![A-Za-z0-9])"
)
# A number, and the words just before it that name it, at most so many characters long. Its first
# digit stands before the test of what is before it: the search for a digit is fast.
_NUMBER = declared_pattern(r"[0-9](?<![0-9][0-9])[0-9]{3,}+(?![A-Za-z0-9_]|[.@/+\-][A-Za-z0-9])")
_NAMED_BEFORE = declared_pattern(
    rf"(?:\#|(?<![A-Za-z])(?:{'|'.join(map(re.escape, NAMES_OF_NUMBERS))}))"
    r"""["'`*_]{0,3}[ ]?(?:is|are|was|[:=\#])?[ "'`*_\#(]{0,4}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_NAME = max(map(len, NAMES_OF_NUMBERS)) + 11
_UNITS = "ns|us|ms|s|m|h|d|w|secs?|mins?|hrs?|seconds?|minutes?|hours?|days?|weeks?|months?|years?"
_SIZES = "st|nd|rd|th|am|pm|[kmgt]i?b|k|x|px|rem|em|pt|fps|hz"
_NO_FACT = declared_pattern(
    rf"""
    [+\-]?[0-9]+(?:[./][0-9]+)?               # a number alone; 05/06 is no date either
    | [0-9]{{1,5}}[+\-][0-9]{{1,5}}           # a range of lines, 00+1
    | [0-9]{{8}}T[0-9]{{2,9}}Z?               # a time without signs
    | 0o[0-7]{{3,6}}                          # an octal mode
    | (?:[0-9.]{{1,9}}-?(?:{_UNITS}))+        # a duration
    | [0-9.]{{1,9}}(?:{_SIZES})               # a time or a size
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Words:
    """A project's additions to what counts as a fact or a repetition.

    - `terms`: words that are facts, where no letter or digit is beside them.
    - `prefixes`: beginnings of facts. `INV-` finds `INV-new/7`.
    - `patterns`: regular expressions for facts.
    - `repeatable`: names of tools that may be called repeatedly. Their calls never count as
      repetitions.
    - `reminders`: phrases of users who repeat themselves, such as "as I said".
    - `requests`: phrases with which assistants ask for the noun after them, such as "please send
      me".

    Raises InvalidValue for an empty word, and for a pattern that cannot be used.
    """

    terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()
    reminders: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = (self.terms, self.prefixes, self.repeatable, self.reminders, self.requests)
        for word in chain.from_iterable(own):
            if not isinstance(word, str) or not word.strip():
                raise InvalidValue(f"a word that is a fact must be a text, but is: {word!r}")
        for pattern in self.patterns:
            _check_pattern(pattern)


# CPU for a text of LINE characters. A quadratic pattern takes a tenth of it, a linear one none
SLOW_SECONDS, LINE = 0.25, 2_048
_REPEATED = ("a", "A", "1", " ", "a ", "a1", "1.", "a-", "A-1 ", "@", ".", "_")


def _check_pattern(pattern: str) -> None:
    try:
        finds_nothing = _own(pattern).search("") is not None
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"{pattern!r} is no regular expression: {error}") from error
    if finds_nothing:
        raise InvalidValue(f"the pattern of facts {pattern!r} must not match an empty text")
    if shape := _slow_shape(pattern):
        raise InvalidValue(
            f"a pattern of facts takes too long for a text that repeats {shape!r}: {pattern!r}"
        )


@cache
def _slow_shape(pattern: str) -> str:
    """Return what a text must repeat to make a pattern far too slow; "" if no such text is found.
    Patterns whose time grows with the square of the length pass.

    Texts grow a little at a time, so that a pattern whose time doubles with each character is found
    within seconds.
    """
    letters = "".join(filter(str.isalnum, pattern))[:20]
    for shape in filter(None, (*_REPEATED, letters)):
        for size in (*range(12, 32, 2), *(2**n for n in range(5, LINE.bit_length()))):
            text = (shape * size)[:size] + "!"
            began = process_time()
            for _ in _own(pattern).finditer(text):
                pass
            if process_time() - began > SLOW_SECONDS:
                return shape
    return ""


NO_WORDS = Words()


def words_of(terms: Sequence[str], prefixes: Sequence[str], patterns: Sequence[str] = ()) -> Words:
    """Return the words that an application adds to what counts as a fact.

    - `terms`: words that are facts.
    - `prefixes`: beginnings of facts, such as `INV-`.
    - `patterns`: regular expressions for facts.

    Raises InvalidValue for invalid words.
    """
    for words in (terms, prefixes, patterns):
        if isinstance(words, str):
            raise InvalidValue(f"the words that are facts must be a list of texts, not {words!r}")
    return Words(tuple(terms), tuple(prefixes), tuple(patterns))


class NamedFacts(NamedTuple):
    """The facts in a message.

    - `terms`: texts that are facts whatever other messages say.
    - `dates`: dates, each with how the message writes it.
    - `codes`: numbers and runs of capitals. A code is a fact if any message of the conversation
      marks it, such as by the word "order" before a number.
    - `named`: the codes that this message marks.
    """

    terms: frozenset[str]
    dates: Mapping[Date, str]
    codes: frozenset[str]
    named: frozenset[str]


def found_in(message: ChatMessage, words: Words = NO_WORDS) -> NamedFacts:
    """Return the facts in a message's texts, tool arguments and tool results.

    - A term is a run of 4 to 200 ASCII letters, digits and `._@/+-` with a digit in it. It begins
      and ends with a letter or digit. Numbers in groups, such as the postcode `SW1A 1AA`, are one
      term.
    - The `words` of the project find further terms.
    - A code is a number of at least four digits, or a run of at least five capitals. `codes` of the
      result has all codes, and `named` has the marked codes. Two kinds of codes are marked: a whole
      JSON string, and a number after a word such as "order" (see NAMES_OF_NUMBERS).

    The placeholder of a redacted message has no facts.
    """
    found = [facts_in(text, words) for text in texts_with_facts(message)]
    if len(found) == 1:
        return found[0]
    dates: dict[Date, str] = {}
    for each in found:
        dates |= each.dates
    none = frozenset[str]()
    terms = none.union(*(each.terms for each in found))
    codes = none.union(*(each.codes for each in found))
    return NamedFacts(terms, dates, codes, none.union(*(each.named for each in found)))


@kept_if_short(2 * MOST_KEPT)
def facts_in(text: str, words: Words = NO_WORDS) -> NamedFacts:
    """Return the facts in a text; see `found_in`. Results for short texts are cached."""
    terms: set[str] = set()
    dates: dict[Date, str] = {}
    codes: set[str] = set()
    named: set[str] = set()
    if is_tombstone(text):
        return NamedFacts(frozenset(), {}, frozenset(), frozenset())
    if has_digit(text) or _CAPITALS.search(text):
        dates = dates_in(text)
        named.update(_named_numbers(text))
        rest = without_times(text)
        if grouped := set(_GROUPED.findall(rest)):
            terms |= grouped
            rest = _GROUPED.sub(" ", rest)
        for run in runs_in(rest, only_telling=True):
            if _CODE.fullmatch(run):
                codes.add(run)
            elif is_term(run):
                terms.add(run)
    named.update(each for each in strings_in(json_of(text)) if _CODE.fullmatch(each))
    if words != NO_WORDS:
        terms.update(_words_in(text, words))
    return NamedFacts(frozenset(terms), dates, frozenset(codes | named), frozenset(named))


def facts_of(message: ChatMessage, words: Words = NO_WORDS) -> frozenset[str]:
    """Return the facts in a message, as it writes them. Codes (numbers and runs of capitals) count
    only if this message marks them as facts.
    """
    found = found_in(message, words)
    return found.terms | found.named | frozenset(found.dates.values())


def _named_numbers(text: str) -> Iterator[str]:
    """Yield the numbers that follow one of NAMES_OF_NUMBERS."""
    for found in _NUMBER.finditer(text):
        at = found.start()
        if _NAMED_BEFORE.search(text, max(0, at - _LONGEST_NAME), at):
            yield found[0]


def runs_in(text: str, only_telling: bool = False) -> set[str]:
    """Return the runs of characters in a text that could be terms, such as `A-1182`. Punctuation
    around a run is removed.

    With `only_telling`, return only the runs that have a digit or begin with five capitals. This is
    faster than returning all runs.
    """
    runs = _telling_runs(text) if only_telling else _RUN.findall(text)
    return {run.strip(PUNCTUATION) for run in set(runs)}


def _telling_runs(text: str) -> Iterator[str]:
    end = 0
    for found in _FROM_DIGIT.finditer(text):
        before = text[end : found.start()]
        yield before[len(before.rstrip(_OF_RUNS)) :] + found[0]
        end = found.end()
    if _CAPITALS.search(text):
        yield from _CAPITAL_RUN.findall(text)


def has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


def is_term(run: str) -> bool:
    """Return whether a run of characters, such as `A-1182`, is a fact in every message that has it.
    False for a code such as `12345`, which is a fact only if a message marks it.
    """
    return (
        SHORTEST <= len(run) <= LONGEST
        and has_digit(run)
        and not _NO_FACT.fullmatch(run)
        and not VOCABULARY.fullmatch(run)
        and not _COUNTED.fullmatch(run)
        and not is_placeholder(run)
    )


def is_placeholder(run: str) -> bool:
    """Return whether a run of characters is a typical example of an id, such as `abc1234`. It has
    three or more letters, in the order of the alphabet without gaps. Any digits count up, as in
    `789`.
    """
    if len(run) > _LONGEST_PLACEHOLDER:
        return False
    letters = "".join(filter(str.isalpha, run)).lower()
    numbers = "".join(filter(str.isdigit, run))
    return len(letters) >= _FEWEST_LETTERS and letters in _LETTERS and numbers in _DIGITS


@cache
def _pattern(words: Words) -> re.Pattern[str] | None:
    """Return the pattern that finds the terms and prefixes of `words`; None if there are none. Its
    group has a prefix that was found.
    """
    terms = sorted(words.terms, key=len, reverse=True)
    exact = [rf"{re.escape(term)}(?![^\W_])" for term in terms]
    # Possessive, and looking ahead no farther than the longest fact, so that a prefix made of
    # punctuation takes linear time in a long line of it.
    rest = rf"(?=[._@/+\-]{{0,{LONGEST}}}[A-Za-z0-9])[A-Za-z0-9._@/+\-]*+"
    prefixed = [rf"({'|'.join(map(re.escape, words.prefixes))}){rest}"] if words.prefixes else []
    parts = prefixed + exact
    return declared_pattern(rf"(?<![^\W_])(?:{'|'.join(parts)})", family="facts") if parts else None


def _own(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a project's regular expression."""
    return declared_pattern(pattern, family="patterns of the settings")


def _words_in(text: str, words: Words) -> Iterator[str]:
    pattern = _pattern(words)
    for found in pattern.finditer(text) if pattern else ():
        has_prefix = bool(found.re.groups and found[1])
        fact = found[0].rstrip(PUNCTUATION) if has_prefix else found[0]
        if not has_prefix or len(fact) <= LONGEST:
            yield fact
    for own in words.patterns:
        for found in _own(own).finditer(text):
            if 0 < len(found[0]) <= LONGEST:
                yield found[0]


def texts_with_facts(message: ChatMessage) -> Iterator[str]:
    r"""Yield the texts of a message that can contain facts: texts, tool arguments and tool results.

    Escaped line ends (`\n` in JSON or source code) become spaces. Texts with a Windows path are not
    changed.
    """
    for text in _texts_of(message):
        has_escapes = "\\" in text and not _DRIVE.search(text)
        yield _ESCAPES.sub(_spaces, text) if has_escapes else text


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _texts_of(message: ChatMessage) -> Iterator[str]:
    match message:
        case SystemMessage():
            yield message.text
        case AiMessage():
            yield message.text or ""
            for request in message.tool_execution_requests:
                yield (request and request.arguments) or ""
        case UserMessage() | ToolExecutionResultMessage():
            yield from (each.text for each in message.contents if isinstance(each, TextContent))


def is_pasted(message: UserMessage) -> bool:
    """Return whether a user's message is so long that it was probably pasted, not typed."""
    texts = list(texts_with_facts(message))
    lines = sum(text.count("\n") + 1 for text in texts)
    return sum(map(len, texts)) > LONGEST_SAID or lines > MOST_LINES


_LAST_OF_JSON = {"{": "}", "[": "]", '"': '"'}  # by its first character


def json_of(text: str) -> JsonValue:
    """Return the value of a text that is a JSON object, list or string; None for any other text,
    such as `42`.
    """
    last = _LAST_OF_JSON.get(text.lstrip()[:1])
    if last is None or text.rstrip()[-1:] != last:  # an error of the parser takes longer
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def strings_in(value: JsonValue) -> Iterator[str]:
    """Yield the strings among the values of a JSON value. Keys are left out."""
    return (each for _, each in pairs_in(value) if isinstance(each, str))


def pairs_in(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the strings, numbers and booleans in a JSON value, each with its key; "" if there is no
    key.
    """
    waiting: list[tuple[str, JsonValue]] = [("", value)]
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, dict):  # a test for any mapping takes much longer
            waiting += each.items()
        elif isinstance(each, list):
            waiting += ((key, one) for one in each)
        elif each is not None:
            yield key, each


_ESCAPES = declared_pattern(r"(?<!\\)\\++[nrt]")
_DRIVE = declared_pattern(r"(?<![A-Za-z])[A-Za-z]:\\")

# Facts as examples

SHORTEST_NUMBER = 6  # the fewest digits of a bare number that counts as an id
_NAME = declared_pattern(r"\A(?:\D+|.+@.+)")
_DATE = declared_pattern(r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{2}-[0-9]{2}")


class HasFact(Protocol):
    """Anything that is about one fact, such as an incident."""

    @property
    def fact(self) -> str: ...


F = TypeVar("F", bound=HasFact)


def example_rank(fact: str) -> int:
    """Return how well a fact serves as an example: 0 for an id (best), 1 for a name, 2 for a date,
    3 for anything else.
    """
    if _DATE.fullmatch(fact):
        return 2
    if _NAME.fullmatch(fact):
        return 1
    has_letter = any(map(str.isalpha, fact))
    is_long = sum(map(str.isdigit, fact)) >= SHORTEST_NUMBER
    return 0 if has_letter or is_long else 3


def examples_first(found: Iterable[F]) -> Iterator[F]:
    """Yield the items whose facts make good examples: ids first, then names, then dates. The rest
    is left out.
    """
    ranked = [(rank, each) for each in found if (rank := example_rank(each.fact)) < 3]
    yield from (each for _, each in sorted(ranked, key=lambda pair: pair[0]))
