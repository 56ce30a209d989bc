"""What formats share whose turns are lists of blocks, which may be of several messages.

- A turn of the user has results of tools and words: a message for each result, and one for words.
- A turn of the model can hold calls of tools that run at the provider, and their results: it is a
  message with calls, the results, and a message with the words after them.

All but the first message of a turn join it, so that writing makes one turn of them again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from chatmemory.core.contents import Content, DetailLevel, ImageContent, Media
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.conversion import Reader, Said, Writer, json_object, stand_in

Parts = Iterator[tuple[ChatMessage, list[Any]]]


class BlockReader(Reader):
    """Reads turns that have their blocks under the name `within_turn`."""

    within_turn: ClassVar[str]

    @abstractmethod
    def type_of(self, block: Any) -> str: ...

    @abstractmethod
    def is_result(self, block: Any) -> bool:
        """Whether a block is the result of a tool."""

    @abstractmethod
    def is_of_model(self, block: Any) -> bool:
        """Whether a block is one that a model is known to say."""

    @abstractmethod
    def result(self, block: Any) -> ToolExecutionResultMessage: ...

    @abstractmethod
    def contents(self, block: Any) -> list[Content]:
        """Return a block of the user; nothing for one that messages have no place for."""

    @abstractmethod
    def said_by_model(self, blocks: list[Any]) -> AiMessage: ...

    def joined(self, turn: dict[str, Any], parts: Parts) -> Iterator[Said]:
        """Yield the messages of a turn, each with its blocks. Other properties are the first's."""
        name, value = self.within_turn, turn
        for place, (message, blocks) in enumerate(parts):
            if isinstance(turn.get(name), list):
                value = {**turn, name: blocks}
            yield Said(message, [value], self.joins(message, place > 0))
            turn = {key: turn[key] for key in ("role", name) if key in turn}

    def joins(self, message: ChatMessage, joins: bool) -> bool | None:
        """Return what is to be known of a message; results in a row are joined anyway."""
        last = self.said[-1].message if self.said else None
        are_results = isinstance(last, ToolExecutionResultMessage) and type(last) is type(message)
        return None if joins == are_results else joins

    def user(self, blocks: list[Any]) -> Parts:
        part: list[Any] = []
        contents: list[Content] = []
        for block in blocks:
            if self.is_result(block):
                if contents:
                    yield self.words(contents), part
                    part, contents = [], []
                yield self.result(block), [*part, block]
                part = []
            else:
                part.append(block)
                contents += self.contents(block)
        if part and not contents and len(part) < len(blocks):
            contents = [stand_in(self.type_of(part[0]), None)]
        if contents:
            yield self.words(contents), part
        elif part or not blocks:
            raise self.nothing_in(part)

    def words(self, contents: list[Content]) -> UserMessage:
        self.calls.interrupted()
        return UserMessage(contents)

    def assistant(self, blocks: list[Any]) -> Parts:
        if blocks and not any(map(self.is_of_model, blocks)):
            raise self.nothing_in(blocks)
        part: list[Any] = []
        for block in blocks:
            if not self.is_result(block):
                part.append(block)
                continue
            if part:
                yield self.said_by_model(part), part
                part = []
            yield self.result(block), [block]
        if part or not blocks:
            yield self.said_by_model(part), part

    def nothing_in(self, blocks: Iterable[Any]) -> InvalidMessage:
        """Return the error of a turn that would be an empty message."""
        types = ", ".join(dict.fromkeys(repr(self.type_of(block)) for block in blocks))
        if not types:
            return InvalidMessage(f"{self.within_turn} is missing")
        return InvalidMessage(f"no part of its {self.within_turn} can be read: {types}")


class BlockWriter(Writer):
    """Writes such turns. Messages have under the format's name what kind their blocks were."""

    within_turn: ClassVar[str]

    @abstractmethod
    def is_result(self, block: Any) -> bool:
        """Whether a block is the result of a tool."""

    def turn(self, role: str, blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield a turn. Providers take no empty one."""
        if blocks:
            yield {"role": role, self.within_turn: blocks}
        else:
            self.lose("an empty message")

    def join(self, last: dict[str, Any], value: dict[str, Any], joins: bool) -> bool:
        """Join what was said in one turn, and results in a row, which must be in one turn."""
        name = self.within_turn
        blocks, more = last.get(name), value.get(name)
        if last.get("role") != value.get("role") or not (
            isinstance(blocks, list) and isinstance(more, list)
        ):
            return False
        are_results = bool(blocks and more) and all(map(self.is_result, (blocks[-1], more[-1])))
        if joins or are_results:
            last[name] = [*blocks, *more]
        return joins or are_results

    def kind_of_result(self, message: ToolExecutionResultMessage, default: str) -> str:
        kind = self._kept(message).get("type")
        return kind if isinstance(kind, str) else default

    def kind_of_call(self, message: AiMessage, id: str | None, default: str) -> str:
        types = self._kept(message).get("types")
        kind = types.get(id) if isinstance(types, Mapping) else None
        return kind if isinstance(kind, str) else default

    def arguments(self, call: ToolExecutionRequest) -> dict[str, Any]:
        """Return arguments as the object that they must be.

        Anthropic's documentation of fine-grained tool streaming names the property for others.
        """
        found = json_object(call.arguments or "{}")
        if found is not None:
            return found
        self.lose("that the arguments are no JSON object")
        return {"INVALID_JSON": call.arguments}

    def lose_of_media(self, content: Content, media: Media) -> None:
        """Record what is lost of an image or a file that is written."""
        if media.url and media.base64_data:
            self.lose("the url of content that is given inline too")
        if isinstance(content, ImageContent):
            if content.detail_level not in (DetailLevel.AUTO, DetailLevel.LOW):
                self.lose(f"the detail level {content.detail_level.value.lower()!r}")
            if content.image.revised_prompt:
                self.lose("the revised prompt of an image")

    def lose_content(self, content: Content | None) -> None:
        self.lose("empty content" if content is None else f"{content.type.lower()} content")

    def _kept(self, message: AiMessage | ToolExecutionResultMessage) -> Mapping[str, Any]:
        own = message.attributes.get(self.format)
        return own if isinstance(own, Mapping) else {}
