"""Keeps details of a message's original JSON that the message has no fields for.

A reader makes a message from JSON values, the *original*. A writer makes other JSON values from
that message, the *written* values. `difference` returns how the original differs from the written
values. This difference is stored in the message's attributes. `applied` later makes the original
again from the written values and the difference.

If the message was edited in between, `applied` uses its new texts. For this, differences follow
these rules:

- A difference does not repeat the texts of its message. Where the original has such a text, the
  difference has a hole, which names the text.
- The hole `{"$": [name, start, end, length]}` stands for the characters from `start` to `end` of
  the text `name`. `length` is the length of the whole text.
- The hole `{"$": [name]}` stands for the object or list whose JSON is the text `name`.
- An original string may have more characters around the text, such as the beginning of a data URL.
  Then the hole also has these characters, as `before` and `after`.
- An original value replaces a written value only if the writer still writes the same value.
- If the original or the written value has a text for which there is a hole, the writer only needs
  to write the same shape. The shape of a value is the value with "…" for each string.

Differences are JSON values:

    {"=": value, "was": mark}    the original value, and a mark (a checksum) of the written value
    {"=": value, "like": mark}   the original value, and a mark of the shape of the written value
    {"was": mark}                a written value that the original does not have
    {"like": mark}               the same, with a mark of the shape
    {"=": value}                 an original value that is not written
    {"in": {name: difference}}   an object in which some properties differ
    {"items": [item, …]}         a list. An item is the label of a written item, or
                                 `{"at": label, …difference}`, or `{"=": value}` for an
                                 original item that is not written

Labels count from 0: "text#1" is the second written item of the kind "text".
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from zlib import crc32

from chatmemory.messages.contents import Content, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

Texts = Mapping[str, str]
_NOTHING: JsonValue = object()
_REPEATS = 100  # how often holes may repeat one message's texts: a bound against hostile input

# The properties in which formats write texts, arguments and results.
_TEXT = {
    *("args", "arguments", "artifact", "content", "data", "error", "input", "instructions"),
    *("output", "partial_json", "rawInput", "reason", "reasoning", "reasoning_content", "refusal"),
    *("response", "result", "summary", "text", "thinking", "transcript", "value"),
}
_MEDIA = {"base64", "data", "file_data", "image_url", "url"}  # the same for images and files
_LONG = 8  # the fewest characters of a text that is looked for within another string


def texts_of(message: ChatMessage) -> dict[str, str]:
    """Return the texts of a message by name, such as "text" or "contents.0". A stored difference
    refers to texts by these names.
    """
    return {name: text for name, text in _texts(message) if text}


def _texts(message: ChatMessage) -> Iterator[tuple[str, str | None]]:
    match message:
        case SystemMessage():
            yield "text", message.text
        case UserMessage() | ToolExecutionResultMessage():
            for i, content in enumerate(message.contents):
                yield f"contents.{i}", content.text if isinstance(content, TextContent) else None
        case AiMessage():
            yield "text", message.text
            yield "thinking", message.thinking
            for i, call in enumerate(message.tool_execution_requests):
                yield f"arguments.{i}", call.arguments if call else None


def texts_in(value: JsonValue, name: str = "") -> Iterator[str]:
    """Yield the strings under properties that have texts, such as "content", at any depth of a JSON
    value. Empty strings are left out.

    `name` is the name of the property that has `value`, or "". A string in a list belongs to the
    property that has the list.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from texts_in(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each, name)
    elif isinstance(value, str) and value and name in _TEXT:
        yield value


def sources_of(message: ChatMessage) -> dict[str, str]:
    """Return the texts of a message ("contents.0") and the data or URLs of its media ("media.1"),
    by name.

    A stored difference can refer to all of them.
    """
    contents = getattr(message, "contents", ())
    media = {f"media.{i}": _data_of(content) for i, content in enumerate(contents)}
    return texts_of(message) | {name: data for name, data in media.items() if data}


def _data_of(content: Content | None) -> str | None:
    values = vars(content).values() if content and not isinstance(content, TextContent) else ()
    media = next((value for value in values if isinstance(value, Media)), None)
    return media.base64_data or media.url if media else None


