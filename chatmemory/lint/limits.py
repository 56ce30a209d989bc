"""Checks of a provider's JSON: the lengths and forms of fields (`Limit`), and the order of roles
(`Order`).

A path leads from a message to values in it:

- `tool_calls[].id`: the ids of all items of a list.
- `content[tool_use].id`: the ids of the items with this type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from chatmemory.lint.rules import Fault
from chatmemory.lint.turns import ProviderWindow, Turn
from chatmemory.messages.json_values import JsonMap, JsonValue
from chatmemory.messages.message import AiMessage, MessageType
from chatmemory.messages.texts import named, one_line
from chatmemory.patterns import declared_pattern

_PART = declared_pattern(r"(\w+)(?:\[(\w*)\])?")
_INDEX = declared_pattern(r"\[(\d+)\]")
_SHOWN = 40  # characters of a value that are shown


class JsonField(NamedTuple):
    """A value in the JSON of a message, with its path such as `tool_calls[0].id`."""

    value: JsonValue
    path: str

    @property
    def n(self) -> int:
        """The last list index in `path`: 3 for `content[3].text`. 0 if the path has no index."""
        return int(next(reversed(_INDEX.findall(self.path)), 0))


def _shape(pattern: str) -> re.Pattern[str]:
    return declared_pattern(pattern, family="the shape of a field")


@dataclass(frozen=True)
class Limit:
    """A limit for one field of a provider's JSON, such as the length of a tool call's id.

    - `path`: the path from a message to the field, such as `tool_calls[].id`.
    - `what`: the name of the field in sentences for people, such as "The participant name".
    - `pattern`: a regular expression that a text must match as a whole. `but` says what is wrong
      with a text that does not match.
    - `least`, `most`: the smallest and the largest length of the text or list. With `most` None,
      there is no largest length.
    - `is_needed`: whether a missing field is a fault.
    - `kind`: the limit applies only to messages whose JSON has this `type`; "" for any.
    - `roles`: the limit applies only to messages with one of these roles; () for all.
    - `without`: the name of a field of the message. The limit does not apply to messages in which
      this field has a value.
    """

    path: str
    what: str
    pattern: str = ""
    but: str = ""
    least: int = 0
    most: int | None = None
    kind: str = ""
    roles: Sequence[str] = ()
    without: str = ""
    is_needed: bool = False

    def problem(self, value: JsonValue) -> str:
        """Return what is wrong with a value, in words; "" if nothing is."""
        if value is None:
            return "is missing" if self.is_needed else ""
        if not isinstance(value, str | list):
            return ""
        if len(value) < self.least:
            return "is empty"
        if self.most is not None and len(value) > self.most:
            return f"has {len(value):,} characters, but at most {self.most:,} are allowed"
        if self.pattern and isinstance(value, str) and not _shape(self.pattern).fullmatch(value):
            return f"{self.but}: {_shown(value)}"
        return ""

    @cached_property
    def parts(self) -> list[tuple[str, str | None]]:
        """The names on the path. A name that leads to a list comes with the `type` of the list
        items to look at ("" for all items). Any other name comes with None.

            "content[text].id" -> [("content", "text"), ("id", None)]
        """
        return [(each[1], each[2]) for each in _PART.finditer(self.path)]

    def places(self, value: JsonMap) -> Iterable[JsonField]:
        """Return the values of the field in the JSON of a message, with their paths. There are none
        if the limit does not apply to this JSON.
        """
        if self.kind and value.get("type") != self.kind:
            return ()
        if self.roles and value.get("role") not in self.roles:
            return ()
        if self.without and value.get(self.without):
            return ()
        return _walked(JsonField(value, ""), self.parts)


def limited(*limits: Limit) -> Callable[[ProviderWindow], Iterator[Fault]]:
    """Return a check that yields a fault for each message with a value outside these limits. A
    message gets at most one fault.
    """
    names = {limit.parts[0][0] for limit in limits}
    is_needed = any(limit.is_needed for limit in limits)

    def check(sent: ProviderWindow) -> Iterator[Fault]:
        for turn in sent.turns:
            values = [each for each in turn.values if is_needed or not names.isdisjoint(each)]
            if values and (fault := next(_beyond(turn, values, limits), None)):
                yield fault

    return check


def _beyond(turn: Turn, values: Iterable[JsonMap], limits: Sequence[Limit]) -> Iterator[Fault]:
    for value in values:
        for limit in limits:
            for place in limit.places(value):
                if problem := limit.problem(place.value):
                    what = f"{limit.what} of {turn.name} {problem}."
                    yield Fault([turn], what, _error_values(place, limit))


def _error_values(place: JsonField, limit: Limit) -> dict[str, object]:
    value = place.value
    length = len(value) if isinstance(value, str | list) else 0
    shown = _shown(value) if isinstance(value, str) else ""
    values = {"path": place.path, "n": place.n, "length": length, "value": shown}
    return {**values, "most": limit.most, "pattern": limit.pattern}


def _shown(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _walked(place: JsonField, parts: Sequence[tuple[str, str | None]]) -> Iterator[JsonField]:
    if not parts:
        yield place
        return
    if not isinstance(place.value, Mapping):
        return
    (name, kind), *rest = parts
    path = f"{place.path}.{name}" if place.path else name
    value = place.value.get(name)
    if kind is None:
        if value is not None or not rest:
            yield from _walked(JsonField(value, path), rest)
        return
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping) and kind in ("", item.get("type")):
            yield from _walked(JsonField(item, f"{path}[{index}]"), rest)


# The order of roles


@dataclass(frozen=True)
class Order:
    """The order of roles that a provider requires in its list of messages.

    - `after`: for a role, the roles that may follow, separated by spaces. Any role may follow a
      role that is not a key here.
    - `last`: the roles that the last message may have, separated by spaces. Only the check
      `at_last` uses this field.
    - `results`: the role in which tool results are sent.

    A tool result may always follow another tool result.
    """

    after: Mapping[str, str]
    last: str = ""
    results: str = "tool"  # the role in which results are sent

    def role(self, turn: Turn) -> str:
        if turn.type is MessageType.TOOL_EXECUTION_RESULT:
            return self.results
        return _ROLES[turn.type]

    def faults(self, sent: ProviderWindow) -> Iterator[Fault]:
        """Yield a fault for each message in the provider's list whose role may not follow the role
        before it.
        """
        before: Turn | None = None
        for turn in sent.listed:
            if before is not None and not self._may_follow(before, turn):
                roles = {"role": self.role(turn), "before": self.role(before)}
                what = f"{_named(turn)} directly follows {_named(before, inside=True)}."
                yield Fault([turn, before], what, roles)
            before = turn

    def _may_follow(self, before: Turn, turn: Turn) -> bool:
        if before.type is turn.type is MessageType.TOOL_EXECUTION_RESULT:
            return True
        allowed = self.after.get(self.role(before))
        return allowed is None or self.role(turn) in allowed.split()

    def at_last(self, sent: ProviderWindow) -> Iterator[Fault]:
        """Yield a fault if the last message in the provider's list has a role that is not in
        `last`. There is no fault if this message has tool calls, or if the model continues it
        (`prefix`).

        The fault is pending: the window has it only until the next message comes.
        """
        last = sent.listed[-1] if sent.listed else None
        is_prefix = last is not None and any(value.get("prefix") is True for value in last.values)
        if last is None or last.calls or is_prefix:
            return
        if self.role(last) not in self.last.split():
            what = f"The last message is {_named(last, inside=True)}."
            yield Fault([last], what, {"role": self.role(last)}, is_pending=True)


_ROLES = {
    MessageType.SYSTEM: "system",
    MessageType.USER: "user",
    MessageType.AI: "assistant",
}
_NAMES = {
    MessageType.SYSTEM: "system message",
    MessageType.USER: "user message",
    MessageType.AI: "AI message",
    MessageType.TOOL_EXECUTION_RESULT: "tool result",
}


def _named(turn: Turn, inside: bool = False) -> str:
    is_call = isinstance(turn.message, AiMessage) and bool(turn.calls)
    name = "tool call" if is_call else _NAMES[turn.type]
    return f"{name if inside else name[0].upper() + name[1:]} {named(turn.number)}"
