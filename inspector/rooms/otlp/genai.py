"""Reads model calls in OpenTelemetry's conventions for generative AI, from a span or a log event.

The request is built from attributes, in the format of the provider. It can differ from the request
that was sent. For example, a span has no `tool_choice`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.exceptions import ChatMemoryError
from chatmemory.formats import FORMATS
from chatmemory.formats.json_properties import dict_in, text_in
from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue
from chatmemory.messages.message import ChatMessage
from inspector.rooms.calls.bodies import (
    ANTHROPIC,
    OPENAI,
    RESPONSES,
    answer_made_of,
    finish_named,
    made_of,
)
from inspector.rooms.calls.call import (
    Dropped,
    DropReason,
    NewCall,
    ReceivedAnswer,
    SentRequest,
    Source,
    Usage,
    count_in,
)
from inspector.rooms.otlp.records import HIDDEN, Record

OPERATIONS = ("chat", "text_completion", "generate_content")
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
# The types of parts that are useless without this member
_SAYING = {"text": "content", "reasoning": "content", "thinking": "content"}
# Parameters of a request by their attributes
_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "choice.count": "n",
    "stream": "stream",
}
_ANTHROPIC_FINISHES = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_USAGE = {
    "cached": ("cache_read.input_tokens",),
    "written": ("cache_write.input_tokens", "cache_creation.input_tokens"),
    "reasoning": ("reasoning.output_tokens", "reasoning_tokens", "details.reasoning_tokens"),
}


def is_call(record: Record) -> bool:
    return record.attributes.get("gen_ai.operation.name") in OPERATIONS


def has_messages(record: Record) -> bool:
    return bool(record.attributes.get(INPUT))


def read(record: Record) -> NewCall | Dropped:
    """Return the model call of a span or log event, or the reason why it cannot be stored."""
    attributes = record.attributes
    turns = _list(attributes.get(INPUT))
    if not turns:
        if record.lost and INPUT not in attributes:
            return Dropped(DropReason.DROPPED_ATTRIBUTES, record.scope)
        return Dropped(DropReason.NO_MESSAGES, record.scope, record.key)
    if _is_hidden(turns):
        return Dropped(DropReason.HIDDEN, record.scope)
    format = format_of(record)
    try:
        messages = _messages(_list(attributes.get(SYSTEM)), _with_matching_ids(turns))
        model = record.text("gen_ai.request.model")
        request: JsonDict = {"model": model}
        request |= made_of(messages, format)
        answered = _messages([], _list(attributes.get(OUTPUT)))
        tools = [
            _tool(each, format) for each in _list(attributes.get(TOOLS)) if isinstance(each, dict)
        ]
    except (ChatMemoryError, RecursionError, KeyError, TypeError, AttributeError):
        return Dropped(DropReason.UNREADABLE, record.scope)
    if tools:
        request["tools"] = tools
    request |= _parameters(attributes, format)
    finish = _finish(attributes, format)
    return NewCall(
        key=record.key,
        source=Source.GENAI,
        format=format,
        sent=SentRequest(request, is_exact=False),
        received=ReceivedAnswer(
            response_of(answered, format, attributes, finish) if answered else None,
            usage_of(attributes),
            finish=finish,
            error=record.error or str(attributes.get("error.type") or ""),
            duration=record.duration,
        ),
        at=record.at,
        provider=provider_of(record),
        model=model,
        session=record.text("gen_ai.conversation.id", "session.id"),
        sender=record.scope,
    )


def provider_of(record: Record) -> str:
    return record.text("gen_ai.provider.name", "gen_ai.system")


def format_of(record: Record) -> str:
    """Return the format of a model call in a span or log event: that of Anthropic, of OpenAI's
    Responses API, or of chat completions.
    """
    if "anthropic" in provider_of(record):
        return ANTHROPIC
    is_new = record.text("gen_ai.response.id").startswith("resp_")
    return RESPONSES if is_new or record.text("openai.api.type") == "responses" else OPENAI


def _finish(attributes: JsonMap, format: str) -> str:
    """Return why an answer ended, in the provider's own word where this is clear."""
    found = finish_named(next(iter(_list(attributes.get("gen_ai.response.finish_reasons"))), ""))
    if format != ANTHROPIC or (found == "stop" and attributes.get("gen_ai.request.stop_sequences")):
        return found
    return _ANTHROPIC_FINISHES.get(found, found)


def usage_of(attributes: JsonMap) -> Usage:
    def count(*names: str) -> int | None:
        found = (count_in(attributes.get(f"gen_ai.usage.{name}")) for name in names)
        return next((each for each in found if each is not None), None)

    return Usage(
        count("input_tokens"),
        count(*_USAGE["cached"]),
        count(*_USAGE["written"]),
        count("output_tokens"),
        count(*_USAGE["reasoning"]),
    )


