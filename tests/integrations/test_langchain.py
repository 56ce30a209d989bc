"""The middleware in real agents of LangChain, with models that give prepared answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from packaging.version import Version

from chatmemory import (
    AiMessage,
    ChatMemory,
    ChatMemoryProvider,
    InMemoryChatMemoryStore,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import InvalidValue
from chatmemory.formats import render_messages
from chatmemory.integrations.langchain import ChatMemoryMiddleware
from chatmemory.ledger.verification import verify
from chatmemory.models import Stay, Step
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore
from chatmemory.windows.eviction import Reason
from chatmemory.windows.transitions import Change

from .conftest import texts

THREAD = {"configurable": {"thread_id": "order-1"}}


class Model(BaseChatModel):
    """Gives prepared answers or raises prepared errors, and remembers its prompts."""

    answers: list[Any]
    seen: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Model:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        self.seen.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        answer = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @property
    def texts(self) -> list[list[str]]:
        return [[message.text for message in messages] for messages in self.seen]


def model_of(*answers: Any) -> Model:
    return Model(answers=list(answers), seen=[])


def calling(*calls: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    said = [{"name": name, "args": args, "id": f"c{i}"} for i, (name, args) in enumerate(calls)]
    return AIMessage(text, tool_calls=said)


@tool
def find(city: str) -> str:
    """Find the weather."""
    if city == "Nowhere":
        raise ValueError("no such city")
    return f"sunny in {city}"


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


@pytest.fixture
def memory(db) -> ChatMemory:
    return MessageWindowChatMemory("order-1", 4, DjangoChatMemoryStore())


@pytest.fixture
def agent_of(memory: ChatMemory) -> Callable[..., Any]:
    def agent_of(model: Model, *others: Any, **options: Any) -> Any:
        options = {"tools": [find, ask], "checkpointer": InMemorySaver(), **options}
        middleware = [ChatMemoryMiddleware(memory), *others]
        return create_agent(model, middleware=middleware, **options)

    return agent_of


def say(agent: Any, *texts: str, config: Any = THREAD) -> str:
    said = {"messages": [HumanMessage(text) for text in texts]}
    return agent.invoke(said, config)["messages"][-1].text


def test_the_model_sees_the_window_and_the_history_keeps_everything(memory, agent_of):
    model = model_of(*"abcd")
    agent = agent_of(model, system_prompt="Be brief.")
    for question in "ABCD":
        say(agent, question)
    assert model.texts[-1] == ["Be brief.", "b", "C", "c", "D"]
    assert texts(memory.history()) == list("AaBbCcDd")
    assert texts(memory.messages()) == list("CcDd")


def test_calls_and_results_are_kept_as_they_were_said(memory, agent_of):
    call = calling(("find", {"city": "Paris"}), ("find", {"city": "Rome"}), text="let me see")
    model = model_of(call, "sunny")
    agent = agent_of(model)
    say(agent, "weather?")
    asked, called, *results, answered = memory.history()
    assert (asked, answered.text) == (UserMessage("weather?", None, asked.attributes), "sunny")
    assert [call.arguments for call in called.tool_execution_requests] == [
        '{"city": "Paris"}',
        '{"city": "Rome"}',
    ]
    assert texts(results) == ["sunny in Paris", "sunny in Rome"]
    state = agent.get_state(THREAD).values["messages"]
    assert model.seen[-1] == state[:-1]
    assert [type(message) for message in results] == [ToolExecutionResultMessage] * 2


def test_messages_are_added_once_whatever_is_run_again(memory, agent_of):
    model = model_of("a", ConnectionError("gone"), "b", "c")
    agent = agent_of(model)
    say(agent, "A")
    with pytest.raises(ConnectionError):
        say(agent, "B")
    assert texts(memory.history()) == ["A", "a", "B"]
    agent.invoke(None, THREAD)  # goes on where it failed
    assert texts(memory.history()) == ["A", "a", "B", "b"]
    before = next(s for s in agent.get_state_history(THREAD) if len(s.values["messages"]) == 3)
    agent.invoke(None, before.config)  # the same once more, from an earlier checkpoint
    assert texts(memory.history()) == ["A", "a", "B", "b", "c"]


def test_messages_that_have_left_the_window_are_known_by_the_history(db):
    memory = MessageWindowChatMemory("order-1", 1, DjangoChatMemoryStore())
    middleware = [ChatMemoryMiddleware(memory)]
    agent = create_agent(model_of(*"abc"), middleware=middleware, checkpointer=InMemorySaver())
    for question in "ABC":
        say(agent, question)
        memory.clear()
    assert texts(memory.history()) == list("AaBbCc")


def test_an_interrupted_run_is_resumed(memory, agent_of):
    calls = calling(("ask", {"question": "sure?"}), ("find", {"city": "Rome"}))
    agent = agent_of(model_of(calls, "done"))
    say(agent, "do it")
    called = 'ask({"question": "sure?"})\nfind({"city": "Rome"})'
    assert texts(memory.history()) == ["do it", called]
    agent.invoke(Command(resume="yes"), THREAD)
    assert texts(memory.history())[2:] == ["yes", "sunny in Rome", "done"]


def test_what_a_person_decides_about_a_call_is_kept_as_it_is_in_the_state(memory, agent_of):
    person = HumanInTheLoopMiddleware(interrupt_on={"find": True})
    agent = agent_of(model_of(calling(("find", {"city": "Paris"})), "done"), person)
    say(agent, "weather?")
    assert texts(memory.history()) == ["weather?"]  # the call is added when it is decided
    decision = {"type": "edit", "edited_action": {"name": "find", "args": {"city": "Rome"}}}
    agent.invoke(Command(resume={"decisions": [decision]}), THREAD)
    kept = messages_from_dict(render_messages(memory.history(), "langchain").value)
    assert kept == agent.get_state(THREAD).values["messages"]
    assert "sunny in Rome" in kept[2].text


def test_a_tool_that_fails_leaves_the_call_and_the_next_run_goes_on(memory, agent_of):
    agent = agent_of(model_of(calling(("find", {"city": "Nowhere"})), "sorry"))
    with pytest.raises(ValueError, match="no such city"):
        say(agent, "weather?")
    assert texts(memory.history()) == ["weather?", 'find({"city": "Nowhere"})']


def test_a_result_that_ends_the_run_is_kept(memory, agent_of):
    @tool(return_direct=True)
    def last() -> str:
        """End."""
        return "the end"

    agent = agent_of(model_of(calling(("last", {}))), tools=[last])
    say(agent, "go")
    assert texts(memory.history()) == ["go", "last({})", "the end"]


def test_an_error_of_a_tool_is_one_in_the_memory(memory, agent_of):
    failed = ToolMessage("no", tool_call_id="c0", status="error")
    said = [HumanMessage("weather?"), calling(("find", {"city": "Rome"})), failed]
    agent_of(model_of("sorry")).invoke({"messages": said}, THREAD)
    assert [getattr(message, "is_error", None) for message in memory.history()] == [
        None,
        None,
        True,
        None,
    ]


@pytest.mark.skipif(
    Version(version("langchain")) < Version("1.4.3"), reason="LangChain leaves such a call open"
)
def test_a_call_that_no_tool_can_take_is_answered_once(memory, agent_of):
    """LangChain makes up a result for it, without an id, when the model is called again."""
    broken = {"name": "find", "args": '{"city": ', "id": "c", "error": "no JSON"}
    agent = agent_of(model_of(AIMessage("", invalid_tool_calls=[broken]), "b", "c"))
    for question in "ABC":
        say(agent, question)
    results = [m for m in memory.history() if isinstance(m, ToolExecutionResultMessage)]
    assert [result.id for result in results] == ["c"]


SUMMARY = "Here is a summary of the conversation to date:\n\nthey spoke of A and B"


def summarizing(*said: str, trigger: int, keep: int = 1) -> SummarizationMiddleware:
    """LangChain's own: from so many messages on, a summary takes the place of all but the last."""
    return SummarizationMiddleware(
        model_of(*said), trigger=("messages", trigger), keep=("messages", keep)
    )


