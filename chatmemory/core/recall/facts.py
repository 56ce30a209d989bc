"""Facts: terms that nobody can guess, such as order numbers, dates and ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from chatmemory.core.contents import Content, TextContent
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

SHORTEST = 4
# A run of the characters of facts with a digit in it. Possessive, and tried only where a run
# begins, so that a long text costs no more than its length.
_RUN_WITH_DIGIT = re.compile(
    r"(?<![A-Za-z0-9._@/+\-])[A-Za-z._@/+\-]*+[0-9][A-Za-z0-9._@/+\-]*+", re.ASCII
)
_PUNCTUATION = "._@/+-"
_REDACTED = re.compile(r"\[redacted #[0-9]+\]", re.ASCII)


@dataclass(frozen=True)
class Words:
    """Words that are facts although they may hold no digit: exact terms, and prefixes.

    A term is found where no letter or digit stands beside it. A prefix is found with what follows
    it, such as `INV-` in `INV-new/7`. Raises InvalidValue for an empty word.
    """

    terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for word in (*self.terms, *self.prefixes):
            if not isinstance(word, str) or not word.strip():
                raise InvalidValue(f"a word that is a fact must be a text, but is: {word!r}")

    def found_in(self, text: str) -> Iterator[str]:
        if self.terms or self.prefixes:
            yield from _pattern(self).findall(text)


NO_WORDS = Words()


def words_of(terms: Sequence[str], prefixes: Sequence[str]) -> Words:
    """Return the words of a caller. Raises InvalidValue."""
    for given in (terms, prefixes):
        if isinstance(given, str):
            raise InvalidValue(f"words that are facts are a list of texts, not {given!r}")
    return Words(tuple(terms), tuple(prefixes))


@cache
def _pattern(words: Words) -> re.Pattern[str]:
    terms = sorted(words.terms, key=len, reverse=True)
    exact = [rf"{re.escape(term)}(?![^\W_])" for term in terms]
    prefixed = [
        rf"{re.escape(prefix)}(?:[A-Za-z0-9._@/+\-]*[A-Za-z0-9])" for prefix in words.prefixes
    ]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(prefixed + exact)})")


def facts_of(message: ChatMessage, words: Words = NO_WORDS) -> frozenset[str]:
    """Return the facts of a message's texts, tool arguments and tool results.

    A fact is a run of ASCII letters, digits and `._@/+-` that begins and ends with a letter or
    digit, is at least 4 long and holds a digit; or one of the `words`. The mark of a redaction
    holds none.
    """
    return frozenset(fact for text in _texts(message) for fact in _facts_in(text, words))


def _facts_in(text: str, words: Words) -> Iterator[str]:
    if _REDACTED.fullmatch(text):
        return
    for run in _RUN_WITH_DIGIT.findall(text):
        fact = run.strip(_PUNCTUATION)
        if len(fact) >= SHORTEST:
            yield fact
    yield from words.found_in(text)


def _texts(message: ChatMessage) -> Iterator[str]:
    match message:
        case SystemMessage():
            yield message.text
        case AiMessage():
            yield message.text or ""
            for request in message.tool_execution_requests:
                yield (request and request.arguments) or ""
        case UserMessage() | ToolExecutionResultMessage():
            yield from _text_parts(message.contents)


def _text_parts(contents: tuple[Content | None, ...]) -> Iterator[str]:
    for content in contents:
        if isinstance(content, TextContent):
            yield content.text
