"""The session in real runs of the OpenAI Agents SDK, with a model that gives prepared answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, RunConfig, Runner, Usage, function_tool
from agents.items import ModelResponse
from agents.memory import SessionSettings, SQLiteSession
from agents.models.interface import Model
from asgiref.sync import async_to_sync
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary

from chatmemory import UserMessage
from chatmemory.integrations.openai_agents import ChatMemorySession
from chatmemory.ledger.verification import verify
from chatmemory.models import Stay
from chatmemory.windows.eviction import Reason

from .conftest import texts

THOUGHT = ResponseReasoningItem(
    id="rs_1",
    type="reasoning",
    summary=[Summary(text="Two cities.", type="summary_text")],
    encrypted_content="gAAAA",
)


def call(n: int, city: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{n}",
        call_id=f"call_{n}",
        name="find",
        arguments=f'{{"city": "{city}"}}',
        type="function_call",
        status="completed",
    )


def words(text: str) -> ResponseOutputMessage:
    said = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=f"msg_{text}", content=[said], role="assistant", status="completed", type="message"
    )


class Scripted(Model):
    """Gives prepared answers, and remembers its prompts."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers, self.seen = list(answers), []

    async def get_response(self, *, input: Any, **others: Any) -> ModelResponse:
        self.seen.append(input)
        return ModelResponse(self.answers.pop(0), Usage(), None)

    def stream_response(self, *given: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def find(city: str) -> str:
    """Find the weather."""
    return f"sunny in {city}"


def talk(session: Any, *questions: str, answers: list[list[Any]]) -> Scripted:
    model = Scripted(*answers)
    agent = Agent("weather", model=model, tools=[find])
    for question in questions:
        run = async_to_sync(Runner.run)
        run(agent, question, session=session, run_config=RunConfig(tracing_disabled=True))
    return model


def weather() -> list[list[Any]]:
    return [[THOUGHT, call(1, "Paris"), call(2, "Rome")], [words("sunny")], [words("bye")]]


def items(session: Any, limit: int | None = None) -> list[Any]:
    return async_to_sync(session.get_items)(limit)


def test_items_equal_those_of_a_session_in_sqlite(large_memory):
    ours, theirs = ChatMemorySession(large_memory), SQLiteSession("theirs")
    for session in (theirs, ours):
        talk(session, "weather?", "thanks", answers=weather())
    assert items(ours) == items(theirs)
    assert items(ours, 3) == items(theirs, 3)
    asked, called, *results, _, _, _ = large_memory.messages()
    assert [each.id for each in called.tool_execution_requests] == ["call_1", "call_2"]
    assert (texts([asked, *results]), called.thinking) == (
        ["weather?", "sunny in Paris", "sunny in Rome"],
        "Two cities.",
    )
    pop = [async_to_sync(session.pop_item) for session in (theirs, ours)]
    for _ in range(len(items(theirs)) + 1):
        popped, other = [each() for each in pop]
        assert (popped, items(theirs)) == (other, items(ours))
    assert items(ours) == []


def test_the_model_sees_the_window_and_the_history_keeps_everything(memory_of):
    memory = memory_of(3)
    model = talk(ChatMemorySession(memory), "weather?", "thanks", answers=weather())
    kept = [item.get("type", item.get("role")) for item in model.seen[-1]]
    assert kept == ["message", "user"]  # the call and its results have left together
    assert texts(memory.history())[3:] == ["sunny in Rome", "sunny", "thanks", "bye"]


def test_a_popped_item_is_a_step_and_stays_in_the_history(memory_of):
    memory = memory_of(10)
    session = ChatMemorySession(memory)
    async_to_sync(session.add_items)([{"role": "user", "content": each} for each in "AB"])
    assert async_to_sync(session.pop_item)() == {"role": "user", "content": "B"}
    assert (texts(memory.messages()), texts(memory.history())) == (["A"], ["A", "B"])
    (left,) = Stay.objects.filter(memory_id=memory.id, left_step__isnull=False)
    assert (left.seq, left.reason, left.left_step) == (2, Reason.SET, 3)
    assert verify(memory.id) is None
    async_to_sync(session.clear_session)()
    assert (items(session), texts(memory.history())) == ([], ["A", "B"])


def test_settings_of_the_session_limit_what_is_read(memory_of):
    session = ChatMemorySession(memory_of(10), session_settings=SessionSettings(limit=1))
    talk(session, "A", "B", answers=[[words("a")], [words("b")]])
    assert [item["content"][0]["text"] for item in items(session)] == ["b"]
    assert len(items(session, 3)) == 3


def test_the_model_finds_what_left_by_a_tool(memory_of):
    memory = memory_of(3)
    memory.extend([UserMessage("My order is A-1182."), *map(UserMessage, "abc")])
    session = ChatMemorySession(memory, search_history=True)
    assert ChatMemorySession(memory).tools == []
    asks = ResponseFunctionToolCall(
        id="fc_1",
        call_id="call_1",
        name="search_history",
        arguments='{"query": "A-1182"}',
        type="function_call",
        status="completed",
    )
    model = Scripted([asks], [words("A-1182")])
    agent = Agent("support", model=model, tools=session.tools)
    run = async_to_sync(Runner.run)
    run(agent, "Which order?", session=session, run_config=RunConfig(tracing_disabled=True))
    (hit,) = json.loads(model.seen[-1][-1]["output"])["hits"]
    assert (hit["number"], hit["in_memory"], hit["quote"]) == (1, False, "My order is A-1182.")
    assert [each.tool_name for each in memory.history() if hasattr(each, "tool_name")] == [
        "search_history"
    ]
