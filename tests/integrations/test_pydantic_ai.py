"""The capability in real agents of Pydantic AI, with models that say what a test lets them say."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from chatmemory import ChatMemoryProvider, InMemoryChatMemoryStore, MessageWindowChatMemory
from chatmemory.integrations.pydantic_ai import ChatMemoryCapability

from .conftest import texts


def calling(city: str) -> ModelResponse:
    """What a model says that thinks, and calls a tool."""
    return ModelResponse(
        [
            ThinkingPart("A city.", signature="c2ln", id="rs_1", provider_name="anthropic"),
            ToolCallPart("find", {"city": city}, "call_1"),
        ],
        usage=RequestUsage(input_tokens=52, output_tokens=5),
        provider_response_id="resp_1",
    )


class Scripted:
    """Answers with what it is given, or raises it, and remembers what it saw."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.seen, self.instructions = list(answers), [], []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(messages)
        self.instructions.append(info.instructions)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse([TextPart(answer)]) if isinstance(answer, str) else answer

    @property
    def texts(self) -> list[list[str]]:
        """What stood in each message that it saw last."""
        return [[str(getattr(part, "content", None)) for part in m.parts] for m in self.seen[-1]]


def agent_of(model: Scripted, memory: Any, **options: Any) -> Agent[None, Any]:
    agent = Agent(FunctionModel(model), capabilities=[ChatMemoryCapability(memory)], **options)

    @agent.tool_plain
    def find(city: str) -> str:
        if city == "Nowhere":
            raise ValueError("no such city")
        return f"sunny in {city}"

    return agent


def say(agent: Agent[None, Any], text: str, **options: Any) -> Any:
    return async_to_sync(agent.run)(text, **options)


def test_what_is_kept_is_what_the_run_said(large_memory):
    model = Scripted(calling("Rome"), "sunny", "bye")
    agent = agent_of(model, large_memory)
    first = say(agent, "weather?")
    kept = ModelMessagesTypeAdapter.validate_python(large_memory.render("pydantic_ai"))
    assert kept == first.all_messages()
    assert kept[1].usage == RequestUsage(input_tokens=52, output_tokens=5)
    say(agent, "thanks", message_history=first.all_messages())
    assert texts(large_memory.messages()) == [
        *("weather?", 'find({"city": "Rome"})', "sunny in Rome", "sunny", "thanks", "bye")
    ]
    assert model.seen[-1][:4] == kept


def test_the_model_sees_the_window_and_the_agents_own_prompts(memory_of):
    memory = memory_of(3)
    model = Scripted(*"abc")
    agent = agent_of(
        model, memory, system_prompt=("Be kind.", "Be calm."), instructions="Be brief."
    )
    for question in "ABC":
        say(agent, question)
    assert texts(memory.history()) == list("AaBbCc")
    assert model.texts == [["Be kind.", "Be calm.", "B"], ["b"], ["C"]]
    assert model.instructions[-1] == "Be brief."


def test_a_run_that_fails_leaves_what_was_said(memory_of):
    memory = memory_of(9)
    agent = agent_of(Scripted(calling("Nowhere"), ConnectionError("gone"), "hello"), memory)
    for question in "AB":
        with pytest.raises((ValueError, ConnectionError)):
            say(agent, question)
    say(agent, "C")
    assert texts(memory.history()) == ["A", 'find({"city": "Nowhere"})', "B", "C", "hello"]


def test_a_run_that_is_left_early_keeps_what_was_said(memory_of):
    memory = memory_of(9)

    async def leave() -> None:
        async with agent_of(Scripted(calling("Rome"), "sunny"), memory).iter("weather?") as run:
            async for node in run:
                if type(node).__name__ == "CallToolsNode":
                    break

    async_to_sync(leave)()
    assert texts(memory.history()) == ["weather?", 'find({"city": "Rome"})']


def test_each_conversation_has_its_memory():
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(partial(MessageWindowChatMemory, max_messages=4, store=store))
    agent = agent_of(Scripted("a", "b"), memories.get)
    for name, question in (("one", "A"), ("two", "B")):
        async_to_sync(agent.run)(question, conversation_id=name)  # run_sync leaves a loop open
    assert texts(memories.get("one").messages()) == ["A", "a"]
    assert texts(memories.get("two").messages()) == ["B", "b"]
