"""The messages of a conversation: LangChain4j's five kinds, as immutable values.

Names, validation and error texts follow LangChain4j (`dev.langchain4j.data.message`), so that a
message means the same in Java and in Python. Equality is by value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.contents import Content, TextContent, content_text
from chatmemory.messages.field_checks import (
    brief,
    check_iterable,
    check_json,
    check_kind,
    check_mapping,
    check_texts,
)
from chatmemory.messages.json_values import JsonDict, JsonMap


class MessageType(StrEnum):
    SYSTEM = "SYSTEM"
    USER = "USER"
    AI = "AI"
    TOOL_EXECUTION_RESULT = "TOOL_EXECUTION_RESULT"
    CUSTOM = "CUSTOM"


_Item = TypeVar("_Item")

# The types by name. A look-up is faster than MessageType(name), which matters in long lists.
TYPES = {type.value: type for type in MessageType}


@dataclass(frozen=True)
class ChatMessage:
    """Base class of the five kinds of messages; `type` is the kind's name in JSON and in the
    database.
    """

    type: ClassVar[MessageType]

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, for a copy or a pickle. Remembered values, such as token counts, are
        left out.
        """
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    @property
    def has_tool_execution_requests(self) -> bool:
        return False


@dataclass(frozen=True)
class SystemMessage(ChatMessage):
    """A system message. Its attributes are not part of its JSON, and do not count when messages are
    compared, because LangChain4j's system messages have none.
    """

    type: ClassVar[MessageType] = MessageType.SYSTEM
    text: str
    attributes: JsonMap = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_texts(text=self.text)
        _set(self, attributes=_attributes(self.attributes))
        if self.text is None or all(character <= " " for character in self.text):
            raise InvalidMessage("text cannot be null or blank")


@dataclass(frozen=True, init=False)
class UserMessage(ChatMessage):
    """A message of the user. The constructor takes a text, or a list of contents.

    A content may be None, which is null in LangChain4j's JSON.
    """

    type: ClassVar[MessageType] = MessageType.USER
    contents: tuple[Content | None, ...]
    name: str | None = None
    attributes: JsonMap = field(default_factory=dict, hash=False)

    def __init__(
        self,
        contents: str | Iterable[Content | None],
        name: str | None = None,
        attributes: JsonMap | None = None,
    ) -> None:
        check_texts(name=name)
        contents = _contents(contents, "contents cannot be null or empty")
        _set(self, contents=contents, name=name, attributes=_attributes(attributes))

    def single_text(self) -> str:
        """Return the text of a message whose only content is a text. Raises InvalidMessage for any
        other message.
        """
        match self.contents:
            case (TextContent(text=text),):
                return text
        raise InvalidMessage(
            "single_text() needs a message whose only content is one text, but got: "
            f"{list(self.contents)}; text_of(message) joins several texts"
        )

    @property
    def text(self) -> str:
        """The text of a message whose only content is a text. Raises InvalidMessage for any other
        message.
        """
        return self.single_text()


