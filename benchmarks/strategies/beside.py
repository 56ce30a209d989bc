"""Compare the prompts of strategies with those that the libraries' own agents send.

    python -m benchmarks.strategies.beside          # in the environment of make strategies

Each library runs an agent of its own, with a model that records its prompts: 24 turns, of which
each has a tool call where the library runs tools here. Beside each recorded prompt stands the one
that our run of the same conversation has. `trim_messages` has no agent: our run calls it itself.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.recall.history import history_of
from chatmemory.strategies import Conversation, Settings, chosen_strategies
from chatmemory.strategies.measuring import Piece, prompts_of
from chatmemory.strategies.summaries import WRITTEN
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

TURNS, SHOWN = 24, 20
SYSTEM = "Be brief."
FOUND = "found " + "it " * 40
SETTINGS = Settings(300, 6, estimator_for(DEFAULT_ESTIMATOR))
SUMMARY, CALL, CLEARED = "(summary)", "(call)", "[cleared]"

Prompts = list[list[str]]  # of each call the texts that were sent, in order, without the system's


def conversation(has_tools: bool) -> list[ChatMessage]:
    """Return the conversation that the agents have: questions, calls, results and answers."""
    said: list[ChatMessage] = [SystemMessage(SYSTEM)]
    for turn in range(TURNS):
        said.append(UserMessage(question(turn)))
        if has_tools:
            call = ToolExecutionRequest(f"call-{turn}", "look", "{}")
            said += [
                AiMessage(None, (call,)),
                ToolExecutionResultMessage(call.id, "look", FOUND),
            ]
        said.append(AiMessage(answer(turn)))
    return said


def question(turn: int) -> str:
    return f"Question {turn}, and what else is there to say about it?"


def answer(turn: int) -> str:
    return f"Answer {turn}, and nothing else is known about it."


def ours(name: str, has_tools: bool) -> Prompts:
    """Return the prompts of our run."""
    said = conversation(has_tools)
    estimator = estimator_for(DEFAULT_ESTIMATOR)
    talk = Conversation(said, history_of(said, estimator), estimator)
    (strategy,) = chosen_strategies(name)
    found = prompts_of(talk, strategy.run(SETTINGS))
    return [[text for each in prompt if (text := _shown(said, each))] for _, prompt in found]


def _shown(said: Sequence[ChatMessage], piece: Piece) -> str:
    message = said[piece] if isinstance(piece, int) else piece
    if isinstance(message, SystemMessage):
        return ""
    if isinstance(message, AiMessage) and message.tool_execution_requests:
        return CALL
    return shown(text_of(message))


def shown(text: str) -> str:
    """Return a text as it is compared."""
    return SUMMARY if WRITTEN in text else text


def compare(name: str, has_tools: bool, sent: Prompts) -> int:
    """Print a library's prompts beside ours, and return how many differ."""
    own = ours(name, has_tools)
    print(f"\n{name}: {len(sent)} calls of the library, {len(own)} of ours")
    differing = 0
    for number, (theirs, mine) in enumerate(zip(sent, own, strict=False)):
        same = theirs == mine
        differing += not same
        if number >= len(sent) - SHOWN or not same:
            print(f"  {number:3} {'same' if same else 'DIFFERS'}  {_brief(theirs)}")
            if not same:
                print(f"      ours     {_brief(mine)}")
    return differing + abs(len(sent) - len(own))


def _brief(texts: Iterable[str]) -> str:
    words = (
        each if each[:1] in "([" else "found" if each == FOUND else " ".join(each.split()[:2])[:-1]
        for each in texts
    )
    return " | ".join(words)


def langchain(name: str) -> Prompts:
    from langchain.agents import create_agent
    from langchain.agents.middleware import (
        ClearToolUsesEdit,
        ContextEditingMiddleware,
        SummarizationMiddleware,
    )
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    sent: Prompts = []

    @tool
    def look() -> str:
        """Look."""
        return FOUND

    class Recording(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "recording"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            found = answered(messages)
            return ChatResult(generations=[ChatGeneration(message=found)])

    def answered(messages: Sequence[Any]) -> AIMessage:
        if "Context Extraction Assistant" in str(messages[0].content):
            return AIMessage(content=WRITTEN)
        said = [each for each in messages if not isinstance(each, SystemMessage)]
        sent.append([_langchain_text(each) for each in said])
        if isinstance(said[-1], ToolMessage):
            return AIMessage(content=answer(turns[-1]))
        call = {"name": "look", "args": {}, "id": f"call-{turns[-1]}"}
        return AIMessage(content="", tool_calls=[call])

    turns: list[int] = []
    tokens = SETTINGS.tokens
    middleware = (
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=tokens, keep=3)])
        if name == "langchain_clear"
        else SummarizationMiddleware(Recording(), trigger=("tokens", tokens), keep=("messages", 20))
    )
    agent = create_agent(Recording(), [look], system_prompt=SYSTEM, middleware=[middleware])
    state: list[Any] = []
    for turn in range(TURNS):
        turns.append(turn)
        state = agent.invoke({"messages": [*state, HumanMessage(question(turn))]})["messages"]
    return sent


def _langchain_text(message: Any) -> str:
    return CALL if getattr(message, "tool_calls", ()) else shown(str(message.content))


