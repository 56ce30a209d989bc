"""The memory of an agent of Pydantic AI 2.x, as a capability.

    memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
    agent = Agent(model, capabilities=[ChatMemoryCapability(memories.get)])
    agent.run_sync("Where is my parcel?", conversation_id="order-7741")

The model sees the window, and the store keeps what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatmemory.core.store import turn_of
from chatmemory.integrations import tell
from chatmemory.memory import ChatMemory

try:
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        SystemPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pydantic_ai":
        raise
    raise ImportError(
        "ChatMemoryCapability needs Pydantic AI 2.x: pip install '.[pydantic-ai]' in a checkout"
    ) from error

_FORMAT = "pydantic_ai"


@dataclass
class ChatMemoryCapability(AbstractCapability[Any]):
    """Gives the model the window of a memory, and adds to it what the agent and its user say.

    - `memory` is a ChatMemory, or a callable that returns the one of a conversation by its id.
    - What a run says is added once: input and results before the model is called, and the rest when
      the run ends, also if it fails or is cancelled. Usage, signatures and ids of the provider are
      kept, and go back to it.
    - The memory is the history: a `message_history` that is given to a run is neither added nor
      seen, so that a run that waited for approval can be resumed with it.
    - System prompts and instructions are the agent's own, and no part of the memory.

    What a memory refuses, such as a message that is too long, stops the run with its error.
    """

    memory: ChatMemory | Callable[[str], ChatMemory]
    _seen: Sequence[ModelMessage] = field(default=(), init=False, repr=False)
    _kept: dict[int, ModelMessage] = field(default_factory=dict, init=False, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> ChatMemoryCapability:
        """Return a capability that knows what it has added in one run."""
        if isinstance(self.memory, ChatMemory):
            return replace(self)
        return replace(self, memory=self.memory(ctx.conversation_id or ""))

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._seen = ctx.messages
        await self._keep(ctx, ctx.messages)
        window = ModelMessagesTypeAdapter.validate_python(await self._own.arender(_FORMAT))
        prompts = [part for part in _parts(ctx.messages) if isinstance(part, SystemPromptPart)]
        request_context.messages = [*([ModelRequest(prompts)] if prompts else ()), *window]
        return request_context

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        try:
            result = await handler()
            self._seen = result.all_messages()
            return result
        finally:
            await self._keep(ctx, self._seen)

    @property
    def _own(self) -> ChatMemory:
        assert isinstance(self.memory, ChatMemory)
        return self.memory

    async def _keep(self, ctx: RunContext[Any], messages: Iterable[ModelMessage]) -> None:
        """Add what this run has said since the last time."""
        new = [
            each for each in messages if each.run_id == ctx.run_id and id(each) not in self._kept
        ]
        self._kept |= {id(message): message for message in new}
        if said := [message for each in new for message in _without_prompts(each)]:
            await self._own.in_thread(self._add, said)

    def _add(self, said: Sequence[ModelMessage]) -> None:
        with turn_of(self._own, self._own.id):
            tell(self._own, self._own.add_from(said, _FORMAT))


def _parts(messages: Iterable[ModelMessage]) -> Iterable[Any]:
    return (part for each in messages for part in each.parts)


def _without_prompts(message: ModelMessage) -> Iterable[ModelMessage]:
    """Yield a message without system prompts and instructions, if anything else is in it."""
    if not isinstance(message, ModelRequest):
        yield message
    elif parts := [part for part in message.parts if not isinstance(part, SystemPromptPart)]:
        yield replace(message, parts=parts, instructions=None)
