"""What a framework continues with after its process has ended: all but the store is made anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from agents import Agent as OpenAiAgent
from agents import RunConfig, Runner
from asgiref.sync import async_to_sync
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.function import FunctionModel

from chatmemory import (
    AiMessage,
    ChatMemoryProvider,
    MessageWindowChatMemory,
    ToolExecutionRequest,
    UserMessage,
)
from chatmemory.integrations.langchain import ChatMemoryMiddleware
from chatmemory.integrations.llama_index import LlamaIndexMemory
from chatmemory.integrations.openai_agents import ChatMemorySession
from chatmemory.integrations.pydantic_ai import ChatMemoryCapability
from chatmemory.stores.database import DjangoChatMemoryStore

from . import test_langchain, test_llama_index, test_openai_agents, test_pydantic_ai
from .conftest import texts

# Of LlamaIndex's own workflows, which ask for properties that Pydantic will remove
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
]


def memories() -> ChatMemoryProvider:
    """What a process makes when it starts."""
    make = partial(
        MessageWindowChatMemory,
        max_messages=20,
        store=DjangoChatMemoryStore(),
        auto_recover_orphaned_tool_messages=True,
    )
    return ChatMemoryProvider(make)


def with_langchain(question: str, answer: str) -> list[str]:
    """Ask a new agent, and return what its model saw."""
    model = test_langchain.Model(answers=[answer], seen=[])
    middleware = [ChatMemoryMiddleware(memories().get)]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    agent.invoke({"messages": question}, {"configurable": {"thread_id": "order-1"}})
    return model.texts[-1]


def with_openai_agents(question: str, answer: str) -> list[str]:
    model = test_openai_agents.Scripted([test_openai_agents.words(answer)])
    session = ChatMemorySession(memories().get("order-1"))
    run = partial(Runner.run, session=session, run_config=RunConfig(tracing_disabled=True))
    async_to_sync(run)(OpenAiAgent("Support", model=model), question)
    return [_text_of(item) for item in model.seen[-1]]


def _text_of(item: dict) -> str:
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def with_pydantic_ai(question: str, answer: str) -> list[str]:
    model = test_pydantic_ai.Scripted(answer)
    capability = ChatMemoryCapability(memories().get)
    agent = PydanticAgent(FunctionModel(model), capabilities=[capability])
    async_to_sync(agent.run)(question, conversation_id="order-1")
    return [part.content for message in model.seen[-1] for part in message.parts]


def with_llama_index(question: str, answer: str) -> list[str]:
    model = test_llama_index.Scripted(test_llama_index.assistant_message(answer))
    test_llama_index.talk(model, LlamaIndexMemory(memories().get("order-1")), question)
    return model.seen[-1]


WAYS = [with_langchain, with_openai_agents, with_pydantic_ai, with_llama_index]


@pytest.mark.parametrize("ask", WAYS)
def test_the_same_id_goes_on_where_the_process_before_ended(ask: Callable[[str, str], list[str]]):
    assert ask("It is A-1182.", "Thank you.") == ["It is A-1182."]
    assert ask("Where is it?", "In Lyon.") == ["It is A-1182.", "Thank you.", "Where is it?"]
    kept = texts(DjangoChatMemoryStore().get_history("order-1"))
    assert kept == ["It is A-1182.", "Thank you.", "Where is it?", "In Lyon."]


@pytest.mark.parametrize("ask", WAYS)
def test_a_call_whose_tool_the_process_never_finished_is_left_out(ask):
    call = ToolExecutionRequest.of("find", {"order": "A-1182"}, id="1")
    memories().get("order-1").add(UserMessage("It is A-1182."), AiMessage(None, [call]))
    assert ask("Where is it?", "In Lyon.") == ["It is A-1182.", "Where is it?"]
