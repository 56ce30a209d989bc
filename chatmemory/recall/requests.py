"""Requests and questions: what an assistant asks a user for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from chatmemory.patterns import declared_pattern
from chatmemory.recall.kept_readings import MOST_KEPT, kept_if_short
from chatmemory.recall.phrases import (
    HAS_CJK,
    Language,
    all_nouns,
    folded,
    own_phrases,
    sentences_of,
    shapes_of,
    spoken_in,
)

_LONGEST_SENTENCE = 400  # characters of a sentence that are read
_IS_QUESTION = declared_pattern(r"(?:[?？]|吗。|か。|か)\s*\Z")
_FEW_WORDS = 4  # words of a question that only names something
_FEW_SIGNS = 8  # the same in signs, in languages without spaces
_BULLET = declared_pattern(r"\A\s*(?:[-*•]|[0-9]{1,2}[.)])\s")
_WORD = declared_pattern(r"[^\W_]+")


class Request(NamedTuple):
    """A sentence in which an assistant asks for facts. `words` are all its words.

    - `kinds`: the kinds of facts that the sentence asks for. Empty if it names no kind that is in
      phrases.toml.
    - `is_again`: whether it asks the user to repeat something.
    - `is_which`: whether it asks for a thing of no known kind: `which branch is it?`
    - `is_other`: whether it asks about another thing than before: `and the second one?`
    """

    kinds: frozenset[str]
    words: frozenset[str]
    is_again: bool = False
    is_which: bool = False
    is_other: bool = False

    def takes(self, shape: str) -> bool:
        """Return whether an answer to the request may have this `Value.shape`, such as "date"."""
        return not self.kinds or any(shape in shapes_of(kind) for kind in self.kinds)


class Question(NamedTuple):
    """What one message of an assistant asks the user.

    - `words`: the words of the sentences that ask. `message` are the words of the whole message.
    - `kinds`: the kinds of facts that the message asks for. Empty if it names no known kind.
    - `asks_for_something`: whether the message asks for a kind of fact, or has a question word such
      as "which". Then "yes" or "no" is not an answer.
    - `is_request`: whether the message asks more than yes-or-no questions. Also True for a short
      question, such as `and the color?`, and for a statement that asks for something.
    - `is_silent`: whether the message asks nothing, and only says that something is lacking: `the
      floor is not in our notes`
    - `is_other`: whether the message asks about another thing than before: `and the second one?`
    """

    words: frozenset[str]
    message: frozenset[str]
    kinds: frozenset[str]
    asks_for_something: bool = False
    is_request: bool = False
    is_silent: bool = True
    is_other: bool = False


class Asked(NamedTuple):
    """What an assistant's text asks. `requests` are the sentences that ask for facts. `question`
    describes what the whole text asks.

    `question` is None if the text asks nothing and does not say that something is lacking.
    """

    requests: tuple[Request, ...] = ()
    question: Question | None = None


@kept_if_short(MOST_KEPT)
def asked_in(text: str, own: tuple[str, ...] = ()) -> Asked:
    """Return what an assistant's text asks. Results for short texts are cached.

    `own` are the project's own phrases for requests (`Words.requests`).
    """
    if not text:
        return Asked()
    read = _read(text)
    requests = _requests_in(read, own)
    return Asked(tuple(requests), _question_in(read, requests))


class _Reading(NamedTuple):
    """A folded text (`whole`), the languages in which it may be written, and the beginnings of its
    sentences.
    """

    whole: str
    spoken: Sequence[Language]
    sentences: Sequence[str]


def _read(text: str) -> _Reading:
    whole = folded(text)
    sentences = [each[:_LONGEST_SENTENCE] for each in sentences_of(whole)]
    return _Reading(whole, spoken_in(whole), sentences)


def _requests_in(text: _Reading, own: tuple[str, ...]) -> list[Request]:
    """Return the requests for facts in an assistant's text. `own` are the project's phrases."""
    found: list[Request] = []
    is_listing = False
    phrases = own_phrases(own) if own else None
    for read in text.sentences:
        if is_listing and _BULLET.match(read):
            kinds = {kind for noun in all_nouns().found_in(read) for kind in noun.kinds}
            if kinds and not any(map(str.isdigit, _BULLET.sub("", read, count=1))):
                found.append(Request(frozenset(kinds), _words_of(read)))
            continue
        is_listing = False
        for language in text.spoken:
            asks = "?" in read or _may_ask(read, language) or (phrases and phrases.search(read))
            part = without_offers(read, (language,)) if asks else ""
            if not part:
                continue
            asked, is_again = language.request_in(part, phrases)
            is_request = language.requests.search(part) is not None
            is_which = not asked and language.which.search(part) is not None
            if asked or is_again or is_request or is_which:
                is_other = language.others.search(part) is not None
                found.append(Request(asked, _words_of(read), is_again, is_which, is_other))
            is_listing |= is_request and read.rstrip().endswith((":", "："))
    return found


def without_offers(sentence: str, spoken: Iterable[Language]) -> str:
    """Return a sentence without its offers, such as `anything else?`. The given sentence must be in
    lowercase without accents. `spoken` are the languages in which offers are searched for.
    """
    for language in spoken:
        sentence = language.without_offers(sentence)
    return sentence


@lru_cache(maxsize=256)
def _may_ask(sentence: str, language: Language) -> bool:
    """Return whether a folded sentence has a phrase of some request or question."""
    return language.may_ask.search(sentence) is not None


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def _asks(sentence: str, spoken: Iterable[Language]) -> bool:
    """Return whether a folded sentence is a question or a request."""
    if _IS_QUESTION.search(sentence):
        return True
    return any(
        one.needing.search(sentence) or (_may_ask(sentence, one) and one.may_be_request(sentence))
        for one in spoken
    )


def _asking(sentence: str, spoken: Iterable[Language]) -> str:
    """Return a folded sentence without its offers; "" if the rest asks nothing."""
    part = without_offers(sentence, spoken)
    return part if part == sentence or _asks(part, spoken) else ""


def _is_short_or_statement(sentence: str) -> bool:
    """Return whether a folded sentence has no question mark, or only a few words, such as `and the
    color?`
    """
    if not _IS_QUESTION.search(sentence):
        return True
    if HAS_CJK.search(sentence):
        return len(sentence.strip()) <= _FEW_SIGNS
    return len(_WORD.findall(sentence)) <= _FEW_WORDS


def _question_in(text: _Reading, requests: Iterable[Request]) -> Question | None:
    """Return what an assistant's text asks the user; None if it asks nothing. `requests` are the
    requests for facts in the text.

    - An offer, such as `anything else?`, asks nothing.
    - A text that only says that something is lacking, such as `the floor is not in our notes`, is a
      question with `is_silent`. If the text also has an offer, it asks nothing.
    """
    whole, spoken, read = text
    asked = [part for each in read if _asks(each, spoken) and (part := _asking(each, spoken))]
    named = [*requests]
    message = _words_of(whole)
    kinds = frozenset[str]().union(*(each.kinds for each in named))
    if not asked and not named:
        lacks = any(one.lacking.search(whole) for one in spoken)
        is_offer = lacks and any(one.no_requests.search(each) for one in spoken for each in read)
        return Question(frozenset(), message, kinds) if lacks and not is_offer else None
    words = _words_of(" ".join(asked))
    is_asking = any(one.asking.search(each) for one in spoken for each in asked)
    is_request = is_asking or bool(named) or any(map(_is_short_or_statement, asked))
    return Question(
        words.union(*(each.words for each in named)),
        message,
        kinds,
        bool(kinds) or is_asking,
        is_request,
        is_silent=False,
        is_other=any(one.others.search(each) for one in spoken for each in asked),
    )
