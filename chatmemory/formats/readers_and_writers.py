"""Base classes that read and write conversations, one message at a time, and record each loss.

`two_way` returns the format of a reader class and a writer class. `Calls` matches tool results with
tool calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import ClassVar

from chatmemory.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.formats.account import Account
from chatmemory.formats.difference import applied, difference, sources_of
from chatmemory.formats.format import (
    Format,
    Loss,
    RawTranscript,
    Rendering,
    Response,
    Transcript,
    unwrapped,
)
from chatmemory.formats.json_properties import arguments_text, name_of, object_in, unread
from chatmemory.formats.packed import Packed
from chatmemory.formats.times import known_times, said_at_of
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    with_attributes,
)


@dataclass(frozen=True)
class ReadMessage:
    """A message, and the JSON `values` from which it was read. Details of the values that have no
    field in a message are kept in its attributes.

    `joins` says whether this message and the previous message are written as one JSON value:

    - True: yes, because both were read from one value, such as two tool results.
    - False: no, because each was read from its own value.
    - None: the writer decides.

    `response` is the provider's data about an answer, such as token usage, or None. These data are
    kept in the message's attributes, but are not written.
    """

    message: ChatMessage
    values: Sequence[JsonValue]
    joins: bool | None = None
    response: JsonMap | None = None


class _Conversion:
    format: ClassVar[str] = ""  # also the name of the attribute that keeps its details

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.calls = Calls(taken)
        self.losses: list[Loss] = []
        self._place, self._turn = "", 0

    def at(self, index: int) -> None:
        self._place, self._turn = f"message {index + 1}", index

    def lose(self, what: str, path: str = "") -> None:
        """Record a loss in the current message, or at a path within it, such as
        `content[1].source`.
        """
        place = f"{self._place}, {path}" if path else self._place
        self.losses.append(Loss(place, what, self._turn if self._place else None))


class Reader(_Conversion, ABC):
    """Base class that reads the messages of one conversation from a list of JSON values. A subclass
    implements `read`, which reads one value. `turn` is the name of a value in errors, such as "a
    message".

    Details that have no field in a message are kept in its attributes, under the name of the
    format. They are stored as the difference between the original value and the value that `writer`
    writes (see `difference`). Without a `writer`, this base class keeps no details.
    """

    writer: ClassVar[type[Writer] | None] = None
    turn: ClassVar[str] = "a message"  # the name of a turn in errors

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[ReadMessage] | Packed[ReadMessage] = []

    def read_all(self, turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        """Return a transcript with the messages of all JSON values in the list `turns`. Raises
        UnreadableTranscript with the index of a value that cannot be read.

        `after` are the earlier messages of the conversation. Tool results in `turns` may answer
        tool calls in `after`.
        """
        after = tuple(after)
        account = Account.of(turns)
        self.messages = Packed() if account.is_packed else []
        self.calls = Calls(_ids_in(turns) | ids_of_calls(after))
        self.calls.continue_from(after)
        places: list[int] = []
        times: list[datetime | None] = []
        about: JsonMap | None = None  # data about an answer, kept by its first message
        for index, turn in account.each():
            self.at(index)
            before = len(self.messages), len(self.losses)
            whole = turn
            if isinstance(turn, Response):
                about, turn = turn.about, turn.turn
            try:
                if self.writer:
                    object_in(turn, f"{self.turn} must be a JSON object")
                for read in self.read(turn):
                    message = read if isinstance(read, ReadMessage) else ReadMessage(read, [turn])
                    self.add(replace(message, response=about) if about else message)
                    about = None
            except InvalidMessage as error:
                raise UnreadableTranscript(index, str(error)) from error
            new = len(self.messages) - len(places)
            places += [index] * new
            times += [said_at_of(whole)] * new if new else ()
            if (len(self.messages), len(self.losses)) != before:
                account.read(index)
        messages = self._messages(after)
        return Transcript(
            None,
            Packed(messages) if account.is_packed else tuple(messages),
            tuple(self.losses),
            turns=tuple(places),
            times=known_times(times),
        )

    @abstractmethod
    def read(self, turn: JsonValue) -> Iterable[ChatMessage | ReadMessage]:
        """Return the messages of one JSON value. Raises InvalidMessage if the value cannot
        be read.
        """

    def add(self, read: ReadMessage) -> None:
        self.messages.append(read)

    def _messages(self, after: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
        if self.writer is None:
            yield from (each.message for each in self.finished())
            return
        writer = self.writer(self.calls.taken)
        writer.calls.continue_from(after)
        yield from map(writer.with_difference, self.finished())

    def finished(self) -> Iterable[ReadMessage]:
        """Return all messages that were read. Called after the last JSON value, so that a subclass
        can still complete a message.
        """
        return self.messages

    def expect(self, value: JsonMap, *read: str) -> None:
        """Record a loss for each non-empty property of `value` whose name is not in `read`. `read`
        has the names of the properties that the reader uses.
        """
        self.losses += unread(self._place, value, read, self._turn)

    def system(self, text: str | None) -> Iterator[SystemMessage]:
        """Yield a system message. If the text is None or blank, record a loss instead, because
        LangChain4j refuses blank system messages.
        """
        if text is None or all(character <= " " for character in text):
            self.lose("a blank system message")
        else:
            yield SystemMessage(text)


class Writer(_Conversion, ABC):
    """Base class that writes the messages of one conversation as JSON values. A subclass has a
    method for each type of message (`system`, `user`, `answer` and `result`), or overrides `write`.

    - `within`: the name of the list of messages in the format, such as "messages". It is "" if the
      list has no name.
    - `beside`: the names of properties that are written outside the list, such as "system".
    - `cannot_say`: the names of message fields that the format lacks: any of "name", "thinking" and
      "is_error".
    - `last`: the message that was written last. None before the first message.
    """

    within: ClassVar[str] = ""
    beside: ClassVar[Collection[str]] = ()
    cannot_say: ClassVar[Collection[str]] = ()
    last: ChatMessage | None = None  # the message that was written last

    def write_each(self, messages: Iterable[ChatMessage]) -> Rendering:
        """Return the messages as a stream of JSON values.

        The losses of the stream include each custom message, and each attribute whose name differs
        from the name of the format.
        """
        beside: JsonDict = {}
        return Rendering(self._values(messages, beside), self.losses, self.within, beside)

    def _values(self, messages: Iterable[ChatMessage], beside: JsonDict) -> Iterator[JsonDict]:
        last: JsonDict | None = None  # the next message may join it
        for index, message in enumerate(messages):
            self.at(index)
            own = self._own(message)
            joins = own.get("joins")
            for value in self._values_of(message, own):
                if len(value) == 1 and not value.keys().isdisjoint(self.beside):
                    self.put_beside(beside, value)
                elif last and joins is not False and self.join(last, value, bool(joins)):
                    continue
                else:
                    if last is not None:
                        yield last
                    last = value
        if last is not None:
            yield last

    def _own(self, message: ChatMessage) -> JsonMap:
        """Return the attribute with the format's name. Other attributes are recorded as losses."""
        attributes = getattr(message, "attributes", {})
        if not isinstance(message, CustomMessage):
            for name in attributes:
                if name != self.format:
                    self.lose(f"attributes.{name}")
        return format_attribute(message, self.format)

    def _values_of(self, message: ChatMessage, own: JsonMap) -> JsonList:
        """Return the JSON values of a message, with the details that `own` has kept from the same
        format.
        """
        known = len(self.losses)
        written = self._written(message)
        if "differs" not in own:
            return written
        restored: JsonValue = None
        with suppress(ValueError):
            restored = applied(own["differs"], written, sources_of(message))
        if not isinstance(restored, list) or not all(map(self.is_value, restored)):
            self.lose(f"attributes.{self.format}")
            return written
        del self.losses[known:]  # the difference restores what this would lose
        return restored

    def _written(self, message: ChatMessage) -> list[JsonDict]:
        if isinstance(message, CustomMessage):
            self.lose(f"a whole {message.type} message")
            return []
        written = [*self.write(message)]
        self.last = message
        return written

    def with_difference(self, read: ReadMessage) -> ChatMessage:
        """Return the message of `read`. Its attribute with the name of the format keeps
        `read.joins`, `read.response`, and the details of `read.values` for which a message has no
        field.

        If there is nothing to keep, the message is returned unchanged.
        """
        message = read.message
        differs = difference(self._written(message), [*read.values], sources_of(message))
        attributes = getattr(message, "attributes", {})
        own = {**attributes.get(self.format, {})}
        own |= {} if read.joins is None else {"joins": read.joins}
        own |= {"differs": differs} if differs else {}
        own |= {"response": {**read.response}} if read.response else {}
        if not own:
            return message
        return with_attributes(message, {**attributes, self.format: own})

    def write(self, message: ChatMessage) -> Iterable[JsonDict]:
        """Return the JSON values of one message, made by the method for its type, such as `user`.
        Empty for a custom message.

        Details of the original JSON are not in these values. The caller adds them from the
        message's attributes (see `chatmemory.formats.difference`).
        """
        for field in self.cannot_say:
            if getattr(message, field, None):
                self.lose(_FIELDS[field])
        match message:
            case SystemMessage():
                return self.system(message)
            case UserMessage():
                self.calls.interrupted()
                return self.user(message)
            case AiMessage():
                return self.answer(message)
            case ToolExecutionResultMessage():
                return self.result(message)
        return ()

    def system(self, message: SystemMessage) -> Iterable[JsonDict]:
        raise NotImplementedError

    def user(self, message: UserMessage) -> Iterable[JsonDict]:
        raise NotImplementedError

    def answer(self, message: AiMessage) -> Iterable[JsonDict]:
        raise NotImplementedError

    def result(self, message: ToolExecutionResultMessage) -> Iterable[JsonDict]:
        raise NotImplementedError

    def is_value(self, value: JsonValue) -> bool:
        """Return whether a value can be passed to `join`. The value may come from a message's
        attributes, in which clients can send anything.
        """
        return isinstance(value, dict)

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        """Merge the JSON value `value` into `last`, the value before it, and return whether it was
        merged. The base class merges nothing, and returns False.

        `joins` is True if the message of `value` and the message before it were read from one JSON
        value.
        """
        return False

    def put_beside(self, beside: JsonDict, value: JsonDict) -> None:
        """Add a value such as `{"system": …}` to `beside`, the values outside the list of messages.
        It replaces a value of the same name.
        """
        beside.update(value)

    def calls_of(self, message: AiMessage) -> list[ToolExecutionRequest]:
        """Return the tool calls of a message, each with an id and a name. A missing id is replaced
        by a new id, and a missing name by "".

        The calls are open until later results answer them. An empty call (None) is left out, and
        recorded as a loss.
        """
        calls = [call for call in message.tool_execution_requests if call is not None]
        if len(calls) < len(message.tool_execution_requests):
            self.lose("an empty tool call")
        return [
            ToolExecutionRequest(
                self.calls.opened(call.id, call.name), call.name or "", call.arguments
            )
            for call in calls
        ]

    def answered(self, message: ToolExecutionResultMessage) -> tuple[str, dict[str, str]]:
        """Return the id of the tool call that a result answers, and a dict `{"name": …}` with the
        tool name of the result.

        The id is "" if the call is unknown. The dict is empty if the result has no name, or the
        same name as the call.
        """
        id, known = self.calls.answered(message.id)
        is_known = message.tool_name in (None, "", known)
        return id or "", {} if is_known else {"name": message.tool_name or ""}

    def lose_content(self, content: Content | None) -> None:
        self.lose("empty content" if content is None else f"{content.type.lower()} content")

    def lose_contents(self, contents: Sequence[Content | None]) -> None:
        """Record what is lost when contents are written as one text: all media, and the division
        into parts.
        """
        for content in contents:
            if not isinstance(content, TextContent):
                self.lose_content(content)
        if len(contents) > 1:
            self.lose("how the text is divided into parts")