def openai_agents(name: str) -> Prompts:
    from agents import (
        Agent,
        Model,
        ModelResponse,
        OpenAIResponsesCompactionSession,
        Runner,
        SQLiteSession,
        Usage,
        function_tool,
        set_tracing_disabled,
    )
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from chatmemory.strategies.openai_agents import _Responses

    sent: Prompts = []
    turns: list[int] = []

    @function_tool
    def look() -> str:
        """Look."""
        return FOUND

    class Recording(Model):
        async def get_response(
            self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
        ) -> ModelResponse:
            items = [{"role": "user", "content": input}] if isinstance(input, str) else input
            sent.append([_item(each) for each in items])
            turn = turns[-1]
            found: Any = ResponseFunctionToolCall(
                type="function_call", call_id=f"call-{turn}", name="look", arguments="{}"
            )
            if items[-1].get("type") == "function_call_output":
                found = ResponseOutputMessage(
                    id=f"msg-{turn}",
                    type="message",
                    role="assistant",
                    status="completed",
                    content=[
                        ResponseOutputText(type="output_text", text=answer(turn), annotations=[])
                    ],
                )
            return ModelResponse([found], Usage(), f"resp-{len(sent)}")

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    async def talk() -> None:
        store = SQLiteSession("beside", ":memory:")
        client = cast(Any, _Responses())
        session = OpenAIResponsesCompactionSession(
            "beside", store, client=client, compaction_mode="input"
        )
        agent = Agent("agent", instructions=SYSTEM, model=Recording(), tools=[look])
        for turn in range(TURNS):
            turns.append(turn)
            await Runner.run(agent, question(turn), session=session)

    set_tracing_disabled(True)
    asyncio.run(talk())
    return sent


def _item(item: Any) -> str:
    if item.get("type") == "function_call":
        return CALL
    if item.get("type") == "compaction":
        return shown(str(item["encrypted_content"]))
    content = item.get("output") or item.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content)
    return shown(str(content))


def _adk_text(part: Any) -> str:
    if part.function_call:
        return CALL
    if part.function_response:
        return shown(str(part.function_response.response["result"]))
    return shown(part.text or "")


def google_adk(name: str) -> Prompts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.adk.agents import LlmAgent
        from google.adk.apps.app import App, EventsCompactionConfig
        from google.adk.models.base_llm import BaseLlm
        from google.adk.models.llm_response import LlmResponse
        from google.adk.runners import InMemoryRunner
        from google.genai import types

    from chatmemory.strategies.google_adk import INTERVAL, OVERLAP

    sent: Prompts = []
    turns: list[int] = []

    def look() -> dict[str, str]:
        """Look."""
        return {"result": FOUND}

    class Recording(BaseLlm):  # type: ignore[misc]  # the library is not in every environment
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            contents = llm_request.contents
            if "CRITICAL INSTRUCTIONS" in str(contents[0].parts[0].text):
                part = types.Part(text=WRITTEN)
            else:
                sent.append([_adk_text(each.parts[0]) for each in contents])
                call = types.FunctionCall(id=f"call-{turns[-1]}", name="look", args={})
                part = types.Part(function_call=call)
                if contents[-1].parts[0].function_response:
                    part = types.Part(text=answer(turns[-1]))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    async def talk() -> None:
        config = EventsCompactionConfig(compaction_interval=INTERVAL, overlap_size=OVERLAP)
        agent = LlmAgent(
            name="agent", model=Recording(model="recording"), instruction=SYSTEM, tools=[look]
        )
        app = App(name="app", root_agent=agent, events_compaction_config=config)
        runner = InMemoryRunner(app=app)
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        for turn in range(TURNS):
            turns.append(turn)
            said = types.Content(role="user", parts=[types.Part(text=question(turn))])
            async for _ in runner.run_async(
                user_id="user", session_id=session.id, new_message=said
            ):
                pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(talk())
    return sent


def llama_index(name: str) -> Prompts:
    from llama_index.core.base.llms.types import ChatMessage as Said
    from llama_index.core.base.llms.types import ChatResponse
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms.mock import MockLLM
    from llama_index.core.memory import Memory

    sent: Prompts = []

    class Recording(MockLLM):
        def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
            sent.append([shown(str(each.content)) for each in messages if each.role != "system"])
            found = Said(role="assistant", content=answer(len(sent) - 1))
            return ChatResponse(message=found)

    tokens = SETTINGS.tokens
    memory = Memory.from_defaults(token_limit=tokens, token_flush_size=tokens // 10)
    engine = SimpleChatEngine(
        Recording(max_tokens=None), memory, [Said(role="system", content=SYSTEM)]
    )
    for turn in range(TURNS):
        engine.chat(question(turn))
    return sent


def agent_framework(name: str) -> Prompts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from agent_framework import (
            Agent,
            BaseChatClient,
            ChatResponse,
            Message,
            SlidingWindowStrategy,
        )

    sent: Prompts = []

    class Recording(BaseChatClient):  # type: ignore[misc]  # the same
        def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
            async def answered() -> ChatResponse:
                sent.append([shown(each.text) for each in messages if each.role != "system"])
                return ChatResponse(messages=[Message("assistant", [answer(len(sent) - 1)])])

            return answered()

    async def talk() -> None:
        strategy = SlidingWindowStrategy(keep_last_groups=SETTINGS.messages)
        agent = Agent(Recording(compaction_strategy=strategy), instructions=SYSTEM)
        session = agent.create_session()
        for turn in range(TURNS):
            await agent.run(question(turn), session=session)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(talk())
    return sent


AGENTS: dict[str, tuple[Callable[[str], Prompts], bool]] = {
    "langchain_summary": (langchain, True),
    "langchain_clear": (langchain, True),
    "openai_compaction": (openai_agents, True),
    "google_adk": (google_adk, True),
    "llama_index": (llama_index, False),
    "agent_framework": (agent_framework, False),
}


def main() -> None:
    """Compare all, or those that are named; exit with 1 if a prompt differs."""
    names = sys.argv[1:] or list(AGENTS)
    differing = 0
    for name in names:
        send, has_tools = AGENTS[name]
        differing += compare(name, has_tools, send(name))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
