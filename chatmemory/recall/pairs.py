"""Finds pairs that tool calls take from earlier JSON. A pair is a key with its value, such as
`membership=gold`.

A pair in the arguments of a tool call is a fact if earlier JSON has the same pair. Earlier JSON is
the arguments of an earlier tool call, or an earlier message from a tool, a user or the system. A
pair is left out if its value alone is already a fact, such as an order number.

- A text mentions a pair if it has the value as whole words.
- JSON states a pair if it has the key with the value. A sentence states a pair if it has the value
  and a word of the key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.patterns import declared_pattern
from chatmemory.recall.facts import json_of, pairs_in, texts_with_facts

LONGEST_VALUE = 80
SHORTEST_NUMBER = 3  # digits of a number that is a value
_NO_VALUES = frozenset(("yes", "no", "true", "false", "none", "null", "on", "off", "ok", "n/a"))
SHORTEST_WORD = 3  # letters of a word of a key
_WORD = declared_pattern(r"[^\W_]+")
_WORD_OF_KEY = declared_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_SENTENCE = declared_pattern(r"[^.!?\n]++(?:[.!?](?=\S)[^.!?\n]*+)*+")


class Pair(NamedTuple):
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class Pairs:
    """The facts of a conversation that are pairs: a key with its value, such as
    `membership=gold`.
    """

    def __init__(self, messages: Sequence[ChatMessage], facts: Collection[str]) -> None:
        earlier: set[Pair] = set()
        again: set[Pair] = set()
        self._of_calls = list(map(pairs_of, messages))
        keys = {pair.key for of_call in self._of_calls for pair in of_call}
        for message, of_call in zip(messages, self._of_calls, strict=True):
            again |= of_call & earlier
            earlier |= of_call
            if keys and not isinstance(message, AiMessage):
                earlier.update(_of_texts(message, keys))
        self._facts = {pair for pair in again if pair.value not in facts}
        self._keys = {pair.key for pair in self._facts}
        self._by_words: defaultdict[tuple[str, ...], list[Pair]] = defaultdict(list)
        self._sizes: defaultdict[str, set[int]] = defaultdict(set)  # by the first word
        for pair in self._facts:
            if words := tuple(_words(pair.value)):
                self._by_words[words].append(pair)
                self._sizes[words[0]].add(len(words))

    def used_at(self, position: int) -> frozenset[Pair]:
        """Return the pairs that are facts and occur in the tool calls of the message at a
        position.
        """
        return self._of_calls[position] & self._facts

    def mentioned_in(self, text: str) -> set[Pair]:
        """Return the pairs whose value a text contains."""
        return set(self._found_in(_words(text))) if self._facts else set()

    def said_in(self, text: str, is_prose: bool) -> set[Pair]:
        """Return the pairs that a text states. A text in JSON states a pair if it has the key with
        the value.

        In any other text, a sentence states a pair if it has the value and a word of the key.
        Sentences are only searched if a user or the assistant wrote the text (`is_prose`).
        """
        value = json_of(text) if self._facts else None
        if value is not None:
            return self._facts.intersection(_pairs_of(value, self._keys))
        return set(self._in_sentences(text)) if self._facts and is_prose else set()

    def _in_sentences(self, text: str) -> Iterator[Pair]:
        for sentence in _SENTENCE.findall(text):
            words = _words(sentence)
            stems = {_stem(word) for word in words}
            for pair in self._found_in(words):
                if not stems.isdisjoint(_key_words(pair.key)):
                    yield pair

    def _found_in(self, words: Sequence[str]) -> Iterator[Pair]:
        """Yield the pairs whose values are among these words."""
        known = self._sizes.keys() & set(words)
        for at, word in enumerate(words) if known else ():
            for size in self._sizes[word] if word in known else ():
                yield from self._by_words.get(tuple(words[at : at + size]), ())


def pairs_of(message: ChatMessage) -> frozenset[Pair]:
    """Return the pairs of key and value in the arguments of a message's tool calls."""
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    values = (json_of(call.arguments or "") for call in calls if call)
    return frozenset(pair for value in values for pair in _pairs_of(value))


def _of_texts(message: ChatMessage, keys: Collection[str]) -> Iterator[Pair]:
    for text in texts_with_facts(message):
        yield from _pairs_of(json_of(text), keys)


def _pairs_of(value: JsonValue, keys: Collection[str] | None = None) -> Iterator[Pair]:
    """Yield the pairs in a JSON value: all, or those with one of these keys."""
    for key, each in pairs_in(value):
        if keys is not None and key not in keys:
            continue
        if key and not isinstance(each, bool) and _is_value(str(each)):
            yield Pair(key, str(each))


def _is_value(text: str) -> bool:
    """Return whether a text can be a value of a pair. `1`, `no` and `true` cannot: they tell too
    little.
    """
    is_small = text.isdecimal() and len(text) < SHORTEST_NUMBER
    is_telling = len(text) > 1 and text.lower() not in _NO_VALUES
    return is_telling and len(text) <= LONGEST_VALUE and not is_small


def _words(text: str) -> list[str]:
    if text.isascii():  # the letters of other scripts may change their number
        return _WORD.findall(text.lower())
    return [word.lower() for word in _WORD.findall(text)]


def _key_words(key: str) -> Iterator[str]:
    for word in _WORD_OF_KEY.findall(key):
        if len(word) >= SHORTEST_WORD:
            yield _stem(word.lower())


def _stem(word: str) -> str:
    """Return a word without its plural ending."""
    return word.removesuffix("s") if len(word) > SHORTEST_WORD else word
