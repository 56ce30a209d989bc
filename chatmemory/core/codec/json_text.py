"""JSON text, read with Jackson's rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.field_checks import DEPTH_MAX, DIGITS_MAX

ELEMENTS_FREE, ELEMENTS_MAX = 1_000, 500_000
SIZE_PER_ELEMENT = 8  # the shortest messages of OpenAI and LangChain4j have 9 to 10 characters
PROPERTIES_FREE = 100_000
SIZE_PER_PROPERTY = 13  # the shortest messages of LangChain4j have 4 in 54 characters
PROPERTIES_OF_ONE = 50_000

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


def decode_json(text: str) -> Any:
    """Return the first JSON value of a text and ignore what follows it, as Jackson does.

    Raises InvalidMessage.
    """
    if not isinstance(text, str):
        raise InvalidMessage("expected JSON text")
    text = text.lstrip(" \t\r\n")
    if not text:
        raise InvalidMessage("expected JSON, but the text is empty")
    try:
        return _DECODER.raw_decode(text)[0]
    except RecursionError as error:
        raise InvalidMessage("the JSON is nested too deeply") from error
    except ValueError as error:
        raise InvalidMessage(f"not valid JSON: {error}") from error


def load_json(text: str) -> Any:
    """Return the value of a text that holds one JSON value and nothing else.

    Raises InvalidMessage, also for values deeper than `DEPTH_MAX` levels. Any value returned here
    can be written, shown and read again, however much of Python's stack is in use then.
    Text such as `{},{},{}`, whose objects would take many times its memory, is not decoded.
    """
    check_density(text)
    try:
        value = _BOUNDED_DECODER.decode(text)
    except InvalidMessage:
        raise
    except RecursionError as error:
        raise InvalidMessage("the JSON is nested too deeply") from error
    except ValueError as error:
        raise InvalidMessage(f"not valid JSON: {error}") from error
    _check_depth(value)
    return value


def check_density(text: str) -> None:
    """Raises InvalidMessage if there are more lists, objects, commas and properties than messages
    need.
    """
    size = len(text)
    elements = min(ELEMENTS_FREE + size // SIZE_PER_ELEMENT, ELEMENTS_MAX)
    for signs, most, told in (
        ("{[,", elements, "lists, objects and commas"),
        (":", max(PROPERTIES_FREE, size // SIZE_PER_PROPERTY), "properties"),
    ):
        found = _count(signs, text)
        # Strings may hold any number of them.
        if found > most and found - _within_strings(signs, text) > most:
            raise InvalidMessage(
                f"the JSON has more than {most:,} {told} in {size:,} characters: send less at a "
                "time"
            )


def _within_strings(signs: str, text: str) -> int:
    return sum(_count(signs, text, *string.span()) for string in _STRING.finditer(text))


def _count(signs: str, text: str, start: int = 0, end: int | None = None) -> int:
    return sum(text.count(sign, start, end) for sign in signs)


def _check_depth(value: Any) -> None:
    """Go down level by level: a recursive check could exhaust the stack itself."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]
    raise InvalidMessage(f"the JSON is nested too deeply: at most {DEPTH_MAX} levels are read")


class JsonObject(dict[str, Any]):
    """A decoded JSON object that remembers which properties it had `twice`."""

    __slots__ = ("twice",)
    twice: tuple[str, ...]

    @property
    def type_twice(self) -> bool:
        return "type" in self.twice


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = JsonObject(pairs)
    found.twice = () if len(found) == len(pairs) else _twice(name for name, _ in pairs)
    return found


def _small_object(pairs: list[tuple[str, Any]]) -> JsonObject:
    """What decodes an object has all its properties as pairs already; the object takes as much."""
    if len(pairs) > PROPERTIES_OF_ONE:
        raise InvalidMessage(
            f"an object of the JSON has {len(pairs):,} properties: at most "
            f"{PROPERTIES_OF_ONE:,} are read"
        )
    return _object(pairs)


def _twice(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name, count in Counter(names).items() if count > 1)


def check_names(value: Any, besides: Collection[str]) -> None:
    """Raise InvalidMessage if an object has a property twice. What is in a list of its own, or in
    the properties `besides`, may.
    """
    waiting = [value] if isinstance(value, JsonObject) else []
    while waiting:
        given = waiting.pop()
        if given.twice:
            raise InvalidMessage(f"the JSON has the property {given.twice[0]!r} twice")
        inner = [each for name, each in given.items() if name not in besides]
        waiting += [each for each in inner if isinstance(each, JsonObject)]
        lists = [each for each in inner if isinstance(each, list)]
        waiting += [each for some in lists for each in some if isinstance(each, JsonObject)]


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > DIGITS_MAX:
        raise ValueError(f"a number has more than {DIGITS_MAX:,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


_decoder = partial(
    json.JSONDecoder,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_integer,
)
_DECODER = _decoder(object_pairs_hook=_object)
_BOUNDED_DECODER = _decoder(object_pairs_hook=_small_object)
