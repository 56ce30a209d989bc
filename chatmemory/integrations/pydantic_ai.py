"""The memory of an agent of Pydantic AI 2.x, as a capability.

    memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
    agent = Agent(model, capabilities=[ChatMemoryCapability(memories.get)])
    agent.run_sync("Where is my parcel?", conversation_id="order-7741")

The model sees the window, and the store keeps the whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatmemory.exceptions import InvalidValue
from chatmemory.integrations import tell
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.json_values import JsonDict, LibraryValue
from chatmemory.messages.quotes import HITS, TOOL
from chatmemory.tools import DESCRIPTION, answer
from chatmemory.windows.store import change_lock_of

try:
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler, WrapToolExecuteHandler
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        SystemPromptPart,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import DeferredToolRequests, RunContext, Tool, ToolDefinition
    from pydantic_ai.toolsets import FunctionToolset
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pydantic_ai":
        raise
    raise ImportError(
        "ChatMemoryCapability needs Pydantic AI 2.x: pip install '.[pydantic-ai]' in a checkout"
    ) from error

_FORMAT = "pydantic_ai"
_NO_CONVERSATION = ""
# What `run` answers to the calls of a run that has its result. `run_stream` adds no such answers;
# the same ones are kept, as a provider's prompt cache ends at the first character that differs.
_IS_RESULT = "Final result processed."
_NOT_USED = "Output tool not used - a final result was already processed."
_NOT_EXECUTED = "Tool not executed - a final result was already processed."

AgentType = Any  # of the dependencies or output of any agent


@dataclass
class ChatMemoryCapability(AbstractCapability[AgentType]):
    """Gives the model the window of a memory, and adds the messages of the agent and its user to
    the memory.

    - `memory` is a ChatMemory, or a callable that takes the id of a conversation and returns its
      memory. With a callable, each run needs a `conversation_id`, or a `message_history` with a
      conversation id. With Pydantic AI 2.68 and newer, a run without a conversation id raises
      InvalidValue.
    - The messages of a run are added once: input and tool results before the model is called, the
      rest when the run ends, fails or is cancelled. Usage, signatures and ids of the provider are
      stored, and sent back to the provider.
    - A tool result is added even if the messages of the run lack it, as with `run_stream`.
    - When a run has its final result, each tool call without a result gets a result that closes it.
      Before that, calls stay open, such as calls that wait for approval or for a result from
      outside the run.
    - The history of a conversation comes from its memory. A run's `message_history` is neither
      added nor shown to the model. It is used to resume a run that waited for approval.
    - System prompts and instructions are the agent's own, and not part of the memory.
    - With `search_history=True`, the model gets the tool `search_history`, which searches the
      conversation's history.

    If the memory refuses a message, such as a message that is too long, the run stops with the
    memory's exception.
    """

    memory: ChatMemory | Callable[[str], ChatMemory]
    search_history: bool = False
    _run_messages: Sequence[ModelMessage] = field(default=(), init=False, repr=False)
    _stored: dict[int, ModelMessage] = field(default_factory=dict, init=False, repr=False)
    _returned: dict[str, list[ModelRequestPart]] = field(
        default_factory=dict, init=False, repr=False
    )
    _output_tools: set[str] = field(default_factory=set, init=False, repr=False)

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """Return "" as the conversation id of a run without a conversation id, so that `for_run`
        can refuse the run.

        Return None if the capability has one memory for all runs. Pydantic AI then generates an id.
        """
        return None if isinstance(self.memory, ChatMemory) else _NO_CONVERSATION

    def get_toolset(self) -> FunctionToolset[AgentType] | None:
        """Return a toolset with the tool `search_history`. None if the field `search_history` is
        False.
        """
        if not self.search_history:
            return None

        async def search(ctx: RunContext[AgentType], query: str, limit: int = HITS) -> str:
            own = self.memory
            memory = own if isinstance(own, ChatMemory) else own(ctx.conversation_id or "")
            return await memory.in_thread(answer, memory, query, limit)

        return FunctionToolset([Tool(search, name=TOOL, description=DESCRIPTION)])

    async def for_run(self, ctx: RunContext[AgentType]) -> ChatMemoryCapability:
        """Return a copy of the capability for one run. The copy has the memory of the run's
        conversation, and remembers which messages of the run it has added.

        Raises InvalidValue if `memory` is a callable and the run has no conversation id.
        """
        if isinstance(self.memory, ChatMemory):
            return replace(self)
        if ctx.conversation_id == _NO_CONVERSATION:
            raise InvalidValue(
                "this run has no conversation: give it a conversation_id, or give the capability "
                "one memory"
            )
        return replace(self, memory=self.memory(ctx.conversation_id or ""))

    async def before_model_request(
        self, ctx: RunContext[AgentType], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._run_messages = ctx.messages
        tools = request_context.model_request_parameters.output_tools
        self._output_tools = {tool.name for tool in tools}
        await self._keep(ctx, ctx.messages)
        window = ModelMessagesTypeAdapter.validate_python(await self._own.arender(_FORMAT))
        prompts = [part for part in _parts(ctx.messages) if isinstance(part, SystemPromptPart)]
        request_context.messages = [*([ModelRequest(prompts)] if prompts else ()), *window]
        return request_context

    async def wrap_tool_execute(
        self,
        ctx: RunContext[AgentType],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: JsonDict,
        handler: WrapToolExecuteHandler,
    ) -> LibraryValue:
        try:
            result = await handler(args)
        except Exception as error:
            # If a tool fails or asks for a retry, its error has the part that the model sees.
            part = getattr(error, "tool_retry", None) or getattr(error, "tool_failed", None)
            if part is not None:
                self._returned[call.tool_call_id] = [part]
            raise
        self._returned[call.tool_call_id] = [*_parts_of_result(call, result)]
        return result

    async def wrap_run(
        self, ctx: RunContext[AgentType], *, handler: WrapRunHandler
    ) -> AgentRunResult[AgentType]:
        has_result = False
        try:
            result = await handler()
            self._run_messages = result.all_messages()
            has_result = not isinstance(result.output, DeferredToolRequests)
            return result
        finally:
            messages = [each for each in self._run_messages if each.run_id == ctx.run_id]
            if parts := [*self._missing(messages, has_result)]:
                request = ModelRequest(parts, run_id=ctx.run_id)
                messages.append(replace(request, conversation_id=ctx.conversation_id))
            await self._keep(ctx, messages)

    def _missing(
        self, messages: Sequence[ModelMessage], has_result: bool
    ) -> Iterator[ModelRequestPart]:
        """Yield parts that are missing in the messages of this run: results of tools. If
        `has_result`, parts that close open tool calls are yielded, too.
        """
        requests = [message for message in messages if isinstance(message, ModelRequest)]
        answered = {getattr(part, "tool_call_id", None) for part in _parts(requests)}
        missing = {id: parts for id, parts in self._returned.items() if id not in answered}
        responses = [message for message in messages if isinstance(message, ModelResponse)]
        of_output = _IS_RESULT
        for call in (call for response in responses for call in response.tool_calls):
            if not has_result or call.tool_call_id in {*answered, *missing}:
                continue
            text = _NOT_EXECUTED
            if call.tool_name in self._output_tools:
                text, of_output = of_output, _NOT_USED
            missing[call.tool_call_id] = [ToolReturnPart(call.tool_name, text, call.tool_call_id)]
        found = [part for parts in missing.values() for part in parts]
        yield from sorted(found, key=lambda part: isinstance(part, UserPromptPart))

    @property
    def _own(self) -> ChatMemory:
        assert isinstance(self.memory, ChatMemory)
        return self.memory

    async def _keep(self, ctx: RunContext[AgentType], messages: Iterable[ModelMessage]) -> None:
        """Add the new messages of this run."""
        new = [
            each for each in messages if each.run_id == ctx.run_id and id(each) not in self._stored
        ]
        self._stored |= {id(message): message for message in new}
        if added := [message for each in new for message in _without_prompts(each)]:
            await self._own.in_thread(self._add, added)

    def _add(self, messages: Sequence[ModelMessage]) -> None:
        with change_lock_of(self._own, self._own.id):
            tell(self._own, self._own.add_from(messages, _FORMAT))


def _parts(messages: Iterable[ModelMessage]) -> Iterable[object]:
    return (part for each in messages for part in each.parts)


def _parts_of_result(call: ToolCallPart, result: object) -> Iterator[ModelRequestPart]:
    """Yield the result of a tool, and the further content that the tool gives to the model."""
    if not isinstance(result, ToolReturn):
        result = ToolReturn(result)
    yield ToolReturnPart(
        call.tool_name, result.return_value, call.tool_call_id, metadata=result.metadata
    )
    if result.content:
        yield UserPromptPart(result.content)


def _without_prompts(message: ModelMessage) -> Iterable[ModelMessage]:
    """Yield a message without its system prompts and instructions. Yield nothing if the message is
    empty then.
    """
    if not isinstance(message, ModelRequest):
        yield message
    elif parts := [part for part in message.parts if not isinstance(part, SystemPromptPart)]:
        yield replace(message, parts=parts, instructions=None)
