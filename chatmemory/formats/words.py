"""Checks that the words of a file's records are in the messages that were read from them.

A string has words if it has four letters or more, and is no id, date, URL or the like. Each string
with words must be in a text, a thought, a tool call or a tool result of a message. Attributes do
not count, because they are neither searched nor shown. A string that is in no message is reported
as a loss (see `chatmemory.formats.account`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import chain, islice
from operator import le

from chatmemory.formats.format import Transcript
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import TextContent
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.patterns import declared_pattern

NEAR = 3  # turns on either side whose messages are searched first
BEFORE = 6  # messages before a turn that are near, too, however far: an answer may go on later
KEPT = 16  # messages whose texts stay unpacked
LOOKED_THROUGH = 50_000_000  # characters of other messages, for each conversation

# Properties that hold no prose, in lower case without punctuation: as texts and numbers. An object
# under such a name is not what its program writes there. Names with `_ENDS` hold none either.
_SILENT = {
    *("id", "ids", "uuid", "type", "kind", "role", "from", "author", "sender", "recipient"),
    *("name", "toolname", "model", "modelid", "provider", "status", "state", "object", "index"),
    *("timestamp", "time", "date", "created", "updated", "version", "signature", "signatures"),
    *("encrypted", "encryptedcontent", "mimetype", "mediatype", "mime", "format", "language"),
    *("lang", "detail", "url", "uri", "href", "path", "file", "filename", "finishreason"),
    *("stopreason", "stopsequence", "blocktype", "partkind", "kwargstype", "lc"),
    *("providername", "weight", "phase", "servicetier"),
    *("namespace", "caller", "thoughtsignature", "channel", "requestor", "hasmore"),
}
_ENDS = ("id", "ids", "at", "type", "url", "uri", "signature", "timestamp", "mimetype")
# Properties that hold none with all that is in them
_SILENT_WHOLE = {
    *("usage", "logprobs", "cachecontrol", "annotations", "citations", "providerdata"),
    *("calldata", "providerdetails", "metadata"),
}
_NAME_MAX = 100  # characters of a name: a longer one is not what a program writes
_WITH_END = declared_pattern(r"(?:[a-z0-9](?=[A-Z])|[_-])[A-Za-z]+$", most=_NAME_MAX)
_LETTERS = declared_pattern(r"(?:[^\W\d_][\W\d_]*){4}")
# Identifiers, hashes, base64, dates and addresses are not words.
_NO_WORDS = declared_pattern(
    r"[0-9a-fA-F-]{16,}|[A-Za-z0-9+/_=-]{60,}|data:[^,]{1,100},.*|[a-z][a-z0-9+.-]*://\S+"
    r"|\d{4}-\d\d-\d\dT[\d:.+Z-]+|[A-Za-z]+_[A-Za-z0-9]{16,}",
    re.DOTALL,
)


def has_content(read: Transcript) -> bool:
    """Return whether a conversation has any content. In an agent's session, only the messages of
    users, the model and tools count.
    """
    if read.session is None:
        return any(map(_says, read.messages))
    own = read.session.by_programs | read.session.summaries
    return any(
        _says(message) and not isinstance(message, SystemMessage)
        for place, message in enumerate(read.session.messages)
        if place not in own
    )


def _says(message: ChatMessage) -> bool:
    match message:
        case AiMessage():
            return bool(message.text or message.thinking or message.tool_execution_requests)
        case UserMessage() | ToolExecutionResultMessage():
            texts = (not isinstance(each, TextContent) or each.text for each in message.contents)
            return any(texts)
    return True


def strings_in(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each string with words in a JSON value: its path, such as `content[].text`, and its
    text. The argument `path` is the path of the value itself.

    A string without words has fewer than four letters, or is an id, a date, a URL or the like.
    Strings under a name such as "id" are left out, too (see `told`).
    """
    waiting: list[tuple[str, JsonValue]] = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            within = [(name, told(name, each)) for name, each in value.items()]
            waiting += [(f"{path}.{name}" if path else name, each) for name, each in within if each]
        elif isinstance(value, list):
            waiting += [(f"{path}[]", each) for each in value]
        elif isinstance(value, str) and _has_words(value):
            yield path, value


