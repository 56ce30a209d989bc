"""The memory of an agent or a chat engine of LlamaIndex.

    memory = MessageWindowChatMemory("order-7741", max_messages=20, store=store)
    agent.run("Where is my parcel?", memory=LlamaIndexMemory(memory))

The model sees the window, and the store keeps the whole history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from chatmemory.formats import parse_objects, render_each
from chatmemory.integrations import tell
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages import message as ours
from chatmemory.messages.json_values import LibraryValue
from chatmemory.messages.quotes import HITS, TOOL
from chatmemory.tools import DESCRIPTION, answer

try:
    from llama_index.core.bridge.pydantic import ConfigDict, Field
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory.types import BaseMemory
    from llama_index.core.tools import BaseTool, FunctionTool
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "llama_index":
        raise
    raise ImportError(
        "LlamaIndexMemory needs LlamaIndex: pip install '.[llama-index]' in a checkout"
    ) from error

_FORMAT = "llama_index"


class LlamaIndexMemory(BaseMemory):
    """A memory of LlamaIndex that uses a memory of this library.

    - `get` returns the window. `get_all` returns the whole history, or the window if the store
      keeps no history.
    - `set` replaces the window, and `reset` empties it. The history keeps all messages.
    - Messages are returned as LlamaIndex gave them, with ids, thinking blocks and
      additional_kwargs.
    - With `search_history=True`, `tools` has the tool `search_history`, which searches the memory's
      history. Give the tool to the agent, as in `FunctionAgent(tools=memory.tools)`.

    If the memory refuses a message, such as a message that is too long, the run stops with the
    memory's exception.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: ChatMemory = Field(exclude=True)
    search_history: bool = False

    def __init__(self, memory: ChatMemory, *, search_history: bool = False) -> None:
        super().__init__(memory=memory, search_history=search_history)  # type: ignore[call-arg]  # mypy sees the parent's fields

    @property
    def tools(self) -> list[BaseTool]:
        """The tools for the agent. The list has the tool `search_history` if the field
        `search_history` is True, else it is empty.
        """
        return [_search_tool(self.memory)] if self.search_history else []

    @classmethod
    def class_name(cls) -> str:
        return "LlamaIndexMemory"

    @classmethod
    def from_defaults(cls, **kwargs: LibraryValue) -> Self:
        """Return a LlamaIndexMemory with these fields, such as `memory`."""
        return cls(**kwargs)

    def get(self, input: str | None = None, **kwargs: object) -> list[ChatMessage]:
        return _theirs(self.memory.messages())

    def get_all(self) -> list[ChatMessage]:
        return _theirs(self.memory.history())

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        if messages:
            tell(self.memory, self.memory.add_from(list(messages), _FORMAT))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        read = parse_objects(list(messages), _FORMAT)
        self.memory.set(map(ours.with_open_attributes, read.messages))
        tell(self.memory, read.losses)

    def reset(self) -> None:
        self.memory.clear()

    # The same for asyncio, in the thread that the store chooses

    async def aget(self, input: str | None = None, **kwargs: object) -> list[ChatMessage]:
        return await self.memory.in_thread(self.get)

    async def aget_all(self) -> list[ChatMessage]:
        return await self.memory.in_thread(self.get_all)

    async def aput(self, message: ChatMessage) -> None:
        await self.memory.in_thread(self.put, message)

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        await self.memory.in_thread(self.put_messages, messages)

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        await self.memory.in_thread(self.set, messages)

    async def areset(self) -> None:
        await self.memory.in_thread(self.reset)


def _search_tool(memory: ChatMemory) -> BaseTool:
    def search(query: str, limit: int = HITS) -> str:
        return answer(memory, query, limit)

    async def asearch(query: str, limit: int = HITS) -> str:
        return await memory.in_thread(answer, memory, query, limit)

    return FunctionTool.from_defaults(search, TOOL, DESCRIPTION, async_fn=asearch)


def _theirs(messages: Iterable[ours.ChatMessage]) -> list[ChatMessage]:
    values = render_each(messages, _FORMAT).values
    return [ChatMessage.model_validate(value) for value in values]
