"""What a process knows of the lists that it has read last, so that it reads only what is new.

A program sends its whole list with each call, and only the last messages are new. Turns are
compared as texts. A list is read from the newest answer on whose turns are all unknown; the
messages before it are those of the known list, which have been checked, counted and rendered.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from chatmemory.exceptions import ChatMemoryError
from chatmemory.formats import FORMATS
from chatmemory.ledger.validation import Storable, storable_messages
from chatmemory.messages.message import AiMessage, ChatMessage, ToolExecutionResultMessage
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI, OWN_FIELDS, RESPONSES, made_of
from inspector.rooms.calls.newest import Newest
from inspector.rooms.calls.patches import Patch, patch

spell = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Group:
    """An answer with the results after it, and how it is rendered: each item as a text, too."""

    messages: tuple[ChatMessage, ...]
    items: Sequence[Any]
    spelled: Sequence[str]
    beside: Mapping[str, Any]


@dataclass(frozen=True)
class KnownList:
    """The list of a call that was read before, so that an equal beginning is not read again.

    `raw` are its turns as JSON values, and `turns` as texts. `places` has the index of the turn of
    each of its `messages`. The first `storable` messages are known to be storable. `groups` has
    messages that were rendered together, by the `id()` of the first one.
    """

    format: str
    raw: Sequence[Any]
    turns: Sequence[str]
    messages: tuple[ChatMessage, ...]
    places: Sequence[int]
    storable: int = 0
    groups: Mapping[int, Group] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.format, *self.turns[:2])


_NEWEST: Newest[tuple[str, ...], KnownList] = Newest()


def read_list(request: Mapping[str, Any], format: str) -> KnownList | None:
    """Return the list of a request; None if it cannot be read, or has turns of another kind."""
    known = FORMATS[format]
    if not isinstance(request.get(OWN_FIELDS[format][0]), list):
        return None
    try:
        raw = known.find(dict(request))
        if raw is None or not all(isinstance(turn, dict) for turn in raw.turns):
            return None
        before = _NEWEST.get((format, *map(spell, raw.turns[:2])))
        turns = _spelled(raw.turns, before)
        start = _first_to_read(before, turns, raw.turns) if before else 0
        count = bisect_left(before.places, start) if before else 0
        messages = before.messages[:count] if before else ()
        read = known.parse(raw.turns[start:], messages)
    except (ChatMemoryError, RecursionError):
        return None
    if len(read.turns) != len(read.messages):
        return None
    places = [*(before.places[:count] if before else ()), *(start + n for n in read.turns)]
    return KnownList(
        format,
        raw.turns,
        turns,
        (*messages, *read.messages),
        places,
        min(before.storable, count) if before else 0,
        before.groups if before else {},
    )


def keep_list(known: KnownList, groups: Mapping[int, Group]) -> None:
    """Keep a list whose messages were stored, with its rendered groups."""
    kept = replace(known, storable=len(known.messages), groups=groups)
    _NEWEST.put(kept.key, kept, sum(map(len, kept.turns)))


def _spelled(turns: Sequence[Any], before: KnownList | None) -> list[str]:
    """Return turns as texts. Those that are the same objects as before have their text already."""
    known = before.raw if before else ()
    same = next(
        (n for n, (one, other) in enumerate(zip(known, turns, strict=False)) if one is not other),
        min(len(known), len(turns)),
    )
    return [*(before.turns[:same] if before else ()), *map(spell, turns[same:])]


def _first_to_read(before: KnownList, turns: Sequence[str], raw: Sequence[Any]) -> int:
    """Return the index of the first turn to read: an answer, before which all turns are known."""
    pairs = enumerate(zip(before.turns, turns, strict=False))
    same = next(
        (n for n, (one, other) in pairs if one != other), min(len(before.turns), len(turns))
    )
    starts = (n for n in range(min(same, len(raw) - 1), 0, -1) if _begins(before.format, raw, n))
    return next(starts, 0)


def _begins(format: str, turns: Sequence[Any], n: int) -> bool:
    """Return whether an answer of the model begins with a turn, whatever comes before it."""
    before, turn = turns[n - 1], turns[n]
    if format in (OPENAI, ANTHROPIC):
        is_answer = turn.get("role") == "assistant"
        return is_answer and before.get("role") in ("user", "tool")
    if format == RESPONSES:
        return _is_output(before) and not _is_output(turn) and not _has_open_calls(turns[:n])
    return False


def _is_output(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "function_call_output"


def _has_open_calls(items: Sequence[Any]) -> bool:
    calls = {str(each.get("call_id")) for each in items if not _is_output(each)}
    return not calls - {"None"} <= {str(each.get("call_id")) for each in items if _is_output(each)}


def storable_list(known: KnownList) -> Storable[ChatMessage]:
    """Return the messages of a list, if they can be stored. Only new messages are checked."""
    new = storable_messages(known.messages[known.storable :])
    return Storable([*known.messages[: known.storable], *new], new.characters)


# Rendering


def rendered_groups(
    messages: Sequence[ChatMessage], format: str, known: Mapping[int, Group]
) -> list[Group] | None:
    """Return messages rendered in groups, which together are what `made_of` returns; None if they
    must be rendered as a whole. Known groups are not rendered again.
    """
    ids = [
        call.id
        for each in messages
        if isinstance(each, AiMessage)
        for call in each.tool_execution_requests
        if call is not None
    ]
    if format not in (OPENAI, ANTHROPIC) or len({*ids}) != len(ids) or not all(ids):
        return None
    found: list[Group] = []
    for part in _parts(messages):
        if not part:
            continue
        group = known.get(id(part[0]))
        is_known = (
            group is not None
            and len(group.messages) == len(part)
            and all(one is other for one, other in zip(group.messages, part, strict=True))
        )
        if not is_known:
            if not _is_closed(part):
                return None
            group = _rendered(part, format)
        assert group is not None
        if found and group.beside:
            return None
        found.append(group)
    return found


def _parts(messages: Sequence[ChatMessage]) -> list[tuple[ChatMessage, ...]]:
    """Divide messages before each answer that follows another message."""
    starts = [
        n
        for n, each in enumerate(messages)
        if n and isinstance(each, AiMessage) and not isinstance(messages[n - 1], AiMessage)
    ]
    edges = [0, *starts, len(messages)]
    return [tuple(messages[one:other]) for one, other in pairwise(edges)]


def _is_closed(part: Sequence[ChatMessage]) -> bool:
    """Return whether all results in a part answer calls in it."""
    calls = {
        call.id
        for each in part
        if isinstance(each, AiMessage)
        for call in each.tool_execution_requests
        if call is not None
    }
    results = (each.id for each in part if isinstance(each, ToolExecutionResultMessage))
    return all(id in calls for id in results)


def _rendered(part: tuple[ChatMessage, ...], format: str) -> Group:
    name = OWN_FIELDS[format][0]
    made = made_of(part, format)
    beside = {other: each for other, each in made.items() if other != name}
    return Group(part, made[name], [*map(spell, made[name])], beside)


def difference_of_groups(
    groups: Sequence[Group], turns: Sequence[str], target: Mapping[str, Any], format: str
) -> Patch | None:
    """Return the patch in order from rendered groups to a request, whose turns are also given as
    texts; None if they are not rendered turn by turn.
    """
    name = OWN_FIELDS[format][0]
    items = [each for group in groups for each in group.items]
    spelled = [each for group in groups for each in group.spelled]
    sent = target[name]
    if len(items) != len(sent):
        return None
    changed: dict[str, Any] = {}
    if turns != spelled:
        pairs = zip(items, spelled, sent, turns, strict=True)
        changed[name] = {"l": [_item(n, *pair) for n, pair in enumerate(pairs)]}
    beside = groups[0].beside if groups else {}
    for other, value in target.items():
        if other in beside:
            found = patch(beside[other], value, in_order=True)
        else:
            found = None if other == name else {"v": value}
        if found:
            changed[other] = found
    return {"k": [*target], "c": changed}


def _item(n: int, item: Any, spelled: str, turn: Any, text: str) -> Any:
    """Return a turn in a patch: the place of its item, and what differs."""
    if spelled == text:
        return n
    found = patch(item, turn, in_order=True)
    if found is None:
        return n
    return {"v": turn} if "v" in found else [n, found]
