"""Runs the compaction of Google's Agent Development Kit: after every 5 invocations, a summary
replaces their messages. An invocation is a turn: a user message and all messages up to the next
user message.

Each summary also covers the invocation before these 5 (the overlap). The framework's own functions
compact after an invocation, and choose the messages to send.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Sequence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of its own experimental features
    from google.adk.agents import LlmAgent
    from google.adk.apps.app import App, EventsCompactionConfig
    from google.adk.apps.compaction import _run_compaction_for_sliding_window
    from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
    from google.adk.events.event import Event
    from google.adk.flows.llm_flows.contents import (
        _process_compaction_events,
        _recover_compacted_function_calls,
    )
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.sessions.in_memory_session_service import InMemorySessionService
    from google.adk.sessions.session import Session
    from google.genai import types

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.strategies.runs import Run, Sent, Settings, arguments_of, spoken
from chatmemory.strategies.summaries import WRITTEN, Summary

INTERVAL, OVERLAP = 5, 1  # invocations: the example of its documentation


def written(message: ChatMessage) -> types.Content:
    """Return a message as the content of an event of Google's Agent Development Kit."""
    text = spoken(message)
    match message:
        case AiMessage():
            said = [types.Part(text=text)] if text else []
            calls = [
                types.Part(
                    function_call=types.FunctionCall(
                        id=each.id, name=each.name, args=arguments_of(each.arguments)
                    )
                )
                for each in message.tool_execution_requests
                if each
            ]
            return types.Content(role="model", parts=[*said, *calls])
        case ToolExecutionResultMessage():
            answer = types.FunctionResponse(
                id=message.id, name=message.tool_name, response={"result": text}
            )
            return types.Content(role="user", parts=[types.Part(function_response=answer)])
    return types.Content(role="user", parts=[types.Part(text=text)])


class _Writer(BaseLlm):  # type: ignore[misc]  # the library is not in every environment
    """Replaces the model that writes summaries, and keeps its prompts."""

    model: str = "stand-in"
    prompts: list[str] = []  # a field of pydantic, which copies it for each instance

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = (part for each in llm_request.contents for part in each.parts or ())
        self.prompts.append("\n".join(part.text or "" for part in parts))
        content = types.Content(role="model", parts=[types.Part(text=WRITTEN)])
        yield LlmResponse(content=content)


class EventsCompactionRun(Run):
    """Runs `EventsCompactionConfig(compaction_interval=5, overlap_size=1)`. After every 5 turns,
    the framework summarizes these 5 turns and the turn before them.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._loop = asyncio.Runner()
        self._writer = _Writer()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = EventsCompactionConfig(
                compaction_interval=INTERVAL,
                overlap_size=OVERLAP,
                summarizer=LlmEventSummarizer(llm=self._writer),
            )
            agent = LlmAgent(name="agent", model=self._writer)
            self._app = App(name="app", root_agent=agent, events_compaction_config=config)
        self._service = InMemorySessionService()
        self._session = Session(id="run", app_name="app", user_id="user")
        self._invocation = 0
        self._sent: dict[int, int] = {}  # positions, by the ids of the events in this process

    def take(self, position: int, message: ChatMessage) -> None:
        if isinstance(message, UserMessage):
            self._invocation += 1
        event = Event(
            author="user" if isinstance(message, UserMessage) else "agent",
            invocation_id=f"invocation {self._invocation}",
            content=written(message),
            timestamp=float(position + 1),
        )
        self._sent[id(event)] = position
        self._session.events.append(event)

    def memory(self) -> Sequence[Sent]:
        events = self._session.events
        kept = _recover_compacted_function_calls(_process_compaction_events(events), events)
        numbers = {
            id(each.actions.compaction): n
            for n, each in enumerate(events)
            if each.actions.compaction
        }
        return [
            Summary(numbers[id(each.actions.compaction)])
            if each.actions.compaction
            else self._sent[id(each)]
            for each in kept
        ]

    def end_turn(self) -> None:
        self._loop.run(self._compact())
        self.billed += self._writer.prompts
        self._writer.prompts.clear()

    async def _compact(self) -> None:
        found = _run_compaction_for_sliding_window(self._app, self._session, self._service)
        async for event in found:
            self._session.events.append(event)

    def close(self) -> None:
        self._loop.close()