def compactions(memory: ChatMemory) -> list[list[str]]:
    """The messages that each summary of the ledger covers."""
    steps = Step.objects.filter(memory_id=memory.id, kind=Change.COMPACT).order_by("n")
    covered = [Stay.objects.filter(memory_id=memory.id, left_step=step.n) for step in steps]
    assert {stay.reason for stays in covered for stay in stays} <= {Reason.SUMMARIZED}
    return [[stay.message.text for stay in stays.order_by("n")] for stays in covered]


@pytest.mark.parametrize("listed_first", [True, False])
def test_a_summary_of_langchain_is_a_compaction(memory, listed_first):
    summarize = summarizing("they spoke of A and B", "and of C", trigger=5)
    ours = ChatMemoryMiddleware(memory)
    middleware = [ours, summarize] if listed_first else [summarize, ours]
    model = model_of(*"abcde")
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    for question in "ABCDE":
        say(agent, question)
    assert texts(memory.history()) == list("AaBbCcDdEe")
    assert model.texts[:4] == [["A"], ["A", "a", "B"], [SUMMARY, "C"], [SUMMARY, *"CcD"]]
    first, second = compactions(memory)
    assert first == list("aBb" if listed_first else "AaBb")  # C, which came first, evicts A
    assert second[0] == SUMMARY
    window = messages_from_dict(render_messages(memory.messages(), "langchain").value)
    assert window == agent.get_state(THREAD).values["messages"]
    assert verify(memory.id) is None


