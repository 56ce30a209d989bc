"""The memory of an agent of LangChain 1.x, as a middleware.

    memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
    agent = create_agent(model, tools, middleware=[ChatMemoryMiddleware(memories.get)])

The model sees the window, and the store keeps the whole history. List this middleware first, so
that it sees messages before other middleware changes or removes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

from chatmemory.exceptions import InvalidValue, NotCompactable
from chatmemory.formats import parse_objects, render_each
from chatmemory.formats.langchain import as_dict
from chatmemory.integrations import tell
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.messages.quotes import HITS, TOOL
from chatmemory.tools import DESCRIPTION, answer
from chatmemory.windows.store import change_lock_of

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        ToolMessage,
        messages_from_dict,
    )
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.prebuilt import ToolRuntime
    from langgraph.runtime import Runtime
except ModuleNotFoundError as error:
    raise ImportError(
        "ChatMemoryMiddleware needs LangChain 1.x: pip install '.[langchain]' in a checkout"
    ) from error

_FORMAT = "langchain"

AgentType = Any  # of the state, context or answer of any agent


class ChatMemoryMiddleware(AgentMiddleware[AgentState[AgentType], AgentType, AgentType]):
    """Gives the model the window of a memory, and adds the messages of the agent and its user to
    the memory.

    - `memory` is a ChatMemory, or a callable that takes the id of a thread and returns its memory.
    - Each message of the agent's state is added once, in order. Input and tool results are added
      before the model is called, and answers after the call.
    - Messages are recognized by their ids, so a run can be resumed, repeated, or begin at an
      earlier checkpoint. Only messages after the last known message of the state are added.
    - A message that changes in the state later keeps its first text in the memory.
    - A summary of SummarizationMiddleware becomes a compaction: in the memory, it replaces the
      messages that the state no longer has. If the memory cannot be compacted, for example because
      the summary is too long, the model sees the summary before the window.
    - The system prompt is the agent's own, and not part of the memory.
    - With `search_history=True`, the model gets the tool `search_history`, which searches the
      thread's history.

    If the memory refuses a message, such as a message that is too long, the run stops with the
    memory's exception.
    """

    def __init__(
        self, memory: ChatMemory | Callable[[str], ChatMemory], *, search_history: bool = False
    ) -> None:
        super().__init__()
        self._memory = memory
        self.tools = [self._search_tool()] if search_history else []

    def _search_tool(self) -> BaseTool:
        def memory_of(runtime: ToolRuntime[AgentType, AgentType]) -> ChatMemory:
            return self._memory_for(runtime.config.get("configurable", {}).get("thread_id"))

        def search(
            query: str, limit: int = HITS, *, runtime: ToolRuntime[AgentType, AgentType]
        ) -> str:
            return answer(memory_of(runtime), query, limit)

        async def asearch(
            query: str, limit: int = HITS, *, runtime: ToolRuntime[AgentType, AgentType]
        ) -> str:
            memory = memory_of(runtime)
            return await memory.in_thread(answer, memory, query, limit)

        return StructuredTool.from_function(search, asearch, TOOL, DESCRIPTION)

    def wrap_model_call(
        self,
        request: ModelRequest[AgentType],
        handler: Callable[[ModelRequest[AgentType]], ModelResponse[AgentType]],
    ) -> ModelResponse[AgentType]:
        memory = self._memory_of(request.runtime)
        return handler(request.override(messages=self._visible(memory, request.messages)))

    def before_model(self, state: AgentState[AgentType], runtime: Runtime[AgentType]) -> None:
        if not _will_be_repaired(state["messages"]):
            self.after_model(state, runtime)

    def after_model(self, state: AgentState[AgentType], runtime: Runtime[AgentType]) -> None:
        self._keep(self._memory_of(runtime), state["messages"])

    after_agent = after_model  # to add the results of tools that end a run

    # The same for asyncio

    async def awrap_model_call(
        self,
        request: ModelRequest[AgentType],
        handler: Callable[[ModelRequest[AgentType]], Awaitable[ModelResponse[AgentType]]],
    ) -> ModelResponse[AgentType]:
        memory = self._memory_of(request.runtime)
        messages = await memory.in_thread(self._visible, memory, request.messages)
        return await handler(request.override(messages=messages))

    async def abefore_model(
        self, state: AgentState[AgentType], runtime: Runtime[AgentType]
    ) -> None:
        if not _will_be_repaired(state["messages"]):
            await self.aafter_model(state, runtime)

    async def aafter_model(self, state: AgentState[AgentType], runtime: Runtime[AgentType]) -> None:
        memory = self._memory_of(runtime)
        await memory.in_thread(self._keep, memory, state["messages"])

    aafter_agent = aafter_model

    def _memory_of(self, runtime: Runtime[AgentType]) -> ChatMemory:
        """Return the memory of the thread. Raises InvalidValue for a run without a thread id."""
        info = runtime.execution_info
        return self._memory_for(info.thread_id if info else None)

    def _memory_for(self, thread: str | None) -> ChatMemory:
        if isinstance(self._memory, ChatMemory):
            return self._memory
        if not thread:
            raise InvalidValue(
                "the run has no thread id, by which its memory is chosen: "
                'pass config={"configurable": {"thread_id": …}}, or give the middleware one memory'
            )
        return self._memory(thread)

    def _visible(self, memory: ChatMemory, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """Return the messages that the model sees instead of the agent's messages."""
        self._keep(memory, messages)
        window = cast("list[AnyMessage]", messages_from_dict(_dicts(memory.messages())))
        summary = [message for message in messages[:1] if _is_summary(message)]
        window_ids = {message.id for message in window}
        return [*(message for message in summary if message.id not in window_ids), *window]

    def _keep(self, memory: ChatMemory, messages: Sequence[AnyMessage]) -> None:
        """Add new messages to the memory. If the state begins with a summary, the summary first
        replaces the messages that it covers.
        """
        for message in messages:  # LangChain sets the id of a made-up result later
            message.id = message.id or str(uuid4())
        with change_lock_of(self, memory.id):
            window = memory.messages_with_interrupted()
            if messages and _is_summary(messages[0]):
                summary, *messages = messages
                if summary.id not in _ids(window):
                    _compact(memory, memory.messages(), summary, messages)
            known = _ids(window)
            if not known.issuperset(message.id for message in messages):
                known |= _ids(memory.history())
            places = [i for i, message in enumerate(messages) if message.id in known]
            if new := list(messages[places[-1] + 1 if places else 0 :]):
                tell(memory, memory.add_from(new, _FORMAT))