def told(name: str, value: JsonValue) -> JsonValue:
    """Return the part of a property's value that may have words; None if there is none.

        "content": "hello"     -> "hello"
        "id": "m1"             -> None
        "id": {"note": "hi"}   -> {"note": "hi"}
        "usage": {…}           -> None

    An object under a name such as "id" is unexpected, so it may have words.
    """
    silence = _silence_of(name) if len(name) <= _NAME_MAX else _Silence.NONE
    if silence is _Silence.WHOLE:
        return None
    return misplaced_objects(value) if silence is _Silence.TEXTS else value


def is_misplaced(name: str, value: JsonValue) -> bool:
    """Return whether a property has an object although its name, such as "id", is a name for texts
    or numbers.
    """
    is_text = len(name) <= _NAME_MAX and _silence_of(name) is _Silence.TEXTS
    return is_text and bool(misplaced_objects(value))


class _Silence(Enum):
    """Which values of a property have no words: no values, texts and numbers, or all values."""

    NONE, TEXTS, WHOLE = range(3)


@lru_cache(maxsize=4_096)
def _silence_of(name: str) -> _Silence:
    plain = plain_name(name)
    end = _WITH_END.search(name)
    if plain in _SILENT_WHOLE or (end and plain.endswith("metadata")):
        return _Silence.WHOLE
    is_silent = plain in _SILENT or (end and plain.endswith(_ENDS))
    return _Silence.TEXTS if is_silent else _Silence.NONE


def plain_name(name: str) -> str:
    """Return a property's name in lower case, without "_" and "-": `toolName` and `tool_name` give
    the same name.
    """
    return name.replace("_", "").replace("-", "").lower()


def misplaced_objects(value: JsonValue) -> JsonValue:
    """Return the unexpected objects in the value of a property such as "id". The expected value is
    a text, a number or a list of texts.

        {"note": "hi"}           -> {"note": "hi"}
        ["m1", {"note": "hi"}]   -> [{"note": "hi"}]
        ["m1"]                   -> []
        "m1"                     -> None

    A list within a list is unexpected, too.
    """
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict | list)]
    return value if isinstance(value, dict) else None


@dataclass(frozen=True)
class Beside:
    """Properties of a format's records that need not be searched for words.

    - `texts`: names of properties with a text or a list of texts. An object there is unexpected,
      and is searched.
    - `wholes`: names of properties that are never searched.
    - `inner`: names of properties with an object or a list of objects, and the `Beside` for these
      objects.

    Numbers and truth values need not be named.
    """

    texts: Collection[str] = ()
    wholes: Collection[str] = ()
    inner: Mapping[str, Beside] = field(default_factory=dict)

    def without(self, value: JsonValue, *read: str) -> JsonValue:
        """Return an object without the properties that need not be searched for words. `read` are
        the names of further properties to leave out, because they were read already.

        A value that is no object is returned unchanged.
        """
        if not isinstance(value, dict):
            return value
        found = {name: self._rest(name, value[name]) for name in value if name not in read}
        return {name: each for name, each in found.items() if each}

    def _rest(self, name: str, value: JsonValue) -> JsonValue:
        if name in self.wholes or isinstance(value, int | float):
            return None
        if inner := self.inner.get(name):
            are_several = isinstance(value, list)
            return [*map(inner.without, value)] if are_several else inner.without(value)
        return misplaced_objects(value) if name in self.texts else told(name, value)


def _has_words(text: str) -> bool:
    return _LETTERS.search(text) is not None and not _NO_WORDS.fullmatch(text.strip())


