"""Runs of a model: which of its calls belong to one conversation.

A call has the whole list that the model was given, and its answer. The next call of the run begins
with both. Messages are compared by what they say. What a client may spell otherwise when it sends a
message back is left out: thinking, attributes such as finish reasons, ids of calls, a name that is
null, empty or missing texts, and how arguments are written as JSON. System messages are left out,
so that another system message does not split a run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

Key = TypeVar("Key")

SIZE = 8  # bytes of a digest
NEWEST = 20  # runs with an equal message at their end that are compared with a list


def digests_of(messages: Iterable[ChatMessage]) -> list[bytes]:
    """Return a digest for each message that is not a system message. Two are equal if the messages
    say the same.
    """
    return [digest_of(each) for each in messages if not isinstance(each, SystemMessage)]


def digest_of(message: ChatMessage) -> bytes:
    said = json.dumps(_said(message), sort_keys=True, default=repr)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


def common_beginning(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many digests two lists have in common at their beginnings."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def new_places(
    known: Sequence[bytes], given: Sequence[bytes], in_common: int = 2
) -> list[int] | None:
    """Return the places in a call's list whose messages its run does not have yet; None if the call
    is not one of this run.

    The list goes on with the run if it begins with all messages of it, or if these begin with the
    list, which was sent again. It also does if a program compacted the run: the list then has the
    end of it behind a summary, or behind a beginning of which a part was left out, and some
    messages `in_common`. An answer that came back otherwise splits no run.
    """
    same = common_beginning(known, given)
    if same == len(given):
        return []
    if same == len(known) or (2 <= same == len(known) - 1 < len(given) - 1):
        return [*range(same, len(given))]
    end = _last_place(given, known[-1], same)
    if end is None:
        return None
    kept = common_beginning(known[same:][::-1], given[same : end + 1][::-1])
    if same + kept < in_common:
        return None
    return [*range(same, end + 1 - kept), *range(end + 1, len(given))]


def _last_place(digests: Sequence[bytes], wanted: bytes, start: int) -> int | None:
    places = (n for n in range(len(digests) - 1, start - 1, -1) if digests[n] == wanted)
    return next(places, None)


def goes_on_with(
    known: Iterable[tuple[Key, Sequence[bytes]]], given: Sequence[bytes], in_common: int = 2
) -> tuple[Key, list[int]] | None:
    """Return the key of the run that a call's list goes on with, and the places of the messages new
    to it; None if it is none of the `known` runs, which have the lists of their newest calls.

    Of several runs it is the one that has most of the list, then the first.
    """
    found: tuple[Key, list[int]] | None = None
    for key, digests in known:
        places = new_places(digests, given, in_common) if digests else None
        if places is not None and (found is None or len(places) < len(found[1])):
            found = key, places
    return found


class Runs:
    """The runs so far, each with the list of its last call.

    `all_alike` is for the calls of one session: any run of it may be the one that goes on. Else a
    run is looked for by the messages at its end, among the newest that end alike.
    """

    def __init__(self, all_alike: bool = False) -> None:
        self._all_alike = all_alike
        self._lists: list[bytes] = []  # the digests of each, joined
        self._ending: defaultdict[bytes, list[int]] = defaultdict(list)

    def find(self, given: Sequence[bytes]) -> tuple[int, list[int]] | None:
        """Return the number of the run that a call's list goes on with, and the places of the
        messages new to it. Of several runs the one that has most of the list, then the first.
        """
        numbers = sorted(set(self._candidates(given)))
        known = ((number, divided(self._lists[number])) for number in numbers)
        return goes_on_with(known, given, 1 if self._all_alike else 2)

    def _candidates(self, given: Sequence[bytes]) -> Iterable[int]:
        if self._all_alike:
            return range(max(0, len(self._lists) - NEWEST), len(self._lists))
        return (number for digest in given for number in self._ending.get(digest, ())[-NEWEST:])

    def put(self, number: int | None, given: Sequence[bytes]) -> int:
        """Keep the list of a run's newest call, of a new run if there is no number; return it."""
        if number is None:
            number = len(self._lists)
            self._lists.append(b"".join(given))
        else:
            for each in ends(divided(self._lists[number])):
                self._ending[each].remove(number)
            self._lists[number] = b"".join(given)
        for each in ends(given):
            self._ending[each].append(number)
        return number


def ends(digests: Sequence[bytes]) -> set[bytes]:
    """Return the digests by which a run is looked for: the last, and the one before for an answer
    that came back otherwise.
    """
    return {*digests[-2:]} if len(digests) > 2 else {*digests[-1:]}


def divided(joined: bytes) -> list[bytes]:
    return [joined[n : n + SIZE] for n in range(0, len(joined), SIZE)]


def _said(message: ChatMessage) -> Any:
    match message:
        case UserMessage():
            return ["user", message.name, _contents(message.contents)]
        case AiMessage():
            calls = [each for each in message.tool_execution_requests if each is not None]
            return ["ai", (message.text or "").strip(), [_call(each) for each in calls]]
        case ToolExecutionResultMessage():
            return ["tool", bool(message.is_error), _contents(message.contents)]
        case CustomMessage():
            return ["custom", dict(message.attributes)]
    return [message.type, repr(message)]


def _contents(contents: Sequence[Content | None]) -> list[Any]:
    """Return contents with texts in a row as one, as some clients send them."""
    found: list[Any] = []
    for each in contents:
        if not isinstance(each, TextContent):
            found.append([repr(each)])
        elif found and isinstance(found[-1], str):
            found[-1] = f"{found[-1]}\n{each.text.strip()}"
        else:
            found.append(each.text.strip())
    return found


def _call(call: ToolExecutionRequest) -> list[Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (RecursionError, ValueError):
        arguments = call.arguments
    return [call.name, arguments]