_FIELDS = {
    "name": "the name of the user",
    "thinking": "thinking",
    "is_error": "that the result is an error",
}


def format_attribute(message: ChatMessage, format: str) -> JsonMap:
    """Return the details that a format has kept in a message's attributes; {} if there are none.

    The details may be malformed, because clients can send any attributes.
    """
    own = getattr(message, "attributes", {}).get(format)
    return own if isinstance(own, Mapping) else {}


def two_way(
    find: Callable[[JsonValue], RawTranscript | None],
    reader: type[Reader],
    writer: type[Writer],
    *,
    plain: Callable[[LibraryValue], JsonValue] | None = None,
    claims: Callable[[JsonValue], bool] | None = None,
) -> Format:
    """Return a format that is read by `reader` and written by `writer`. Its name is
    `writer.format`.

    The other arguments are the fields of `Format` with the same names.
    """
    reader.format, reader.writer = writer.format, writer

    def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        return reader().read_all(turns, after)

    def render(messages: Iterable[ChatMessage]) -> Rendering:
        return writer(ids_of_calls(messages)).write_each(messages)

    return Format(writer.format, find, parse, render, plain, claims)


def find_turns(
    value: JsonValue,
    are_turns: Callable[[JsonValue], bool],
    *,
    within: Collection[str] = ("messages",),
    names: Collection[str] = ("id",),
    beside: Collection[str] = (),
) -> RawTranscript | None:
    """Return the conversation in a JSON value: a list of messages, or an object with the list. None
    for any other value.

    - `are_turns`: returns whether a value is a list of messages.
    - `within`: the properties of an object that may have the list.
    - `names`: the properties of an object that may have the id of the conversation.
    - `beside`: the properties of an object that are added before the messages of the list, such as
      `{"system": …}`.

    Other properties of an object are losses.
    """
    if are_turns(value):
        return RawTranscript(None, value)
    if not isinstance(value, dict):
        return None
    for name in within:
        if are_turns(value.get(name)):
            first = [{each: value[each]} for each in beside if value.get(each)]
            losses = tuple(unread("conversation", value, (name, *names, *beside)))
            return RawTranscript(name_of(value, *names), [*first, *value[name]], losses)
    return None