def _json_of(texts: Texts) -> JsonDict:
    """Return those texts that are JSON objects or lists, decoded, by name."""
    found = {}
    for name, text in texts.items():
        if text[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                found[name] = json.loads(text)
    return {name: value for name, value in found.items() if value}


def difference(written: JsonValue, original: JsonValue, texts: Texts) -> JsonDict | None:
    """Return how the value `original` differs from the value `written`, or None if they are equal.

    `original` is the JSON from which a message was read. `written` is the JSON that a writer makes
    of this message. `texts` is the result of `sources_of` for the message.
    """
    first = _Difference(texts)
    found = first.of(written, original, "")
    return _Difference(texts, first.in_holes).of(written, original, "") if first.in_holes else found


class _Difference:
    """Compares two values. `moved` are the texts that an earlier comparison has replaced
    by holes.
    """

    def __init__(self, texts: Texts, moved: frozenset[str] | set[str] = frozenset()) -> None:
        self._texts = texts
        self._values = _json_of(texts)
        self._moved = moved
        self._ends: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()
        self._room = _REPEATS * sum(map(len, texts.values()))
        self.in_holes: set[str] = set()

    def of(self, written: JsonValue, original: JsonValue, name: str) -> JsonDict | None:
        """Return the difference between two values of the property `name`; None if they
        are equal.
        """
        if _same(written, original):
            return None
        if (
            isinstance(written, dict)
            and isinstance(original, dict)
            and _is_of_kind(original, _kind(written))
        ):
            return self._of_objects(written, original)
        if isinstance(written, list) and isinstance(original, list):
            return self._of_lists(written, original)
        return self._instead(written, original, name)

    def _instead(self, written: JsonValue, original: JsonValue, name: str) -> JsonDict:
        hollow = self._hollow(original, name)
        return {"=": hollow, **self._guard(written, hollow != original)}

    def _guard(self, written: JsonValue, has_holes: bool = False) -> dict[str, int]:
        """Return a mark of a written value. If holes or moved texts are in it, the mark is of its
        shape alone.
        """
        if has_holes or not self._moved.isdisjoint(_strings(written)):
            return {"like": _mark(_shape(written, self._values))}
        return {"was": _mark(written)}

    def _of_objects(self, written: JsonDict, original: JsonDict) -> JsonDict:
        found: JsonDict = {}
        for name, value in original.items():
            if name not in written:
                found[name] = {"=": self._hollow(value, name)}
            elif (inner := self.of(written[name], value, name)) is not None:
                found[name] = inner
        gone = (name for name in written if name not in original)
        return {"in": found | {name: self._guard(written[name]) for name in gone}}

    def _of_lists(self, written: JsonList, original: JsonList) -> JsonDict:
        labelled = _labelled(written)
        partners = _partners(labelled, original)
        items = [
            self._item(labelled, partners.get(place), value) for place, value in enumerate(original)
        ]
        without_partner = labelled.keys() - partners.values()
        gone = [
            {"at": label, **self._guard(value)}
            for label, value in labelled.items()
            if label in without_partner
        ]
        return {"items": items + gone}

    def _item(self, labelled: JsonMap, label: str | None, original: JsonValue) -> JsonValue:
        if label is None:
            return {"=": self._hollow(original, "")}
        inner = self.of(labelled[label], original, "")
        return label if inner is None else {"at": label, **inner}

    def _hollow(self, value: JsonValue, name: str) -> JsonValue:
        """Return an original value in which holes replace the message's texts."""
        if isinstance(value, str):
            return self._hole(value) if name in _TEXT or name in _MEDIA else value
        if source := self._used(each for each in self._values if _same(self._values[each], value)):
            self._moved_now(source, len(self._texts[source]))
            return {"$": [source]}
        if isinstance(value, list):
            return [self._hollow(each, name) for each in value]
        if isinstance(value, dict):
            hollow = {key: self._hollow(each, key) for key, each in value.items()}
            return {"$": hollow} if "$" in value else hollow
        return value

    def _hole(self, original: str) -> JsonValue:
        """Return a hole for a string that is one of the texts, a part of a text, or longer than a
        text.

        Returns the string itself if no text fits, or if `applied` would refuse the hole. A part is
        first searched for after the previous part, because a text may occur twice.
        """
        if len(original) > self._room:
            return original
        if source := self._used(each for each, text in self._texts.items() if original == text):
            return self._whole(source)
        for source, text in self._texts.items():
            if original and original in text:
                start = text.find(original, self._ends[source])
                start = text.find(original) if start < 0 else start
                self._ends[source] = end = start + len(original)
                self._moved_now(source, len(original))
                return {"$": [source, start, end, len(text)]}
        for source, text in self._texts.items():
            before, found, after = (
                original.partition(text) if len(text) >= _LONG else (original, "", "")
            )
            if found:
                return {**self._whole(source), "before": before, "after": after}
        return original

    def _whole(self, source: str) -> JsonDict:
        length = len(self._texts[source])
        self._moved_now(source, length)
        return {"$": [source, 0, length, length]}

    def _moved_now(self, source: str, characters: int) -> None:
        self._room -= characters
        self.in_holes.add(self._texts[source])
        if source in self._values:
            self.in_holes.add(_spelt(self._values[source]))

    def _used(self, sources: Iterable[str]) -> str | None:
        """Return the name that was used least so far, because two calls may have equal
        arguments.
        """
        source = min(sources, key=self._uses.__getitem__, default=None)
        if source is not None:
            self._uses[source] += 1
        return source


def applied(difference: JsonValue, written: JsonValue, texts: Texts) -> JsonValue:
    """Return the original JSON values of a message: `written`, changed by the stored `difference`.
    If the message was edited, the result has the new texts.

    `written` has the JSON values that a writer makes of the message now. `texts` is the result of
    `sources_of`.

    Clients can store any value as a difference. A malformed part is ignored, or raises ValueError.
    """
    try:
        found = _Applied(texts).to(difference, written)
        return written if found is _NOTHING else found
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("this is no difference") from error


class _Applied:
    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._values = _json_of(texts)
        self._room = _REPEATS * sum(map(len, texts.values()))

    def to(self, difference: JsonMap | None, written: JsonValue) -> JsonValue:
        match difference:
            case {"in": dict(properties)} if isinstance(written, dict):
                return self._object(properties, written)
            case {"items": list(items)} if isinstance(written, list):
                return self._list(items, written)
            case {"was": was} if was != _mark(written):
                return written
            case {"like": like} if like != _mark(_shape(written, self._values)):
                return written
            case {"=": value}:
                return self._filled(value)
            case {"was": _} | {"like": _}:
                return _NOTHING
        return written

    def _object(self, properties: JsonMap, written: JsonDict) -> JsonDict:
        found = dict(written)
        for name, inner in properties.items():
            is_added = inner.keys() == {"="}
            if is_added != (name in written):
                found[name] = self.to(inner, written.get(name))
        return {name: value for name, value in found.items() if value is not _NOTHING}

    def _list(self, items: Sequence[JsonValue], written: JsonList) -> JsonList:
        labelled = _labelled(written)
        found = []
        for item in items:
            label = item if isinstance(item, str) else item.get("at")
            if label is None:
                found.append(self._filled(item.get("=")))
            elif label in labelled:
                inner = None if isinstance(item, str) else item
                found.append(self.to(inner, labelled.pop(label)))
        return [value for value in (*found, *labelled.values()) if value is not _NOTHING]

    def _filled(self, value: JsonValue) -> JsonValue:
        """Return a value whose holes are filled with the message's texts. Holes without a text are
        left out.
        """
        if isinstance(value, list):
            filled = [each for inner in value if (each := self._filled(inner)) is not _NOTHING]
            return filled if filled or not value else _NOTHING
        if not isinstance(value, dict):
            return value
        inner = value.get("$")
        if isinstance(inner, list):
            found = self._text(*inner) if len(inner) > 1 else self._value(*inner)
            around = "before" in value and isinstance(found, str)
            return f"{value['before']}{found}{value['after']}" if around else found
        object_values = inner or value
        whole = {key: self._filled(each) for key, each in object_values.items()}
        left = {key: each for key, each in whole.items() if each is not _NOTHING}
        gone = [object_values[key] for key in whole if key not in left]
        has_lists = any(isinstance(each, list) and each for each in left.values())
        is_whole = not gone or (has_lists and all(isinstance(each, list) for each in gone))
        return left if is_whole else _NOTHING

    def _text(self, source: str, start: int, end: int, length: int) -> JsonValue:
        """Return the text for a hole. If the text was edited, the hole at its beginning gets the
        whole text, and other holes get nothing.
        """
        text = self._texts.get(source, "")
        if len(text) == length:
            return self._taken(text[start:end])
        return self._taken(text) if start == 0 and text else _NOTHING

    def _value(self, source: str) -> JsonValue:
        """Return the JSON value in a text. If the text is no longer JSON, return the text."""
        text = self._taken(self._texts.get(source, ""))
        return self._values.get(source, text or _NOTHING)

    def _taken(self, text: str) -> str:
        self._room -= len(text)
        if self._room < 0:
            raise ValueError("more texts than the message can have been said with")
        return text


def names_in(difference: JsonValue) -> list[str]:
    """Return the names of the parts that differ, according to a stored difference. Each name is
    returned once.

    A property is named by its key, and a list item by its kind (its role or type).
    """
    names: dict[str, None] = {}
    waiting = [("", difference)]
    while waiting:
        name, inner = waiting.pop()
        match inner:
            case {"in": dict(properties)}:
                waiting += reversed(properties.items())
            case {"items": list(items)}:
                waiting += [("", item) for item in reversed(items)]
            case {"=": value}:
                names[name or _kind(value)] = None
            case {"was": _} | {"like": _} if name:
                names[name] = None
    return list(names)


def _labelled(items: Sequence[JsonValue]) -> JsonDict:
    """Return items by label: the kind of the item and a number, such as "text#1" for the second
    text.
    """
    counts: Counter[str] = Counter()
    labelled = {}
    for item in items:
        kind = _kind(item)
        labelled[f"{kind}#{counts[kind]}"] = item
        counts[kind] += 1
    return labelled


_NAMES_OF_KINDS = ("role", "type", "part_kind", "kind")


def _kind(item: JsonValue) -> str:
    """Return the role or type of an object. If it has neither, return the name of its first
    property.
    """
    if not isinstance(item, dict):
        return "value"
    named = next((item[name] for name in _NAMES_OF_KINDS if name in item), None)
    return named if isinstance(named, str) else next(iter(item), "")


def _partners(labelled: JsonMap, original: Sequence[JsonValue]) -> dict[int, str]:
    """Return, for each position in the original, the label of the written item that is compared
    with it.

    This is an item of the same kind, or else any item that is left.
    """
    labels = list(labelled)
    free: dict[str, deque[int]] = {}  # places of labels by kind: a scan for each would be quadratic
    for n, label in enumerate(labels):
        free.setdefault(_kind(labelled[label]), deque()).append(n)
    partners: dict[int, str] = {}
    for place, value in enumerate(original):
        fitting = (places for kind, places in free.items() if places and _is_of_kind(value, kind))
        if (places := min(fitting, key=lambda each: each[0], default=None)) is not None:
            partners[place] = labels[places.popleft()]
    left = sorted(n for places in free.values() for n in places)
    alone = (place for place in range(len(original)) if place not in partners)
    return partners | {place: labels[n] for place, n in zip(alone, left, strict=False)}


def _is_of_kind(value: JsonValue, kind: str) -> bool:
    if not isinstance(value, dict):
        return _kind(value) == kind
    return _kind(value) == kind or (kind in value and value.keys().isdisjoint(_NAMES_OF_KINDS))


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are equal as JSON. Python's 1, 1.0 and True are different
    values.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and (isinstance(one, str) or repr(one) == repr(other))


def _mark(value: JsonValue) -> int:
    """Return a number that is equal for equal values."""
    return crc32(_spelt(value).encode("utf-8", "surrogatepass"))


def _shape(value: JsonValue, values: JsonMap) -> JsonValue:
    """Return a value with "…" in place of its texts. A value that is in `values`, the decoded
    texts, is replaced as well.
    """
    if isinstance(value, dict | list) and any(_same(value, each) for each in values.values()):
        return "…"
    if isinstance(value, dict):
        return {key: _shape(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each, values) for each in value]
    return "…" if value and isinstance(value, str) else value


def _strings(value: JsonValue) -> Iterator[str]:
    """Yield the strings in a value, and the JSON text of each object and list in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        yield _spelt(value)
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _spelt(value: JsonValue) -> str:
    return "" if value is _NOTHING else json.dumps(value, sort_keys=True)
