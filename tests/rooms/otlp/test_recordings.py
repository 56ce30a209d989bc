"""Each recording of a real instrumentation: its calls and their contents."""

from __future__ import annotations

from collections import Counter

import pytest

from chatmemory.formats import render_messages
from chatmemory.formats.runs import digests_of
from chatmemory.messages.message import SystemMessage
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI, RESPONSES, answer_in, messages_in
from inspector.rooms.calls.call import DropReason, Source, Usage
from inspector.rooms.otlp.records import Record
from inspector.rooms.otlp.spans import calls_of_spans
from tests.rooms.calls.exchanges import exchanges

from .recordings import names, read, sent

SESSIONS = {
    "genai-langchain": "t-1",
    "openinference-langchain": "s-1",
    "openinference-openai-session": "desk-3",
    "pydantic-ai": "01a217db-523e-75df-be12-70a21fedafd7",
    "pydantic-ai-responses": "01a217db-5f27-76d0-80d4-50311517cb31",
}
# What is left out, by reason; a second span of each call, by the SDK of Anthropic, has none
DROPPED = {
    "genai-openai-events": {"no_messages": 3},  # the spans; the events are calls
    "genai-openai-none": {"no_messages": 3},
    "openai-v2-true": {"no_messages": 3, "per_message_events": 3},
    "openinference-openai-long": {"dropped_attributes": 1},
    "openllmetry-openai-image": {"no_messages": 1},
}
WITHOUT_CALLS = (
    *("genai-openai-none", "openai-v2-true", "openinference-openai-long"),
    "openllmetry-openai-image",
)
WITH_CALLS = [name for name in names() if name not in WITHOUT_CALLS]
# These lack the tools, or one member of their definitions
WITHOUT_TOOLS = {"openai-v2-span"}
NOT_STRICT = {"pydantic-ai", "pydantic-ai-responses"}
# Usage of the second call: with a cache read in it
USAGE = {
    "anthropic": Usage(230, 200, None, 25, None),
    "responses": Usage(150, 32, None, 40, 16),
    "": Usage(300, 64, None, 20, 7),
}


@pytest.mark.parametrize("name", names())
def test_json_and_protobuf_say_the_same(name):
    assert read(name, "json") == read(name, "pb")


@pytest.mark.parametrize("name", names())
def test_a_span_that_is_no_call_is_dropped_with_a_reason(name):
    calls, dropped = read(name)
    assert Counter(each.why.value for each in dropped) == DROPPED.get(name, {})
    assert len(calls) == (0 if name in WITHOUT_CALLS else len(sent(name)))
    assert all(each.sender for each in dropped)


@pytest.mark.parametrize("name", WITH_CALLS)
def test_model_system_messages_and_tools_are_as_they_were_sent(name):
    for call, request in zip(read(name)[0], sent(name), strict=True):
        assert call.sent.request["model"] == request["model"] == call.model
        given, wanted = (messages_in(each, call.format) for each in (call.sent.request, request))
        assert digests_of(given) == digests_of(wanted)
        assert system_of(given) == system_of(wanted)
        if name not in WITHOUT_TOOLS:
            tools = without_strict(request) if name in NOT_STRICT else request.get("tools")
            assert call.sent.request.get("tools") == tools


def system_of(messages) -> list[str]:
    return [each.text for each in messages if isinstance(each, SystemMessage)]


def without_strict(request: dict) -> list:
    """The tools of a request without the member `strict`, which may be in their functions."""

    def without(value):
        if not isinstance(value, dict):
            return value
        return {name: without(each) for name, each in value.items() if name != "strict"}

    return [without(each) for each in request["tools"]]


@pytest.mark.parametrize("name", [name for name in WITH_CALLS if name.startswith("openinf")])
def test_openinference_has_the_whole_request(name):
    if name == "openinference-langchain":
        assert not any(call.sent.is_exact for call in read(name)[0])
        return
    for call, request in zip(read(name)[0], sent(name), strict=True):
        assert call.sent.is_exact
        assert call.source is Source.OPENINFERENCE
        assert call.sent.request == request