@dataclass(frozen=True, slots=True)
class ToolExecutionRequest:
    """A tool call of the model. `arguments` is the JSON text exactly as the model wrote it."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.arguments, Mapping):
            raise InvalidMessage(
                "arguments must be JSON text: ToolExecutionRequest.of(name, {…}) writes it"
            )
        check_texts(id=self.id, name=self.name, arguments=self.arguments)

    @classmethod
    def of(cls, name: str, arguments: JsonMap, id: str | None = None) -> ToolExecutionRequest:
        """Return a tool call whose `arguments` are written as JSON text. Raises InvalidMessage if
        JSON cannot express them.
        """
        if isinstance(arguments, str):
            raise InvalidMessage(
                "arguments must be a dictionary: ToolExecutionRequest(id, name, arguments) takes "
                "JSON text"
            )
        check_mapping(arguments=arguments)
        return cls(id, name, _plain_json(_attributes(arguments)))


@dataclass(frozen=True, init=False)
class AiMessage(ChatMessage):
    type: ClassVar[MessageType] = MessageType.AI
    text: str | None = None
    tool_execution_requests: tuple[ToolExecutionRequest | None, ...] = ()
    thinking: str | None = None
    attributes: JsonMap = field(default_factory=dict, hash=False)

    def __init__(
        self,
        text: str | None = None,
        tool_execution_requests: Iterable[ToolExecutionRequest | None] | None = None,
        thinking: str | None = None,
        attributes: JsonMap | None = None,
    ) -> None:
        check_texts(text=text, thinking=thinking)
        check_iterable(tool_execution_requests=tool_execution_requests)
        requests = tuple(tool_execution_requests or ())
        for request in requests:
            check_kind(tool_execution_requests=(request, ToolExecutionRequest))
        _set(self, text=text, tool_execution_requests=requests, thinking=thinking)
        _set(self, attributes=_attributes(attributes))

    @property
    def has_tool_execution_requests(self) -> bool:
        return bool(self.tool_execution_requests)


@dataclass(frozen=True, init=False)
class ToolExecutionResultMessage(ChatMessage):
    """A tool result. The constructor takes a text, or a list of contents. `id` is the id of the
    tool call that the result answers.
    """

    type: ClassVar[MessageType] = MessageType.TOOL_EXECUTION_RESULT
    id: str | None
    tool_name: str | None
    contents: tuple[Content | None, ...]
    is_error: bool | None = None
    attributes: JsonMap = field(default_factory=dict, hash=False)

    def __init__(
        self,
        id: str | None,
        tool_name: str | None,
        contents: str | Iterable[Content | None],
        is_error: bool | None = None,
        attributes: JsonMap | None = None,
    ) -> None:
        check_texts(id=id, tool_name=tool_name)
        check_kind(is_error=(is_error, bool))
        _set(self, id=id, tool_name=tool_name, is_error=is_error)
        _set(self, contents=_contents(contents, "Either text or contents must be provided"))
        _set(self, attributes=_attributes(attributes))


@dataclass(frozen=True)
class CustomMessage(ChatMessage):
    """A message of a kind that only certain providers know. A window treats it like any other
    message.
    """

    type: ClassVar[MessageType] = MessageType.CUSTOM
    attributes: JsonMap = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _set(self, attributes=_attributes(self.attributes))


def with_attributes(message: ChatMessage, attributes: JsonMap) -> ChatMessage:
    """Return a copy of a message with these attributes. Raises InvalidMessage if JSON cannot
    express them.
    """
    changed = object.__new__(type(message))
    _set(changed, **vars(message) | {"attributes": _attributes(attributes)})
    return changed


class OpenAttributes(JsonDict):
    """An empty dictionary that marks the attributes of a message as unknown. For example, system
    messages read from LangChain4j's JSON have unknown attributes, because this JSON omits them.

    When a client's list of messages is compared with stored messages, unknown attributes match any
    attributes. For `==`, this is an ordinary empty dictionary.
    """


def with_open_attributes(message: ChatMessage) -> ChatMessage:
    """Return a copy of a message whose attributes are marked as unknown (`OpenAttributes`).

    If the message has attributes, or is a custom message, it is returned unchanged.
    """
    if isinstance(message, CustomMessage) or getattr(message, "attributes", None):
        return message
    return with_attributes(message, OpenAttributes())


def has_open_attributes(message: ChatMessage) -> bool:
    """Return whether the attributes of a message are unknown (see `OpenAttributes`)."""
    return isinstance(getattr(message, "attributes", None), OpenAttributes)


def _set(message: ChatMessage, **values: object) -> None:
    """Set fields of a frozen message during its construction."""
    for name, value in values.items():
        object.__setattr__(message, name, value)


def _contents(
    value: str | Iterable[Content | None] | None, if_missing: str
) -> tuple[Content | None, ...]:
    if value is None:
        raise InvalidMessage("text cannot be null")
    if isinstance(value, str):
        return (TextContent(value),)
    check_iterable(contents=value)
    contents = tuple(value)
    if not contents:
        raise InvalidMessage(if_missing)
    for content in contents:
        check_kind(contents=(content, Content))
    return contents


def _attributes(mapping: JsonMap | None) -> JsonDict:
    if mapping is None:
        return {}
    if isinstance(mapping, OpenAttributes):
        return mapping
    check_mapping(attributes=mapping)
    attributes = dict(mapping)
    if attributes:
        check_json(attributes)
    return attributes


def _plain_json(attributes: JsonMap, **style: Any) -> str:  # style: options of json.dumps
    """Return attributes or arguments as JSON in Python's notation, with unescaped characters."""
    return json.dumps(attributes, ensure_ascii=False, default=dict, **style)


# Checks of values from callers


def chat_message(value: object) -> ChatMessage:
    """Return `value` if it is a message. Raises InvalidMessage for any other value."""
    if isinstance(value, ChatMessage):
        return value
    if isinstance(value, list | tuple):
        raise InvalidMessage("expected a chat message, not a list: pass its messages one by one")
    hint = ""
    if isinstance(value, Mapping) and "role" in value:
        hint = ": parse_messages([…], 'openai_chat') of chatmemory.formats reads it"
    raise InvalidMessage(
        f"expected a chat message such as UserMessage('Hello'), not {brief(value)}{hint}"
    )


def message_list(values: Iterable[_Item]) -> Iterable[_Item]:
    """Return `values` unchanged if it is a list or another iterable. The items are not checked.

    Raises InvalidMessage for a text, a mapping, a single message, and for a value that is not
    iterable.
    """
    if isinstance(values, list):  # checking for a Mapping takes longer
        return values
    if isinstance(values, ChatMessage | str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidMessage(f"expected a list of chat messages, not {brief(values)}")
    return values


def chat_messages(values: Iterable[object]) -> list[ChatMessage]:
    """Return the messages of an iterable as a list. Raises InvalidMessage if an item is not a
    message.
    """
    return [chat_message(each) for each in message_list(values)]


# The text of a message


def text_of(message: ChatMessage) -> str:
    """Return the text of a message for search and display.

    - Tool calls follow the text, as `name(arguments)`.
    - Images and other media become a mark, such as `[image https://…]`.
    - A custom message becomes its attributes as JSON.

    The database stores this text beside the message, and `verify_memories` checks that it fits the
    message.
    """
    match message:
        case SystemMessage():
            return message.text
        case UserMessage() | ToolExecutionResultMessage():
            return "\n".join(content_text(content) for content in message.contents)
        case AiMessage():
            calls = [
                f"{request.name or ''}({request.arguments or ''})"
                for request in message.tool_execution_requests
                if request is not None
            ]
            return "\n".join([message.text or "", *calls] if message.text else calls)
        case CustomMessage():
            return _plain_json(message.attributes, separators=(",", ":"))
    return ""