class Words:
    """The texts of a conversation's messages. Tells whether the words of a record are in them."""

    def __init__(self, read: Transcript) -> None:
        self._messages = read.session.messages if read.session else read.messages
        count = len(self._messages)
        turns = _turns_with_summaries(read)
        self._turns = turns if len(turns) == count else range(count)
        is_in_order = all(map(le, self._turns, islice(self._turns, 1, None)))
        self._order = range(count) if is_in_order else sorted(range(count), key=self._turn)
        self._rest = LOOKED_THROUGH
        messages = self._messages
        # Messages are unpacked once for all turns that they are near to.
        self._texts_of = lru_cache(KEPT)(lambda place: [*_texts(messages[place])])

    def _turn(self, place: int) -> int:
        return self._turns[place]

    @property
    def missing(self) -> str:
        """The end of a sentence about texts that were not found, such as "are not read". If not all
        messages were searched, it is "may not be read: the conversation is too long to search all
        of it".
        """
        if self._rest < 0:
            return "may not be read: the conversation is too long to search all of it"
        return "are not read"

    def _near(self, turn: int) -> Iterator[int]:
        """Yield the positions of the messages near a record: those of the record and after it, then
        those before it.
        """
        own, end = self._first_from(turn), self._first_from(turn + NEAR + 1)
        first = max(0, min(self._first_from(turn - NEAR), own - BEFORE))
        end = max(end, self._first_from(turn + 1) + 1)
        return chain(self._order[own:end], reversed(self._order[first:own]))

    def _first_from(self, turn: int) -> int:
        """Return the position of the first message from this record or a later one."""
        if isinstance(self._order, range):
            return bisect_left(self._turns, turn)
        return bisect_left(self._order, turn, key=self._turn)

    def has_all(self, text: str, turn: int) -> bool:
        """Return whether the words of a text are in messages. The whole text must be in one
        message. If the text is the JSON of an object or list, it is enough that each string with
        words is in some message.

        `turn` is the index of the record with the text.
        """
        if self.has(text, turn):
            return True
        value = decoded(text) if text.lstrip()[:1] in ("{", "[") else text
        if isinstance(value, str):
            return False
        return all(self.has(each, turn) for _, each in strings_in(value))

    def has(self, text: str, turn: int) -> bool:
        """Return whether any of the read messages has this text of the file. `turn` is the index of
        the record in which the file has the text.

        Messages that were read from this record, and from records near it, are searched first. Of
        the other messages, only a limited number of characters is searched.
        """
        near = [each for place in self._near(turn) for each in self._texts_of(place)]
        plain = text.strip()
        if any(plain in each for each in near):
            return True
        forms = _forms(plain)
        if _is_in(forms, near):
            return True
        for place in reversed(self._order):
            if self._rest < 0:
                return False
            texts = self._texts_of(place)
            self._rest -= sum(map(len, texts))
            if _is_in(forms, texts):
                return True
        return False


def _turns_with_summaries(read: Transcript) -> Sequence[int]:
    """Return, for each message of a session, the index of its record. A summary has the index of
    the message after it; at the end, that of the message before it.
    """
    if read.session is None or not read.session.compactions:
        return read.turns
    turns = list(read.turns)
    for place in sorted(read.session.summaries):
        if turns:
            turns.insert(place, turns[min(place, len(turns) - 1)])
    return turns


def _is_in(forms: Sequence[str], texts: Iterable[str]) -> bool:
    return any(form in text for text in texts for form in forms)


def _forms(plain: str) -> list[str]:
    """Return the two spellings that a text can have in a message: as it is, and within JSON."""
    return list(dict.fromkeys((plain, json.dumps(plain, ensure_ascii=False)[1:-1])))


def _texts(message: ChatMessage) -> Iterator[str]:
    match message:
        case SystemMessage():
            yield message.text
        case UserMessage() | ToolExecutionResultMessage():
            yield from (c.text for c in message.contents if isinstance(c, TextContent))
            yield getattr(message, "name", None) or ""
        case AiMessage():
            yield message.text or ""
            yield message.thinking or ""
            calls = [call for call in message.tool_execution_requests if call]
            yield from (call.arguments or "" for call in calls)
            yield from (call.name or "" for call in calls)
        case CustomMessage():
            yield from _strings_in(message.attributes)


def _strings_in(value: JsonValue) -> Iterator[str]:
    """Yield all strings of a JSON value without copying them."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
