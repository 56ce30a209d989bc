"""The memory in real agents and chat engines of LlamaIndex, with a model that a test scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ThinkingBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, TextBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer

from chatmemory import UserMessage
from chatmemory.integrations.llama_index import LlamaIndexMemory

from .conftest import texts

# Of LlamaIndex's own workflows, which ask for properties that Pydantic will remove
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def find(city: str) -> str:
    """Find the weather."""
    return f"sunny in {city}"


def calling(city: str) -> ChatMessage:
    """What a model says that thinks, and calls a tool."""
    thought = ThinkingBlock(content="A city.", additional_information={"signature": "c2ln"})
    call = ToolCallBlock(tool_call_id="call_1", tool_name="find", tool_kwargs={"city": city})
    return ChatMessage(role="assistant", blocks=[thought, TextBlock(text="I look."), call])


def assistant_message(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text, additional_kwargs={"refusal": None})


class Scripted:
    """A model that gives prepared answers, and remembers its prompts."""

    def __init__(self, *answers: ChatMessage) -> None:
        self.answers, self.seen = list(answers), []
        self.llm = MockFunctionCallingLLM(response_generator=self.answer, is_chat_model=True)

    def answer(self, messages: Any, **options: Any) -> ChatMessage:
        self.seen.append([message.content for message in messages])
        return self.answers.pop(0)


def talk(model: Scripted, memory: Any, *questions: str) -> None:
    agent = FunctionAgent(tools=[find], llm=model.llm, streaming=False)

    async def run() -> None:
        for question in questions:
            await agent.run(question, memory=memory)

    async_to_sync(run)()


def test_messages_equal_those_of_a_buffer_of_llamaindex(large_memory):
    ours, theirs = (
        LlamaIndexMemory(large_memory),
        ChatMemoryBuffer.from_defaults(tokenizer_fn=str.split),
    )
    for memory in (theirs, ours):
        talk(
            Scripted(calling("Rome"), assistant_message("sunny"), assistant_message("bye")),
            memory,
            "weather?",
            "thanks",
        )
    assert async_to_sync(ours.aget)() == async_to_sync(theirs.aget)()
    assert async_to_sync(ours.aget_all)() == ours.get() == ours.get_all()
    asked, called, result, *_ = large_memory.messages()
    assert (texts([asked, result]), called.thinking) == (["weather?", "sunny in Rome"], "A city.")
    assert (result.id, result.tool_name) == ("call_1", "find")


def test_the_model_sees_the_window_and_the_history_keeps_everything(memory_of):
    memory = LlamaIndexMemory(memory_of(3))
    model = Scripted(calling("Rome"), assistant_message("sunny"), assistant_message("bye"))
    talk(model, memory, "weather?", "thanks")
    assert model.seen[-1] == ["sunny", "thanks"]  # the call has left together with its result
    assert [message.content for message in memory.get_all()] == [
        *("weather?", "I look.", "sunny in Rome", "sunny", "thanks", "bye")
    ]


def test_a_chat_engine_without_asyncio(memory_of):
    memory = LlamaIndexMemory.from_defaults(memory=memory_of(2))
    model = Scripted(assistant_message("a"), assistant_message("b"))
    engine = SimpleChatEngine.from_defaults(llm=model.llm, memory=memory)
    for question in "AB":
        engine.chat(question)
    assert model.seen[-1] == ["a", "B"]
    memory.set([ChatMessage("C")])
    engine.reset()
    assert memory.get() == []
    assert [message.content for message in engine.chat_history] == list("AaBbC")


@pytest.mark.parametrize("call", [async_to_sync(LlamaIndexMemory.aset), LlamaIndexMemory.set])
def test_a_list_that_is_set_is_the_window(memory_of, call):
    memory = LlamaIndexMemory(memory_of(3))
    async_to_sync(memory.aput)(ChatMessage("A"))
    call(memory, [ChatMessage("A"), assistant_message("a")])
    assert memory.get() == [ChatMessage("A"), assistant_message("a")]
    async_to_sync(memory.areset)()
    assert (memory.get(), len(memory.get_all())) == ([], 2)


def test_the_model_finds_what_left_by_a_tool(memory_of):
    kept = memory_of(3)
    kept.extend([UserMessage("My order is A-1182."), *map(UserMessage, "abc")])
    memory = LlamaIndexMemory(kept, search_history=True)
    assert LlamaIndexMemory(kept).tools == []
    call = ToolCallBlock(
        tool_call_id="c1", tool_name="search_history", tool_kwargs={"query": "A-1182"}
    )
    model = Scripted(ChatMessage(role="assistant", blocks=[call]), assistant_message("A-1182"))
    agent = FunctionAgent(tools=memory.tools, llm=model.llm, streaming=False)

    async def run() -> None:
        await agent.run("Which order?", memory=memory)

    async_to_sync(run)()
    (hit,) = json.loads(model.seen[-1][-1])["hits"]
    assert (hit["number"], hit["in_memory"], hit["quote"]) == (1, False, "My order is A-1182.")
    assert [each.tool_name for each in kept.history() if hasattr(each, "tool_name")] == [
        "search_history"
    ]