def test_a_summary_reaches_the_ledger_of_a_server(served):
    memory_id = uuid4().hex
    with HttpChatMemoryStore(served.url, served.token) as store:
        memory = MessageWindowChatMemory(memory_id, 10, store)
        middleware = [ChatMemoryMiddleware(memory), summarizing("they spoke of A and B", trigger=5)]
        agent = create_agent(model_of(*"abc"), middleware=middleware, checkpointer=InMemorySaver())
        for question in "ABC":
            say(agent, question)
        assert texts(memory.messages()) == [SUMMARY, *"Cc"]
    steps = served.api.get(f"{served.url}/api/v1/memories/{memory_id}/steps/").json()["steps"]
    assert [step["kind"] for step in steps].count("compact") == 1


def test_a_summary_without_room_is_put_before_the_window(db):
    """The window has two messages and no room for a summary of others."""
    memory = MessageWindowChatMemory("order-1", 2, DjangoChatMemoryStore())
    middleware = [ChatMemoryMiddleware(memory), summarizing("they spoke of A and B", trigger=5)]
    agent = create_agent(
        model := model_of(*"abcd"), middleware=middleware, checkpointer=InMemorySaver()
    )
    for question in "ABCD":
        say(agent, question)
    assert model.texts[2:] == [[SUMMARY, "b", "C"], [SUMMARY, "c", "D"]]
    assert texts(memory.history()) == list("AaBbCcDd")


def test_each_thread_has_its_memory(agent_of):
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(partial(MessageWindowChatMemory, max_messages=4, store=store))
    middleware = [ChatMemoryMiddleware(memories.get)]
    agent = create_agent(model_of("a", "b"), middleware=middleware, checkpointer=InMemorySaver())
    for thread, question in (("one", "A"), ("two", "B")):
        say(agent, question, config={"configurable": {"thread_id": thread}})
    assert texts(memories.get("one").messages()) == ["A", "a"]
    assert texts(memories.get("two").messages()) == ["B", "b"]
    with pytest.raises(InvalidValue, match="no thread id"):
        say(create_agent(model_of("a"), middleware=middleware), "A", config={})


def test_a_store_without_a_history_keeps_the_window():
    memory = MessageWindowChatMemory("a", 3)
    agent = create_agent(
        model := model_of(*"abc"),
        middleware=[ChatMemoryMiddleware(memory)],
        checkpointer=InMemorySaver(),
    )
    for question in "ABC":
        say(agent, question)
    assert model.texts[-1] == list("BbC")
    assert texts(memory.messages()) == list("bCc")


def test_an_agent_under_asyncio(memory, agent_of):
    model = model_of(calling(("find", {"city": "Rome"})), "sunny", "bye")
    agent = agent_of(model)

    async def talk() -> None:
        for question in ("weather?", "thanks"):
            await agent.ainvoke({"messages": [HumanMessage(question)]}, THREAD)

    async_to_sync(talk)()
    assert texts(memory.history()) == [
        *("weather?", 'find({"city": "Rome"})', "sunny in Rome", "sunny", "thanks", "bye")
    ]
    assert model.texts[-1] == ["", "sunny in Rome", "sunny", "thanks"]


def test_a_stream_is_stored_when_it_is_complete():
    memory = MessageWindowChatMemory("a", 4)
    agent = create_agent(model_of("so it is"), middleware=[ChatMemoryMiddleware(memory)])
    said = {"messages": [HumanMessage("A")]}
    told = [chunk for chunk, _ in agent.stream(said, stream_mode="messages")]
    assert told
    assert texts(memory.messages()) == ["A", "so it is"]
    assert isinstance(memory.messages()[-1], AiMessage)


def test_a_system_message_in_the_state_is_that_of_the_memory(memory, agent_of):
    memory.add(SystemMessage("Be kind."))
    model = model_of("a", "b")
    agent = agent_of(model, system_prompt="Be brief.")
    say(agent, "A")
    say(agent, "B")
    assert model.texts[-1] == ["Be brief.", "Be kind.", "A", "a", "B"]


def test_the_lines_of_the_docs_run(transactional_db):
    page = (Path(__file__).parents[2] / "docs/langchain.md").read_text("utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(snippet, {"model": model_of("On its way."), "tools": [find]})
    said = texts(DjangoChatMemoryStore().get_history("order-7741"))
    assert said == ["Where is my parcel?", "On its way."]


@pytest.mark.parametrize("is_named", [False, True])
def test_the_model_finds_what_left_by_a_tool(memory_of, is_named):
    memory = memory_of(3)
    memory.extend([UserMessage("My order is A-1182."), *map(UserMessage, "abc")])
    model = model_of(calling(("search_history", {"query": "A-1182"})), "A-1182")
    chosen = (lambda _: memory) if is_named else memory
    agent = create_agent(model, [], middleware=[ChatMemoryMiddleware(chosen, search_history=True)])
    async_to_sync(agent.ainvoke)({"messages": "Which order?"}, THREAD)
    (hit,) = json.loads(model.texts[-1][-1])["hits"]
    assert (hit["number"], hit["in_memory"], hit["quote"]) == (1, False, "My order is A-1182.")
    assert [each.tool_name for each in memory.history() if hasattr(each, "tool_name")] == [
        "search_history"
    ]
