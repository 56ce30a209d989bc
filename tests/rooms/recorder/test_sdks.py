"""The libraries of OpenAI, Anthropic and Google, and the AI SDK, through the recorder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai

from inspector.rooms.calls.call import DropReason
from inspector.rooms.calls.models import DroppedCalls, ModelCall
from inspector.rooms.calls.reads import one_call

from .answers import as_provider
from .upstream import store_all

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
PACKAGES = Path(__file__).parents[3] / ".node/node_modules"
SCHEMA = {"type": "object", "properties": {"bicycle": {"type": "integer"}}}
TEXTS = ["You help at a workshop.", "What does bicycle 41 need?"]
SYSTEM, QUESTION = TEXTS


@pytest.fixture
def upstream(upstream):
    upstream.answer = as_provider
    return upstream


def named(name: str) -> dict[str, str]:
    return {"X-Chatmemory-Conversation": name}


def chat(site: str, **options) -> None:
    made = openai.OpenAI(base_url=f"{site}/v1", api_key=KEY, max_retries=0, **options)
    call_chat(made)


def call_chat(client: openai.OpenAI) -> None:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "find", "parameters": SCHEMA}}]
    asked = {"model": "gpt-4o", "messages": messages, "tools": tools}
    made = client.chat.completions
    found = made.create(**asked, extra_headers=named("whole"))
    assert found.choices[0].message.content == "Hallo"
    events = made.create(
        **asked,
        stream=True,
        stream_options={"include_usage": True},
        extra_headers=named("streamed"),
    )
    pieces = [each.choices[0].delta.content or "" for each in events if each.choices]
    assert "".join(pieces) == "Hallo"


def azure(site: str) -> None:
    client = openai.AzureOpenAI(
        azure_endpoint=site, api_key="0123456789abcdef" * 2, api_version="2024-10-21", max_retries=0
    )
    call_chat(client)


def gemini_as_openai(site: str) -> None:
    call_chat(openai.OpenAI(base_url=f"{site}/v1beta/openai/", api_key=KEY, max_retries=0))


def responses(site: str) -> None:
    client = openai.OpenAI(base_url=f"{site}/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "name": "find", "parameters": SCHEMA, "strict": False}]
    asked = {"model": "gpt-4o", "instructions": SYSTEM, "input": QUESTION, "tools": tools}
    found = client.responses.create(**asked, extra_headers=named("whole"))
    assert found.output_text == "Hallo"
    events = client.responses.create(**asked, stream=True, extra_headers=named("streamed"))
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == "Hallo"


def messages(site: str) -> None:
    client = anthropic.Anthropic(base_url=site, api_key=f"sk-ant-api03-{'ab12' * 20}")
    asked = {
        "model": "claude-test",
        "max_tokens": 100,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": [{"name": "find", "input_schema": SCHEMA}],
    }
    found = client.messages.create(**asked, extra_headers=named("whole"))
    assert found.content[0].text == "Hallo"
    with client.messages.stream(**asked, extra_headers=named("streamed")) as events:
        assert "".join(events.text_stream) == "Hallo"


def gemini(site: str) -> None:
    for name in ("whole", "streamed"):
        options = genai.types.HttpOptions(base_url=site, headers=named(name))
        client = genai.Client(api_key=f"AIza{'Sy0aB' * 7}", http_options=options)
        function = {"name": "find", "parameters_json_schema": SCHEMA}
        config = {
            "system_instruction": SYSTEM,
            "tools": [{"function_declarations": [function]}],
            "automatic_function_calling": {"disable": True},
        }
        asked = {"model": "gemini-2.5-flash", "contents": QUESTION, "config": config}
        if name == "whole":
            assert client.models.generate_content(**asked).text == "Hallo"
        else:
            events = client.models.generate_content_stream(**asked)
            assert "".join(each.text or "" for each in events) == "Hallo"


def ai_sdk(provider: str):
    def call(site: str) -> None:
        if not PACKAGES.is_dir() and "CI" not in os.environ:
            pytest.skip("make typescript has not been run")
        script = Path(__file__).with_name("ai_sdk.mjs")
        folder = PACKAGES.parent / "recorder"  # node looks for packages above a script
        folder.mkdir(exist_ok=True)
        shutil.copy(script, folder)
        done = subprocess.run(
            ["node", script.name, site, provider],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout.strip() == '["Hallo","Hallo"]', done.stderr

    return call


LIBRARIES = {
    "openai, chat": (chat, "openai_chat"),
    "openai, responses": (responses, "openai_responses"),
    "openai, Azure": (azure, "openai_chat"),
    "openai, Gemini": (gemini_as_openai, "openai_chat"),
    "anthropic": (messages, "anthropic"),
    "google-genai": (gemini, "gemini"),
    "AI SDK, chat": (ai_sdk("chat"), "openai_chat"),
    "AI SDK, responses": (ai_sdk("responses"), "openai_responses"),
    "AI SDK, Anthropic": (ai_sdk("anthropic"), "anthropic"),
    "AI SDK, Gemini": (ai_sdk("google"), "gemini"),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_of_a_library_are_recorded_as_they_are(db, upstream, site, folder, library):
    """Whole and streamed: the same bytes reach the provider and the database."""
    call, format = LIBRARIES[library]
    call(site)
    rows = store_all(folder)
    assert [row.memory_id for row in rows] == ["whole", "streamed"]
    for row, got in zip(rows, upstream.got, strict=True):
        found = one_call(row.memory_id, row.n)
        assert found.request == json.loads(got.body)
        assert found.body == got.body
        assert (row.format, row.is_exact, row.error) == (format, True, "")
        assert (row.usage.input, row.usage.output) == (9, 2)
        assert row.finish in ("stop", "STOP", "completed", "end_turn")
        assert row.model in ("gpt-4o", "claude-test", "gemini-2.5-flash")
        assert [each.text for each in found.rows] == TEXTS
        assert [each.name for each in found.tools] == ["find"]
        assert "Hallo" in json.dumps(found.response)
    whole, streamed = (one_call(row.memory_id, row.n).response for row in rows)
    assert said_in(whole, format) == said_in(streamed, format) == "Hallo"
    assert not DroppedCalls.objects.exists()


def said_in(response: dict, format: str) -> str:
    match format:
        case "openai_chat":
            return response["choices"][0]["message"]["content"]
        case "openai_responses":
            return response["output"][0]["content"][0]["text"]
        case "anthropic":
            return response["content"][0]["text"]
    return response["candidates"][0]["content"]["parts"][0]["text"]


def test_counts_of_tokens_and_other_requests_of_libraries_are_counted(db, upstream, site, folder):
    client = anthropic.Anthropic(base_url=site, api_key=f"sk-ant-api03-{'ab12' * 20}")
    question = [{"role": "user", "content": QUESTION}]
    client.messages.count_tokens(model="claude-test", messages=question)
    assert store_all(folder) == []
    (row,) = DroppedCalls.objects.all()
    assert (row.why, row.sender) == (DropReason.PASSED, "POST /v1/messages/count_tokens")
    assert not ModelCall.objects.exists()
