"""Finds runs among model calls. A run is a series of calls that belong to one conversation.

The request of a call has all messages so far. The request of the run's next call begins with these
messages, followed by the model's answer.

Messages are compared without the details that a client may change when it sends a message back.
These details are thinking, attributes, call ids, tool names of results, the JSON spelling of
arguments, and whitespace around texts. System messages are ignored, too, so that a changed system
message does not split a run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonList, JsonValue
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
NEWEST = 20  # the most runs with an equal last message that are compared with a list


def digests_of(messages: Iterable[ChatMessage]) -> list[bytes]:
    """Return a digest for each message, except for system messages. Equal digests mean equal
    content.
    """
    return [digest_of(each) for each in messages if not isinstance(each, SystemMessage)]


def digest_of(message: ChatMessage) -> bytes:
    content = json.dumps(_comparable(message), sort_keys=True, default=repr)
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


def common_beginning(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many digests at the beginning of both lists are equal."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def new_places(
    known: Sequence[bytes], sent: Sequence[bytes], in_common: int = 2
) -> list[int] | None:
    """Return the indexes of the messages in `sent` that are new to a run of model calls. None if
    the call does not belong to the run.

    `sent` has the digests of the call's messages, and `known` has the digests of the messages in
    the run's last call. A call belongs to the run in three cases:

    - `sent` begins with all messages of `known`. The last message of `known`, an answer, may differ
      if at least two messages before it are equal and `sent` has more messages than `known`.
    - `known` begins with all messages of `sent`, such as when a request is repeated.
    - The conversation was compacted: `sent` has the last messages of `known` after a summary or a
      shortened beginning. New messages may follow them. At least `in_common` messages must be in
      both lists.
    """
    same = common_beginning(known, sent)
    if same == len(sent):
        return []
    if same == len(known) or (2 <= same == len(known) - 1 < len(sent) - 1):
        return [*range(same, len(sent))]
    end = _last_place(sent, known[-1], same)
    if end is None:
        return None
    common_end = common_beginning(known[same:][::-1], sent[same : end + 1][::-1])
    if same + common_end < in_common:
        return None
    return [*range(same, end + 1 - common_end), *range(end + 1, len(sent))]


def _last_place(digests: Sequence[bytes], digest: bytes, start: int) -> int | None:
    places = (n for n in range(len(digests) - 1, start - 1, -1) if digests[n] == digest)
    return next(places, None)


def goes_on_with(
    known: Iterable[tuple[Key, Sequence[bytes]]], sent: Sequence[bytes], in_common: int = 2
) -> tuple[Key, list[int]] | None:
    """Return the key of the run that a model call continues, and the indexes of the new messages in
    `sent`. None if the call continues no run.

    `sent` has the digests of the call's messages. `known` has, for each run, its key and the
    digests of its last call. If several runs fit, the run with the fewest new messages is returned.
    For `in_common`, see `new_places`.
    """
    found: tuple[Key, list[int]] | None = None
    for key, digests in known:
        places = new_places(digests, sent, in_common) if digests else None
        if places is not None and (found is None or len(places) < len(found[1])):
            found = key, places
    return found


class Runs:
    """The runs that were found so far. A run is a series of model calls of one conversation. Each
    run is stored as the digests of the messages in its last call.

    `find` compares a call with a run only if one of the run's last two messages is in the call (see
    `ends`). The constructor's argument `all_alike` is for the calls of one session: `find` then
    compares a call with the 20 newest runs.
    """

    def __init__(self, all_alike: bool = False) -> None:
        self._all_alike = all_alike
        self._lists: list[bytes] = []  # the joined digests of each run
        self._ending: defaultdict[bytes, list[int]] = defaultdict(list)

    def find(self, sent: Sequence[bytes]) -> tuple[int, list[int]] | None:
        """Return the number of the run that a model call continues, and the indexes of the new
        messages in `sent`. None if the call continues no run.

        `sent` has the digests of the call's messages. If several runs fit, the run with the fewest
        new messages is returned.
        """
        numbers = sorted(set(self._candidates(sent)))
        known = ((number, divided(self._lists[number])) for number in numbers)
        return goes_on_with(known, sent, 1 if self._all_alike else 2)

    def _candidates(self, sent: Sequence[bytes]) -> Iterable[int]:
        if self._all_alike:
            return range(max(0, len(self._lists) - NEWEST), len(self._lists))
        return (number for digest in sent for number in self._ending.get(digest, ())[-NEWEST:])

    def put(self, number: int | None, sent: Sequence[bytes]) -> int:
        """Store a model call as the last call of a run, and return the run's number. `sent` has the
        digests of the call's messages.

        If `number` is None, a new run begins.
        """
        if number is None:
            number = len(self._lists)
            self._lists.append(b"".join(sent))
        else:
            for each in ends(divided(self._lists[number])):
                self._ending[each].remove(number)
            self._lists[number] = b"".join(sent)
        for each in ends(sent):
            self._ending[each].append(number)
        return number


def ends(digests: Sequence[bytes]) -> set[bytes]:
    """Return the digests by which `Runs` finds a run: those of the last two messages in the run's
    last call. If the call has only one or two messages, only the digest of the last message is
    returned.

    `digests` has the digests of all messages in the call. The last digest alone is not enough,
    because a client may change the last message, an answer.
    """
    return {*digests[-2:]} if len(digests) > 2 else {*digests[-1:]}


def divided(joined: bytes) -> list[bytes]:
    return [joined[n : n + SIZE] for n in range(0, len(joined), SIZE)]


def _comparable(message: ChatMessage) -> JsonValue:
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


def _contents(contents: Sequence[Content | None]) -> JsonList:
    """Return contents in which texts in a row are joined, because some clients join them."""
    found: JsonList = []
    for each in contents:
        if not isinstance(each, TextContent):
            found.append([repr(each)])
        elif found and isinstance(found[-1], str):
            found[-1] = f"{found[-1]}\n{each.text.strip()}"
        else:
            found.append(each.text.strip())
    return found


def _call(call: ToolExecutionRequest) -> JsonList:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (RecursionError, ValueError):
        arguments = call.arguments
    return [call.name, arguments]