def response_of(
    answered: Sequence[ChatMessage], format: str, attributes: JsonMap, finish: str
) -> JsonDict:
    """Build a response in the `format` of the provider from `answered`, the messages of the answer.
    `finish` is why the answer ended, such as "stop".

    `attributes` are those of the span or log event. The response takes its ID and model from them.
    """
    about = {
        "id": attributes.get("gen_ai.response.id"),
        "model": attributes.get("gen_ai.response.model"),
    }
    about = {name: value for name, value in about.items() if isinstance(value, str)}
    content = answer_made_of(answered, format)
    if format == OPENAI:
        return {**about, "choices": [{"index": 0, "message": content, "finish_reason": finish}]}
    if format == ANTHROPIC:
        return {**about, "role": "assistant", "content": content, "stop_reason": finish}
    return {**about, "output": content}


def _messages(system: JsonList, turns: JsonList) -> tuple[ChatMessage, ...]:
    """Return the messages of system instructions and turns in these conventions. Raises
    ChatMemoryError.
    """
    if not turns:
        return ()
    turns = [_without_extras(each) for each in turns]
    value = {INPUT: turns, **({SYSTEM: system} if system else {})}
    otel = FORMATS["otel_genai"]
    raw = otel.find(value)
    return tuple(otel.parse(raw.turns, ()).messages) if raw else ()


def _without_extras(turn: JsonValue) -> JsonValue:
    """Return a turn without the members that some instrumentations add, such as why it ended."""
    if not isinstance(turn, dict):
        return turn
    left_out = {"finish_reason"} | ({"name"} if turn.get("name") is None else set())
    left_out |= {"name"} if turn.get("role") == "tool" else set()
    return {name: each for name, each in turn.items() if name not in left_out}


def _list(value: JsonValue) -> JsonList:
    """Return the list in an attribute, which can be a list or JSON text."""
    value = decoded(value) if isinstance(value, str) else value
    return value if isinstance(value, list) else []


def _is_hidden(turns: JsonList) -> bool:
    """Return whether the app has hidden contents: whether a part has no content."""
    parts = [part for turn in turns if isinstance(turn, dict) for part in _parts(turn)]
    return any(
        (needed := _SAYING.get(str(part.get("type")))) is not None
        and (part.get(needed) is None or part.get(needed) == HIDDEN)
        for part in parts
    )


def _parts(turn: JsonDict) -> list[JsonDict]:
    parts = turn.get("parts")
    return [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []


def _with_matching_ids(turns: JsonList) -> JsonList:
    """Return turns in which each tool result has the ID of its call. Some instrumentations send
    another ID. Then results are matched to calls by their order.
    """
    parts = [part for turn in turns if isinstance(turn, dict) for part in _parts(turn)]
    calls = [part.get("id") for part in parts if part.get("type") == "tool_call"]
    results = [part.get("id") for part in parts if part.get("type") == "tool_call_response"]
    others = [id for id in results if id not in calls]
    if not others or len(calls) < len(results) or set(calls) & set(results):
        return turns
    ids = dict(zip(calls, results, strict=False))

    def renamed(part: JsonValue) -> JsonValue:
        is_call = isinstance(part, dict) and part.get("type") == "tool_call"
        return {**part, "id": ids.get(part.get("id"), part.get("id"))} if is_call else part

    return [
        {**turn, "parts": [renamed(each) for each in turn["parts"]]} if "parts" in turn else turn
        for turn in turns
    ]


def _tool(definition: JsonDict, format: str) -> JsonDict:
    """Return the definition of a tool in the provider's format. A definition that has this format
    already is not changed.
    """
    function = dict_in(definition, "function") or definition
    is_own = {
        ANTHROPIC: "input_schema" in definition,
        OPENAI: function is not definition,
        RESPONSES: function is definition and "type" in definition,
    }
    name = text_in(function, "name")
    schema = function.get("parameters") or function.get("input_schema")
    if is_own[format] or name is None or schema is None:
        return definition
    members = ("description",) if format == ANTHROPIC else ("description", "strict")
    tool = {"name": name, **{each: function[each] for each in members if each in function}}
    if format == ANTHROPIC:
        return {**tool, "input_schema": schema}
    tool["parameters"] = schema
    if format == RESPONSES:
        return {"type": "function", **tool}
    return {"type": "function", "function": tool}


def _parameters(attributes: JsonMap, format: str) -> JsonDict:
    found = {
        name: attributes[f"gen_ai.request.{attribute}"]
        for attribute, name in _PARAMETERS.items()
        if attributes.get(f"gen_ai.request.{attribute}") is not None
    }
    stops = attributes.get("gen_ai.request.stop_sequences")
    if isinstance(stops, list) and stops:
        found["stop_sequences" if format == ANTHROPIC else "stop"] = stops
    if format == RESPONSES and "max_tokens" in found:
        found["max_output_tokens"] = found.pop("max_tokens")
    return found
