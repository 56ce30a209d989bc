"""A memory takes values of a provider's library, and returns them in the provider's form."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from pydantic import BaseModel

from chatmemory import (
    InMemoryChatMemoryStore,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionResultMessage,
    UnreadableTranscript,
    UserMessage,
)
from chatmemory.formats import Loss
from chatmemory.stores.database import DjangoChatMemoryStore

pytestmark = pytest.mark.django_db

OPENAI = "openai_chat"


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def call(*ids: str) -> dict:
    function = {"name": "find", "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str | None, content: str = "found") -> dict:
    value = {"role": "tool", "content": content}
    return value if id is None else {**value, "tool_call_id": id}


class Turn(BaseModel):
    """A message in the form of providers' libraries."""

    role: str
    content: str | None = None
    tool_calls: list[dict] | None = None


class Choice(BaseModel):
    message: Turn
    finish_reason: str = "stop"


class Completion(BaseModel):
    id: str
    choices: list[Choice]


@pytest.fixture(params=[InMemoryChatMemoryStore, DjangoChatMemoryStore])
def memory(request) -> MessageWindowChatMemory:
    return MessageWindowChatMemory("m", 3, request.param())


@pytest.mark.parametrize(
    "values",
    [
        [user("hi")],
        user("hi"),
        (user("hi"),),
        Turn(role="user", content="hi"),
        [Turn(role="user", content="hi")],
        {"messages": [user("hi")]},
    ],
    ids=["list", "message", "tuple", "object", "objects", "conversation"],
)
def test_it_takes_lists_messages_and_objects(memory, values):
    assert memory.add_from(values, OPENAI) == ()
    assert memory.messages() == [UserMessage("hi")]
    assert memory.render(OPENAI) == [user("hi")]


def test_it_takes_a_response(memory):
    answer = Turn(role="assistant", content="hello")
    memory.add_from(user("hi"), OPENAI)
    assert memory.add_from(Completion(id="c-1", choices=[Choice(message=answer)]), OPENAI) == ()
    assert memory.render(OPENAI) == [user("hi"), {"role": "assistant", "content": "hello"}]
    assert memory.messages()[1].attributes[OPENAI]["response"]["id"] == "c-1"


def test_details_that_only_the_format_has_come_back(memory):
    said = [{"role": "developer", "content": "Be brief."}, {**user("hi"), "name": "ada"}, call("c")]
    assert memory.add_from(said, OPENAI) == ()
    assert memory.messages()[0] == SystemMessage("Be brief.")
    assert memory.render(OPENAI) == said


def test_a_result_answers_the_call_that_is_open_in_the_window(memory):
    memory.add_from([user("find it"), call("c-1", "c-2")], OPENAI)
    memory.add_from(result("c-1"), OPENAI)
    memory.add_from(result(None, "gone"), OPENAI)
    called, first, second = memory.messages()
    assert [each.id for each in called.tool_execution_requests] == ["c-1", "c-2"]
    assert first == ToolExecutionResultMessage("c-1", "find", "found")
    assert (second.id, second.tool_name) == ("c-2", "find")
    assert memory.render(OPENAI) == [call("c-1", "c-2"), result("c-1"), result(None, "gone")]


def test_a_result_answers_no_call_that_has_left(memory):
    memory.add_from([call("c-1"), *map(user, "abc")], OPENAI)
    memory.add_from(result(None), OPENAI)
    (*_, last) = memory.messages()
    assert (last.id, last.tool_name) == (None, None)


def test_a_window_never_parts_a_result_from_its_call(memory):
    for n in range(6):
        ids = [f"{n}-{i}" for i in range(n % 3 + 1)]
        for said in (user("find"), call(*ids), *map(result, ids), user("thanks")):
            memory.add_from(said, OPENAI)
            rendered = memory.render(OPENAI)
            calls = {each["id"] for turn in rendered for each in turn.get("tool_calls", ())}
            assert {turn["tool_call_id"] for turn in rendered if turn["role"] == "tool"} <= calls
            assert len(rendered) <= 3


@pytest.mark.parametrize(
    "wrong",
    [{"role": "user"}, {"role": "nobody", "content": "x"}, user(7), "hi", None, 5],
    ids=str,
)
def test_nothing_is_added_when_a_message_is_refused(memory, wrong):
    memory.add_from(user("hi"), OPENAI)
    for values in ([user("fine"), wrong], wrong):
        with pytest.raises(UnreadableTranscript):
            memory.add_from(values, OPENAI)
    assert memory.messages() == [UserMessage("hi")]


def test_losses_are_returned(memory):
    blank = {"role": "system", "content": " "}
    losses = memory.add_from([user("hi"), blank], OPENAI)
    assert losses == (Loss("message 2", "a blank system message"),)
    assert memory.messages() == [UserMessage("hi")]


@pytest.mark.parametrize("store", [InMemoryChatMemoryStore, DjangoChatMemoryStore])
def test_the_same_under_asyncio(store):
    async def talk() -> list:
        memory = MessageWindowChatMemory("m", 3, store())
        assert await memory.aadd_from([user("find it"), call("c-1")], OPENAI) == ()
        assert await memory.aadd_from(result(None), OPENAI) == ()
        return await memory.arender(OPENAI)

    said = async_to_sync(talk)()
    assert said[:2] == [user("find it"), call("c-1")]
    assert said[2]["content"] == "found"
