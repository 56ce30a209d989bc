"""Caches the message lists of recent requests, so that only the new part of the next list must be
parsed.

A program sends the whole list with each call, and only the last messages are new. So most lists
begin like a cached list. The messages of this shared beginning come from the cache, already parsed,
checked, counted and rendered.

Two lists are compared by the JSON texts of their entries. In this module, `turns` are entries of a
list, not turns as in the glossary.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from chatmemory.exceptions import ChatMemoryError
from chatmemory.formats import FORMATS
from chatmemory.ledger.validation import Storable, storable_messages
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
)
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI, OWN_FIELDS, RESPONSES, made_of
from inspector.rooms.calls.newest import Newest, same_beginning
from inspector.rooms.calls.patches import Patch, patch
from inspector.rooms.calls.recording import content_digest

spell = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Rendered:
    """Messages rendered in a provider's format, in groups that can be reused. A new group begins at
    each assistant message that follows a message of another type.

    - `items` are the rendered entries of the list, and `spelled` their JSON texts.
    - `beside` has the rendered members outside the list, such as Anthropic's `system`.
    - `ends` has a pair for each group: the number of messages and the number of items from the
      beginning of the list to the end of the group.
    - `ids` are the IDs of all tool calls in the messages.
    """

    messages: Sequence[ChatMessage] = ()
    items: Sequence[JsonValue] = ()
    spelled: Sequence[str] = ()
    ends: Sequence[tuple[int, int]] = ()
    ids: frozenset[str | None] = frozenset()
    beside: JsonMap = field(default_factory=dict)

    def before(self, messages: Sequence[ChatMessage]) -> Rendered:
        """Return the first groups of this rendering that can be reused to render `messages`. The
        result is empty if no group can be reused.

        A group can be reused if this rendering and `messages` have identical messages up to and
        including the first message after the group.
        """
        same = same_beginning(self.messages, messages)
        number = bisect_left(self.ends, (same, 0))  # what follows a group decides its end
        if not number:
            return Rendered()
        count, items = self.ends[number - 1]
        return Rendered(
            self.messages[:count],
            self.items[:items],
            self.spelled[:items],
            self.ends[:number],
            self.ids.difference(_ids_of_calls(self.messages[count:])),
            self.beside,
        )


NOT_RENDERED = Rendered()


@dataclass(frozen=True)
class KnownList:
    """The parsed list of a request, in the form in which `keep_list` caches it.

    - `raw` are the entries of the list as JSON values, and `turns` the same entries as JSON texts.
      A system message outside the list, such as Anthropic's `system`, is the first entry.
    - `places` has for each of the `messages` the index of its entry.
    - `digests` has for each message a digest of its content; b"" for a system message.
    - `storable` is the number of messages at the beginning that were already checked for storage.
    - `rendered` is a rendering whose groups can be reused. `read_list` takes it from a cached list
      with a similar beginning. `keep_list` replaces it with the rendering of this list.
    """

    format: str
    raw: Sequence[JsonValue]
    turns: Sequence[str]
    messages: tuple[ChatMessage, ...]
    places: Sequence[int]
    digests: Sequence[bytes]
    storable: int = 0
    rendered: Rendered = NOT_RENDERED

    @property
    def key(self) -> tuple[str, ...]:
        return (self.format, *self.turns[:2])


_NEWEST: Newest[tuple[str, ...], KnownList] = Newest()


def read_list(request: JsonMap, format: str) -> KnownList | None:
    """Parse the list of a request, or return None if the list cannot be parsed.

    If the list begins like a cached list, the messages of this beginning come from the cache.
    """
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
    new = [
        b"" if isinstance(each, SystemMessage) else content_digest(each) for each in read.messages
    ]
    return KnownList(
        format,
        raw.turns,
        turns,
        (*messages, *read.messages),
        places,
        [*(before.digests[:count] if before else ()), *new],
        min(before.storable, count) if before else 0,
        before.rendered if before else NOT_RENDERED,
    )


def keep_list(known: KnownList, rendered: Rendered) -> None:
    """Cache a list whose messages were just stored, together with `rendered`: these messages in the
    provider's format.
    """
    messages = _as_stored(known.messages, rendered.messages)
    kept = replace(known, messages=messages, storable=len(messages), rendered=rendered)
    _NEWEST.put(kept.key, kept, sum(map(len, kept.turns)))


def _as_stored(
    read: tuple[ChatMessage, ...], stored: Sequence[ChatMessage]
) -> tuple[ChatMessage, ...]:
    """Return the messages of a list, with each message replaced by the stored message at the same
    index, if both have the same content.
    """
    if len(read) != len(stored):
        return read
    same = same_beginning(read, stored)
    pairs = zip(read[same:], stored[same:], strict=True)
    found = (other if content_digest(one) == content_digest(other) else one for one, other in pairs)
    return (*read[:same], *found)


def _spelled(turns: Sequence[JsonValue], before: KnownList | None) -> list[str]:
    """Return entries as JSON texts. The texts of entries that `before` begins with are taken from
    there.
    """
    same = same_beginning(before.raw, turns) if before else 0
    return [*(before.turns[:same] if before else ()), *map(spell, turns[same:])]


def _first_to_read(before: KnownList, turns: Sequence[str], raw: Sequence[JsonValue]) -> int:
    """Return the index of the first entry to parse. It begins an answer of the model, and all
    entries before it are known. 0 if there is none.
    """
    pairs = enumerate(zip(before.turns, turns, strict=False))
    same = next(
        (n for n, (one, other) in pairs if one != other), min(len(before.turns), len(turns))
    )
    starts = (n for n in range(min(same, len(raw) - 1), 0, -1) if _begins(before.format, raw, n))
    return next(starts, 0)


def _begins(format: str, turns: Sequence[JsonValue], n: int) -> bool:
    """Return whether an answer of the model begins at entry `n`, so that parsing can start
    there.
    """
    before, turn = turns[n - 1], turns[n]
    if format in (OPENAI, ANTHROPIC):
        is_answer = turn.get("role") == "assistant"
        return is_answer and before.get("role") in ("user", "tool")
    if format == RESPONSES:
        return _is_output(before) and not _is_output(turn) and not _has_open_calls(turns[:n])
    return False


def _is_output(item: JsonMap) -> bool:
    return item.get("type") == "function_call_output"


def _has_open_calls(items: Sequence[JsonValue]) -> bool:
    calls = {str(each.get("call_id")) for each in items if not _is_output(each)}
    return not calls - {"None"} <= {str(each.get("call_id")) for each in items if _is_output(each)}


def storable_list(known: KnownList) -> Storable[ChatMessage]:
    """Return the messages of a list in the form in which they are stored. Raises the exceptions of
    `storable_messages` for messages that cannot be stored.

    Messages that were checked in an earlier list are not checked again.
    """
    new = storable_messages(known.messages[known.storable :])
    return Storable([*known.messages[: known.storable], *new], new.characters)


# Rendering


def rendered_after(
    known: Rendered, messages: Sequence[ChatMessage], format: str
) -> Rendered | None:
    """Render messages in groups, and reuse groups of the earlier rendering `known`. The entries are
    equal to those that `made_of` would return.

    None if the messages can only be rendered as a whole. Examples are messages in Gemini's format,
    and tool calls with equal IDs.
    """
    if format not in (OPENAI, ANTHROPIC):
        return None
    found = known.before(messages)
    rest = messages[len(found.messages) :]
    new_ids = _ids_of_calls(rest)
    ids = found.ids.union(new_ids)
    if not all(new_ids) or len(ids) != len(found.ids) + len(new_ids):
        return None
    items, spelled, ends = [*found.items], [*found.spelled], [*found.ends]
    beside, count = found.beside, len(found.messages)
    for part in filter(None, _parts(rest)):
        if not _is_closed(part):
            return None
        made = made_of(part, format)
        new = made.pop(OWN_FIELDS[format][0])
        if made and ends:
            return None
        beside = beside if ends else made
        items += new
        spelled += map(spell, new)
        count += len(part)
        ends.append((count, len(items)))
    return Rendered(messages, items, spelled, ends, ids, beside)


def _ids_of_calls(messages: Iterable[ChatMessage]) -> list[str | None]:
    """Return the ids of all tool calls."""
    return [
        call.id
        for each in messages
        if isinstance(each, AiMessage)
        for call in each.tool_execution_requests
        if call is not None
    ]


def _parts(messages: Sequence[ChatMessage]) -> list[tuple[ChatMessage, ...]]:
    """Divide messages into groups. A group begins with the first answer after other messages."""
    starts = [
        n
        for n, each in enumerate(messages)
        if n and isinstance(each, AiMessage) and not isinstance(messages[n - 1], AiMessage)
    ]
    edges = [0, *starts, len(messages)]
    return [tuple(messages[one:other]) for one, other in pairwise(edges)]


def _is_closed(part: Sequence[ChatMessage]) -> bool:
    """Return whether all tool results in a group answer tool calls in the same group."""
    calls = {*_ids_of_calls(part)}
    results = (each.id for each in part if isinstance(each, ToolExecutionResultMessage))
    return all(id in calls for id in results)


def difference_of_turns(
    rendered: Rendered, turns: Sequence[str], target: JsonMap, format: str
) -> Patch | None:
    """Return the patch (see `patches`) that turns rendered messages into the request `target`.
    `turns` are the entries of the request's list as JSON texts.

    Each entry is compared only with the rendered entry at the same index. None if the lists have
    different lengths: then the caller compares them in another way.
    """
    name = OWN_FIELDS[format][0]
    sent = target[name]
    if len(rendered.items) != len(sent):
        return None
    changed: JsonDict = {}
    if turns != rendered.spelled:
        pairs = zip(rendered.items, rendered.spelled, sent, turns, strict=True)
        changed[name] = {"l": [_item(n, *pair) for n, pair in enumerate(pairs)]}
    for other, value in target.items():
        if other in rendered.beside:
            found = patch(rendered.beside[other], value, in_order=True)
        else:
            found = None if other == name else {"v": value}
        if found:
            changed[other] = found
    return {"k": [*target], "c": changed}


def _item(n: int, item: JsonValue, spelled: str, turn: JsonValue, text: str) -> JsonValue:
    """Return the patch for entry `n` of a list: `n` if the entry is equal to its rendering, `n`
    with a patch, or a new value.
    """
    if spelled == text:
        return n
    found = patch(item, turn, in_order=True)
    if found is None:
        return n
    return {"v": turn} if "v" in found else [n, found]