def nothing_in(what: str, parts: str, types: Iterable[JsonValue]) -> InvalidMessage:
    """Return the error for a message that has no readable part.

        nothing_in("part of the request", "parts of kind ", ["retry"])
        -> "no part of the request can be read: parts of kind 'retry'"

    `types` are the types of the unreadable parts, and `parts` is the text before these types; it
    may be "".
    """
    names = ", ".join(dict.fromkeys(map(repr, types))) or "none"
    return InvalidMessage(f"no {what} can be read: {parts}{names}")


def answer_of(
    texts: Sequence[str],
    calls: Iterable[ToolExecutionRequest],
    thoughts: Iterable[str | None],
    attributes: JsonMap | None = None,
) -> AiMessage:
    """Return an AI message with these tool calls. The texts are joined by line breaks, and so are
    the thoughts.
    """
    text = "\n".join(texts) if texts else None
    return AiMessage(text, calls, "\n".join(filter(None, thoughts)) or None, attributes)


def stand_in(kind: str, name: str | None) -> TextContent:
    """Return a placeholder text for content that a message cannot express, such as "[file a.txt]"
    for a file stored at the provider. Without a `name`, the text is "[file]".

    When the message is written in the format from which it was read, the original content replaces
    the placeholder.
    """
    return TextContent(f"[{kind} {name}]" if name else f"[{kind}]")


