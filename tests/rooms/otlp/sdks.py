"""Apps that call a model with a real SDK under a real instrumentation.

Each app has the same conversation of two questions: the model calls two tools and answers, and gets
a second question. The provider is a function behind the SDK's own HTTP client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync

SYSTEM = "You help at a ferry port. Prices are in €."
QUESTIONS = ("When does the ferry to Brač leave, and is it late?", "Thanks 🙂 And tomorrow?")
RESULTS = {"departures": '{"at": ["18:40", "21:00"]}', "delays": 'none; "calm sea"'}
LOOKING = "I look that up."
ANSWERS = ("At 18:40, and it is on time.", "At 18:40 as well.")
# A model spells arguments as it likes, and may have none
ARGUMENTS = {"departures": '{"port":"Bra\\u010d", "count": 2.0}', "delays": "{}"}
PORT = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "count": {"type": "number"}},
    "required": ["port", "count"],
}
SCHEMAS = {"departures": PORT, "delays": {"type": "object", "properties": {}}}
DESCRIPTIONS = {"departures": "When ferries leave.", "delays": "Which are late."}
OPENAI_MODEL, ANTHROPIC_MODEL = "gpt-4o-mini", "claude-of-the-tests"
FINISHES = {
    "openai_chat": ["tool_calls", "stop", "stop"],
    "anthropic": ["tool_use", "end_turn", "end_turn"],
}
SECRET = "for-no-one-else"
SETTINGS = {"temperature": 0.5, "max_tokens": 300}


class Provider:
    """Answers as OpenAI and Anthropic do, and keeps the bodies that it got."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def answer(self, request: Any) -> Any:
        import httpx2

        if request.url.path.endswith("/count_tokens"):
            return httpx2.Response(200, json={"input_tokens": 8})
        self.sent.append(json.loads(request.content))
        make = _of_anthropic if request.url.path.endswith("/messages") else _of_openai
        return httpx2.Response(200, json=make(len(self.sent)))

    async def answer_later(self, request: Any) -> Any:
        return self.answer(request)

    def transport(self) -> Any:
        import httpx2

        return httpx2.MockTransport(self.answer)


def _of_openai(n: int) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": ANSWERS[n - 2], "refusal": None}
    if n == 1:
        calls = [
            {
                "id": f"call_{name}",
                "type": "function",
                "function": {"name": name, "arguments": each},
            }
            for name, each in ARGUMENTS.items()
        ]
        said |= {"content": LOOKING, "tool_calls": calls}
    finish = "tool_calls" if n == 1 else "stop"
    return {
        "id": f"chatcmpl-{n}",
        "object": "chat.completion",
        "created": 1_790_000_000 + n,
        "model": f"{OPENAI_MODEL}-2024-07-18",
        "choices": [{"index": 0, "message": said, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 100 * n, "completion_tokens": 20, "total_tokens": 100 * n + 20},
    }


def _of_anthropic(n: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": LOOKING if n == 1 else ANSWERS[n - 2]}
    ]
    if n == 1:
        content += [
            {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": json.loads(each)}
            for name, each in ARGUMENTS.items()
        ]
    return {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": ANTHROPIC_MODEL,
        "content": content,
        "stop_reason": "tool_use" if n == 1 else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100 * n, "output_tokens": 20},
    }


# Apps


def ask_openai(provider: Provider) -> None:
    """With the library of OpenAI, by chat completions."""
    import httpx2
    import openai

    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": DESCRIPTIONS[name], "parameters": schema},
        }
        for name, schema in SCHEMAS.items()
    ]
    messages: list[Any] = [{"role": "system", "content": SYSTEM}]
    with (
        httpx2.Client(transport=provider.transport()) as http,
        openai.OpenAI(api_key="none", base_url="http://openai/v1", http_client=http) as client,
    ):
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            while messages[-1]["role"] != "assistant" or "tool_calls" in messages[-1]:
                completion = client.chat.completions.create(
                    model=OPENAI_MODEL, messages=messages, tools=tools, **SETTINGS
                )
                said = completion.choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                messages += [
                    {
                        "role": "tool",
                        "tool_call_id": call.id,
                        "content": RESULTS[call.function.name],
                    }
                    for call in said.tool_calls or ()
                ]