def _compact(
    memory: ChatMemory,
    window: Sequence[ChatMessage],
    summary: BaseMessage,
    kept: Sequence[BaseMessage],
) -> None:
    """Replace the messages before the first message of `kept` by a summary."""
    ids = {message.id for message in kept}
    places = range(len(window))
    end = next((i for i in places if _ids(window[i : i + 1]) & ids), len(window))
    (summary_message,) = parse_objects([summary], _FORMAT).messages
    own = getattr(summary_message, "attributes", {})
    with suppress(NotCompactable):
        memory.compact(text_of(summary_message), keep_last=len(window) - end, attributes=own)


def _will_be_repaired(messages: Sequence[BaseMessage]) -> bool:
    """Return whether LangChain is about to add results for tool calls that no tool could run."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    calls = (m.invalid_tool_calls for m in messages if isinstance(m, AIMessage))
    return any(call.get("id") not in answered for each in calls for call in each)


def _ids(messages: Iterable[ChatMessage]) -> set[str | None]:
    """Return the ids that messages had in LangChain."""
    return {value["data"].get("id") for value in _dicts(messages)}


def _dicts(messages: Iterable[ChatMessage]) -> list[JsonDict]:
    return [as_dict(value) for value in render_each(messages, _FORMAT).values]


def _is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"