def ids_of_calls(messages: Iterable[ChatMessage]) -> frozenset[str]:
    """Return the ids of all tool calls in the messages."""
    calls = (c for m in messages if isinstance(m, AiMessage) for c in m.tool_execution_requests)
    return frozenset(call.id for call in calls if call is not None and call.id)


def _ids_in(turns: Sequence[JsonValue]) -> frozenset[str]:
    """Return the ids in JSON values and their parts. Malformed values are ignored here."""
    ids: set[str] = set()
    for turn in turns:
        ids |= _ids_within(unwrapped(turn))
    return frozenset(ids)


def _ids_within(turn: JsonValue) -> set[str]:
    ids: set[str] = set()
    level = [turn]
    for _ in range(5):  # a turn, its list of parts, a part, a call in it, and what the call holds
        objects = [each for each in level if isinstance(each, dict)]
        found = (each.get(name) for each in objects for name in ("id", "call_id"))
        ids |= {id for id in found if isinstance(id, str)}
        lists = [each for each in level if isinstance(each, list)]
        level = [inner for each in (*lists, *(o.values() for o in objects)) for inner in each]
    return ids


class Calls:
    """The tool calls of a conversation so far, to which tool results are matched.

    A call is *open* until a result answers it, or until `interrupted` is called. A result with an
    id answers the call with this id. A result without an id answers the oldest open call with the
    same tool name, or else the oldest open call.

    A call without an id gets a new id, such as `call_1`. The new id is never one of the ids in
    `taken`, the argument of the constructor.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.taken = taken
        self._new_ids = (id for n in count(1) if (id := f"call_{n}") not in taken)
        self._names: dict[str, str | None] = {}
        self._waiting: dict[str, None] = {}

    def continue_from(self, messages: Iterable[ChatMessage]) -> None:
        """Add the calls of earlier messages. Calls without a result are open."""
        for message in messages:
            if isinstance(message, AiMessage):
                for call in message.tool_execution_requests:
                    if call is not None and call.id is not None:
                        self.opened(call.id, call.name)
            elif isinstance(message, ToolExecutionResultMessage):
                self.answered(message.id)

    def opened(self, id: str | None, name: str | None) -> str:
        """Add an open call and return its id. A call without an id gets the next free id of
        `call_1`, `call_2`…
        """
        id = id or next(self._new_ids)
        self._names[id] = name
        self._waiting[id] = None
        return id

    def request(
        self, id: str | None, name: str | None, arguments: JsonValue
    ) -> ToolExecutionRequest:
        """Return a new open tool call. Its arguments may be JSON values or text.

        Raises InvalidMessage if the arguments are nested too deeply, or have a number that is too
        long.
        """
        return ToolExecutionRequest(self.opened(id, name), name, arguments_text(arguments))

    def answered(self, id: str | None, name: str | None = None) -> tuple[str | None, str | None]:
        """Close the tool call that a tool result answers. Return the id of the call and the name of
        the tool.

        `id` and `name` are the values in the result. Without an `id`, the oldest open call of the
        tool `name` is closed, or else the oldest open call.

        - The returned id is None if the result has no id and no call is open.
        - The returned name is that of the result, or else that of the call, or None if both are
          unknown.
        """
        if not id:
            named = (each for each in self._waiting if name and self._names[each] == name)
            id = next(named, next(iter(self._waiting), None))
        if id is None:
            return None, name
        self._waiting.pop(id, None)
        return id, name or self._names.get(id)

    def is_open(self, id: str | None) -> bool:
        return id in self._waiting

    def interrupted(self) -> None:
        """Close all open calls. Call this for a user message, after which no result can answer an
        earlier call.
        """
        self._waiting.clear()
