"""The capability in real agents of Pydantic AI, with models that give prepared answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturn,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from chatmemory import (
    AiMessage,
    ChatMemory,
    ChatMemoryProvider,
    InMemoryChatMemoryStore,
    MessageWindowChatMemory,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import InvalidValue
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
    """Gives prepared answers or raises prepared errors, and remembers its prompts."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.seen, self.instructions = list(answers), [], []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(messages)
        self.instructions.append(info.instructions)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse([TextPart(answer)]) if isinstance(answer, str) else answer

    async def stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for place, part in enumerate(self(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                args, id = part.args_as_json_str(), part.tool_call_id
                yield {place: DeltaToolCall(part.tool_name, args, tool_call_id=id)}

    @property
    def texts(self) -> list[list[str]]:
        """What stood in each message that it saw last."""
        return [[str(getattr(part, "content", None)) for part in m.parts] for m in self.seen[-1]]


def agent_of(model: Scripted, memory: Any, **options: Any) -> Agent[None, Any]:
    both = FunctionModel(model, stream_function=model.stream)
    agent = Agent(both, capabilities=[ChatMemoryCapability(memory)], **options)

    @agent.tool_plain
    def find(city: str) -> Any:
        if city == "Nowhere":
            raise ValueError("no such city")
        if city == "Atlantis":
            raise ModelRetry("which sea?")
        found = f"sunny in {city}"
        return ToolReturn(found, content="a picture") if city == "Paris" else found

    return agent


def say(agent: Agent[None, Any], text: str, **options: Any) -> Any:
    return async_to_sync(agent.run)(text, **options)


def test_memory_keeps_the_messages_of_the_run(large_memory):
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


def test_a_run_that_fails_keeps_its_messages(memory_of):
    memory = memory_of(9)
    agent = agent_of(Scripted(calling("Nowhere"), ConnectionError("gone"), "hello"), memory)
    for question in "AB":
        with pytest.raises((ValueError, ConnectionError)):
            say(agent, question)
    say(agent, "C")
    assert texts(memory.history()) == ["A", 'find({"city": "Nowhere"})', "B", "C", "hello"]


def test_a_run_that_is_left_early_keeps_its_messages(memory_of):
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


# The five ways of running an agent


async def run(agent: Agent[None, Any], text: str) -> None:
    await agent.run(text)


async def run_sync(agent: Agent[None, Any], text: str) -> None:
    def in_thread() -> None:
        try:
            agent.run_sync(text)
        finally:  # it leaves a loop open
            asyncio.get_event_loop().close()

    await asyncio.to_thread(in_thread)


async def run_stream(agent: Agent[None, Any], text: str) -> None:
    async with agent.run_stream(text) as result:
        await result.get_output()


async def run_stream_events(agent: Agent[None, Any], text: str) -> None:
    async with agent.run_stream_events(text) as events:
        async for _ in events:
            pass


async def iterate(agent: Agent[None, Any], text: str) -> None:
    async with agent.iter(text) as run:
        async for _ in run:
            pass


Way = Callable[[Agent[None, Any], str], Awaitable[None]]
WAYS: list[Way] = [run, run_sync, run_stream, run_stream_events, iterate]


class Answer(BaseModel):
    """What an agent with an output type returns."""

    text: str


def calls(*cities: str, output: bool = False) -> ModelResponse:
    """What a model says that looks these cities up, after an answer if it has one."""
    answer = [ToolCallPart("final_result", {"text": "fine"}, "o")] if output else []
    finds = [ToolCallPart("find", f'{{"city": "{city}"}}', city) for city in cities]
    return ModelResponse([*answer, *finds])


@pytest.fixture
def memory() -> MessageWindowChatMemory:
    return MessageWindowChatMemory("agent", 20)


def texts_in(memory: ChatMemory) -> list[str]:
    """The texts after the first message; the calls of a message are one text."""
    return [
        f"{len(text.splitlines())} calls" if "({" in text else text
        for text in texts(memory.messages())
    ][1:]


def answered_calls(memory: ChatMemory) -> tuple[list[str], list[str]]:
    """The ids of the calls, and the ids of the results."""
    messages = memory.messages()
    called = [
        call.id for m in messages if isinstance(m, AiMessage) for call in m.tool_execution_requests
    ]
    return called, [m.id for m in messages if isinstance(m, ToolExecutionResultMessage)]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_running_keeps_calls_and_results(memory, way):
    agent = agent_of(Scripted(calls("Rome", "Paris"), "sunny", "bye"), memory)
    for question in ("weather?", "thanks"):
        async_to_sync(way)(agent, question)
    assert texts_in(memory) == [
        *("2 calls", "sunny in Rome", "sunny in Paris", "a picture", "sunny", "thanks", "bye")
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
def test_calls_beside_the_result_of_a_run_are_answered(memory, way, strategy):
    options = {"output_type": Answer, "end_strategy": strategy}
    agent = agent_of(Scripted(calls("Rome", "Paris", output=True)), memory, **options)
    async_to_sync(way)(agent, "weather?")
    called, answered = answered_calls(memory)
    assert sorted(called) == sorted(answered) == ["Paris", "Rome", "o"]
    executed = ["sunny in Rome", "sunny in Paris", "a picture"]
    assert [text in texts_in(memory) for text in executed] == [strategy == "exhaustive"] * 3


@pytest.mark.parametrize("others", [(), ("Rome",), ("Rome", "Paris")])
def test_each_way_of_running_closes_calls_in_the_same_words(others):
    """A prompt cache ends where words differ: https://ai.pydantic.dev/output/#tool-output"""
    kept = []
    for way in WAYS:
        memory = MessageWindowChatMemory("agent", 20)
        parts = [*calls(*others, output=True).parts]
        parts.append(ToolCallPart("final_result", {"text": "again"}, "second"))
        agent = agent_of(Scripted(ModelResponse(parts)), memory, output_type=Answer)
        async_to_sync(way)(agent, "weather?")
        results = [m for m in memory.messages() if isinstance(m, ToolExecutionResultMessage)]
        kept.append(sorted((m.id, m.contents[0].text) for m in results))
    assert len(kept[0]) == 2 + len(others)
    assert kept == [kept[0]] * len(WAYS)


@pytest.mark.skipif(
    not hasattr(AbstractCapability, "get_default_conversation_id"), reason="comes with 2.68"
)
def test_a_run_without_a_conversation_begins_no_memory_that_nobody_finds():
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(partial(MessageWindowChatMemory, max_messages=4, store=store))
    agent = agent_of(Scripted("a", "b"), memories.get)
    with pytest.raises(InvalidValue, match="give it a conversation_id"):
        async_to_sync(agent.run)("A")
    first = async_to_sync(agent.run)("A", conversation_id="one")
    async_to_sync(agent.run)("B", message_history=first.all_messages())
    assert texts(memories.get("one").messages()) == ["A", "a", "B", "b"]


@pytest.mark.parametrize("way", WAYS)
def test_a_result_is_kept_if_another_tool_fails(memory, way):
    has_returned = asyncio.Event()  # tools run side by side, and the first error cancels the others

    async def returns() -> str:
        has_returned.set()
        return "sunny in Rome"

    async def fails() -> str:
        await has_returned.wait()
        raise ValueError("no such city")

    both = ModelResponse([ToolCallPart("fails", {}, "1"), ToolCallPart("returns", {}, "2")])
    agent = agent_of(Scripted(both), memory)
    agent.tool_plain(returns)
    agent.tool_plain(fails)
    with pytest.raises(ValueError, match="no such city"):
        async_to_sync(way)(agent, "weather?")
    assert texts_in(memory) == ["2 calls", "sunny in Rome"]


def test_a_tool_that_wants_another_call_after_the_result_has_said_so(memory):
    options = {"output_type": Answer, "end_strategy": "exhaustive"}
    agent = agent_of(Scripted(calls("Atlantis", output=True)), memory, **options)
    async_to_sync(run_stream)(agent, "weather?")
    assert "which sea?" in texts_in(memory)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_waits_for_approval_stays_open(memory, way):
    asked = ModelResponse([*calls("Rome").parts, ToolCallPart("book", {}, "b")])
    agent = agent_of(Scripted(asked), memory, output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(book)
    async_to_sync(way)(agent, "weather?")
    assert answered_calls(memory) == (["Rome", "b"], ["Rome"])


def book() -> str:
    return "booked"


@pytest.mark.parametrize("is_named", [False, True])
def test_the_model_finds_what_left_by_a_tool(memory_of, is_named):
    memory = memory_of(3)
    memory.extend([UserMessage("My order is A-1182."), *map(UserMessage, "abc")])
    asks = ModelResponse([ToolCallPart("search_history", {"query": "A-1182"}, "call_1")])
    model = Scripted(asks, "A-1182")
    chosen = (lambda _: memory) if is_named else memory
    capability = ChatMemoryCapability(chosen, search_history=True)
    agent = Agent(FunctionModel(model), capabilities=[capability])
    say(agent, "Which order?", **({"conversation_id": "order-1"} if is_named else {}))
    (hit,) = json.loads(model.texts[-1][-1])["hits"]
    assert (hit["number"], hit["in_memory"], hit["quote"]) == (1, False, "My order is A-1182.")
    assert [each.tool_name for each in memory.history() if hasattr(each, "tool_name")] == [
        "search_history"
    ]