@pytest.mark.parametrize("name", [name for name in WITH_CALLS if len(sent(name)) == 3])
def test_usage_counts_cached_tokens_in_the_input(name):
    call = read(name)[0][1]
    wanted = next(usage for kind, usage in USAGE.items() if kind in name)
    if name == "openai-v2-span":
        wanted = wanted._replace(cached=None, reasoning=None)
    received = call.received
    if name == "openllmetry-anthropic" or name == "openinference-anthropic":
        wanted = wanted._replace(written=received.usage.written or None)
    assert received.usage._replace(written=received.usage.written or None) == wanted
    assert received.finish in ("stop", "end_turn", "completed")
    assert call.session == SESSIONS.get(name, "")
    assert received.response is not None
    is_event = name == "genai-openai-events"
    assert received.duration is None if is_event else 0 < received.duration < 1


def test_tokens_written_to_the_cache_are_counted():
    (first, *_), _ = read("openllmetry-anthropic")
    assert first.received.usage == Usage(230, 0, 200, 25, None)


@pytest.mark.parametrize("name", ["genai-openai-error", "openinference-openai-error"])
def test_a_call_has_the_error_of_its_span(name):
    (call,), _ = read(name)
    assert "Error code: 400 - no" in call.received.error
    assert call.received.response is None


@pytest.mark.parametrize("name", [name for name in WITH_CALLS if not name.endswith("error")])
def test_an_answer_can_be_read(name):
    for call in read(name)[0]:
        (answer,) = answer_in(call.received.response, call.format)
        assert answer.text or answer.tool_execution_requests


def test_a_finish_has_the_word_of_its_provider():
    found = [each.received.finish for each in read("genai-anthropic")[0]]
    assert found == ["tool_use", "end_turn", "end_turn"]
    (call,) = calls_of_spans(
        [Record("01", "02", {**STOPPED, "gen_ai.request.stop_sequences": ["."]})]
    )
    assert call.received.finish == "stop"  # at the end of the turn, or by one of these


# What the conventions have no place for: documents by their address, tools that a message adds,
# system messages between others
BEYOND_GENAI = 11


def test_attributes_of_genai_have_model_system_messages_and_tools(data_file):
    """Of real requests, in the parts that an instrumentation makes of them."""
    differing, rows = [], [*exchanges(data_file("provider_exchanges.json"))]
    for row in rows:
        format, request = FORMATS[row["path"]], row["request"]
        messages = messages_in(request, format)
        given = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": format,
            "openai.api.type": format.removeprefix("openai_"),
            "gen_ai.request.model": request["model"],
            "gen_ai.tool.definitions": request.get("tools"),
            **render_messages(messages, "otel_genai").value,
        }
        (call,) = calls_of_spans([Record("01", "02", given)])
        assert call.format == format
        rebuilt = messages_in(call.sent.request, format)
        same = digests_of(rebuilt) == digests_of(messages)
        same = same and system_of(rebuilt) == system_of(messages)
        same = same and call.sent.request.get("tools", []) == (request.get("tools") or [])
        differing += [] if same and call.model == request["model"] else [row["cassette"]]
    assert len(rows) == 275
    assert len(differing) == BEYOND_GENAI, differing


FORMATS = {"/v1/chat/completions": OPENAI, "/v1/responses": RESPONSES, "/v1/messages": ANTHROPIC}
STOPPED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi."}]}]',
    "gen_ai.response.finish_reasons": ["stop"],
}


def test_a_model_of_anthropic_may_be_at_another_provider():
    value = '{"model": "m", "messages": [{"role": "user", "content": "Hi."}], "extra_headers": {}}'
    names = {"llm.provider": "aws", "llm.system": "anthropic"}
    given = {"openinference.span.kind": "LLM", "input.value": value, **names}
    (call,) = calls_of_spans([Record("01", "02", given)])
    assert (call.format, call.provider, call.sent.is_exact) == ("anthropic", "aws", True)
    assert "extra_headers" not in call.sent.request


def test_a_finish_has_one_spelling():
    calls = [read(name)[0][0] for name in ("pydantic-ai", "openinference-openai-chat")]
    found = {each.received.finish for each in calls}
    assert found == {"tool_calls"}


def test_hidden_content_is_dropped():
    hidden = '[{"role": "user", "parts": [{"type": "text"}]}]'
    spans = [
        Record("01", "02", {"openinference.span.kind": "LLM", "input.value": "__REDACTED__"}),
        Record("01", "03", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": hidden}),
    ]
    assert [each.why for each in calls_of_spans(spans)] == [DropReason.HIDDEN, DropReason.HIDDEN]