def ask_anthropic(provider: Provider) -> None:
    """With the library of Anthropic, by messages."""
    import anthropic
    import httpx2

    tools = [
        {"name": name, "description": DESCRIPTIONS[name], "input_schema": schema}
        for name, schema in SCHEMAS.items()
    ]
    messages: list[Any] = []
    with (
        httpx2.Client(transport=provider.transport()) as http,
        anthropic.Anthropic(
            api_key="none", base_url="http://anthropic", http_client=http
        ) as client,
    ):
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            while messages[-1]["role"] != "assistant":
                said = client.messages.create(
                    model=ANTHROPIC_MODEL,
                    system=SYSTEM,
                    messages=messages,
                    tools=tools,
                    max_tokens=300,
                )
                messages.append({"role": "assistant", "content": said.content})
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": RESULTS[block.name],
                    }
                    for block in said.content
                    if block.type == "tool_use"
                ]
                messages += [{"role": "user", "content": results}] if results else []


def ask_anthropic_in_other_ways(provider: Provider) -> None:
    """With arguments of Anthropic's library that are not members of a request, and counting."""
    import anthropic
    import httpx2

    asked: Any = {"model": ANTHROPIC_MODEL, "messages": [{"role": "user", "content": QUESTIONS[0]}]}
    limit = {"max_tokens": 300}
    beside = {"extra_headers": {"X-Secret": SECRET}, "extra_query": {"secret": SECRET}}
    with (
        httpx2.Client(transport=provider.transport()) as http,
        anthropic.Anthropic(
            api_key="none", base_url="http://anthropic", http_client=http
        ) as client,
    ):
        client.messages.count_tokens(**asked)
        client.messages.create(
            **asked, **limit, **beside, timeout=10, extra_body={"temperature": 0.5}
        )
        client.beta.messages.create(**asked, **limit, betas=["a-beta-2026-01-01"])
        with pytest.raises(ValueError, match="JSON"):  # the answer is no list
            client.messages.parse(**asked, **limit, output_format=list[str])


def departures(port: str, count: float) -> str:
    """When ferries leave."""
    return RESULTS["departures"]


def delays() -> str:
    """Which are late."""
    return RESULTS["delays"]


def ask_langchain(provider: Provider) -> None:
    """With an agent of LangChain."""
    import httpx2
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    with httpx2.Client(transport=provider.transport()) as http:
        model = ChatOpenAI(
            model=OPENAI_MODEL,
            api_key="none",
            base_url="http://openai/v1",
            http_client=http,
            **SETTINGS,
        )
        agent = create_agent(model, [departures, delays], system_prompt=SYSTEM)
        messages: list[Any] = []
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            messages = agent.invoke({"messages": messages})["messages"]


def ask_pydantic_ai(provider: Provider) -> None:
    """With an agent of Pydantic AI."""
    import httpx2
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    @async_to_sync
    async def run() -> None:
        async with httpx2.AsyncClient(
            transport=httpx2.MockTransport(provider.answer_later)
        ) as http:
            known = OpenAIProvider(base_url="http://openai/v1", api_key="none", http_client=http)
            agent: Any = Agent(
                OpenAIChatModel(OPENAI_MODEL, provider=known),
                instructions=SYSTEM,
                tools=[departures, delays],
                model_settings=SETTINGS,
            )
            history: Any = None
            for question in QUESTIONS:
                history = (await agent.run(question, message_history=history)).all_messages()

    run()


# Instrumentations


@contextmanager
def instrumented(name: str, provider: Any) -> Iterator[None]:
    """An instrumentation that sends its spans to a provider of tracers, until the end."""
    if name == "pydantic-ai":
        from pydantic_ai import Agent, InstrumentationSettings

        Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
        try:
            yield
        finally:
            Agent.instrument_all(False)
        return
    instrumentor = _instrumentor(name)
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()


def _instrumentor(name: str) -> Any:
    match name:
        case "genai-openai":
            from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

            return OpenAIInstrumentor()
        case "genai-anthropic":
            from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

            return AnthropicInstrumentor()
        case "genai-langchain":
            from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

            return LangChainInstrumentor()
        case "openinference-openai":
            from openinference.instrumentation import openai

            return openai.OpenAIInstrumentor()
        case "openinference-anthropic":
            from openinference.instrumentation import anthropic

            return anthropic.AnthropicInstrumentor()
    from openinference.instrumentation import langchain

    return langchain.LangChainInstrumentor()


APPS = {
    "genai-openai": ask_openai,
    "genai-anthropic": ask_anthropic,
    "genai-langchain": ask_langchain,
    "openinference-openai": ask_openai,
    "openinference-anthropic": ask_anthropic,
    "openinference-langchain": ask_langchain,
    "pydantic-ai": ask_pydantic_ai,
}
