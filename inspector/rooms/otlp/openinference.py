"""Reads model calls in OpenInference's conventions, from spans of the kind LLM.

The attribute `input.value` is usually the request. If it is something else, such as LangChain's
messages, the request is built from single attributes such as llm.input_messages.0.message.role.
"""

from __future__ import annotations

from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from inspector.rooms.calls.bodies import (
    ANTHROPIC,
    OPENAI,
    finish_in,
    finish_named,
    format_of_request,
    is_request,
    messages_in,
    model_in,
    session_in,
    usage_in,
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

KIND = "openinference.span.kind"
_COUNTS = (
    "prompt",
    "prompt_details.cache_read",
    "prompt_details.cache_write",
    "completion",
    "completion_details.reasoning",
)
_MEDIA = {"image": "image_url"}
_ROLES = {"model": "assistant"}  # Gemini's name
# Arguments of Anthropic's library that are not members of a request
_BESIDE = {"betas", "extra_body", "extra_headers", "extra_query", "timeout"}
_PLACES = 100_000  # of a list


def is_call(record: Record) -> bool:
    """Return whether a span is a model call. A request to count the tokens of a prompt is no model
    call.
    """
    return record.attributes.get(KIND) == "LLM" and not record.name.endswith(".count_tokens")


def read(record: Record) -> NewCall | Dropped:
    """Return the model call of a span, or the reason why it cannot be stored."""
    attributes = record.attributes
    value = attributes.get("input.value")
    request: JsonValue = decoded(value) if isinstance(value, str) else None
    provider = record.text("llm.provider", "llm.system")
    # What Gemini's library takes is not the request that it sends
    is_exact = is_request(request) and "contents" not in request
    if not is_exact:
        if why := _why_not(record):
            return Dropped(why, record.scope)
        request = _request_of_attributes(attributes)
    # The maker of the API; the models may run at another provider
    maker = record.text("llm.system") or provider or record.scope
    format = format_of_request(request, maker) if is_exact else OPENAI
    if is_exact and format == ANTHROPIC:
        request = _as_sent(request, attributes)
    if messages_in(request, format) is None and not is_exact:
        return Dropped(DropReason.UNREADABLE, record.scope)
    response = _response(attributes, is_exact, format)
    session = record.text("gen_ai.conversation.id", "session.id")
    return NewCall(
        key=record.key,
        source=Source.OPENINFERENCE,
        format=format,
        sent=SentRequest(request, is_exact=is_exact and HIDDEN not in str(value)),
        received=ReceivedAnswer(
            response,
            _usage(attributes, response, format),
            finish=finish_in(response, format) or finish_named(attributes.get("llm.finish_reason")),
            error=record.error,
            duration=record.duration,
        ),
        at=record.at,
        provider=provider,
        model=model_in(request) or record.text("llm.model_name"),
        session=session or session_in(request) or session_in({"metadata": _metadata(attributes)}),
        sender=record.scope,
    )


def _as_sent(arguments: JsonMap, attributes: JsonMap) -> JsonDict:
    """Return the request that Anthropic's library made from the arguments of a call.

    Arguments that the library sends as headers, or not at all, are left out. Headers may be secret.
    Members that the library adds, such as `stream`, are taken from the span's parameters.
    """
    request = {**_parameters(attributes), **arguments}
    if not isinstance(request.get("output_format"), dict):
        request.pop("output_format", None)
    more = request.get("extra_body")
    request |= more if isinstance(more, dict) else {}
    return {name: each for name, each in request.items() if name not in _BESIDE}


def _parameters(attributes: JsonMap) -> JsonDict:
    found = decoded(_text(attributes, "llm.invocation_parameters") or "{}")
    return found if isinstance(found, dict) else {}


def _why_not(record: Record) -> DropReason | None:
    attributes = record.attributes
    if attributes.get("input.value") == HIDDEN or HIDDEN in attributes.values():
        return DropReason.HIDDEN
    if record.lost and "input.value" not in attributes:
        return DropReason.DROPPED_ATTRIBUTES
    if not any(name.startswith("llm.input_messages.") for name in attributes):
        return DropReason.NO_MESSAGES
    return None


def _text(attributes: JsonMap, name: str) -> str:
    found = attributes.get(name)
    return found if isinstance(found, str) else ""


def _metadata(attributes: JsonMap) -> JsonValue:
    found = attributes.get("metadata")
    return decoded(found) if isinstance(found, str) else found


def _usage(attributes: JsonMap, response: JsonValue, format: str) -> Usage:
    counts = [count_in(attributes.get(f"llm.token_count.{name}")) for name in _COUNTS]
    is_counted = any(each is not None for each in counts)
    return Usage(*counts) if is_counted else usage_in(response, format)


def _response(attributes: JsonMap, is_exact: bool, format: str) -> JsonDict | None:
    """Return the provider's response, or a response built from attributes."""
    value = _text(attributes, "output.value")
    found = decoded(value) if value[:1] == "{" else None
    if is_exact and isinstance(found, dict):
        return found
    messages = _messages(attributes, "llm.output_messages.")
    if not messages or format != OPENAI:
        return None
    finish = finish_named(attributes.get("llm.finish_reason"))
    return {"choices": [{"index": 0, "message": messages[0], "finish_reason": finish}]}


def _request_of_attributes(attributes: JsonMap) -> JsonDict:
    """Build a request of chat completions from the attributes of a span."""
    parameters = _parameters(attributes)
    request = {
        name: each for name, each in parameters.items() if name != "_type" and each is not None
    }
    request.setdefault("model", request.pop("model_name", _text(attributes, "llm.model_name")))
    request.pop("model_name", None)
    request["messages"] = _messages(attributes, "llm.input_messages.")
    tools = [
        decoded(schema)
        for each in _listed(attributes, "llm.tools.")
        if isinstance(schema := _within(each, "tool").get("json_schema"), str)
    ]
    if tools and all(isinstance(each, dict) for each in tools):
        request["tools"] = tools
    return request


def _messages(attributes: JsonMap, prefix: str) -> list[JsonDict]:
    return [_message(_within(each, "message")) for each in _listed(attributes, prefix)]


def _message(attributes: JsonDict) -> JsonDict:
    """Build a message of chat completions from attributes."""
    role = attributes.get("role") or "user"
    message: JsonDict = {"role": _ROLES.get(role, role)}
    contents = [_within(each, "message_content") for each in _in_list(attributes, "contents")]
    thoughts = [each.get("text") or "" for each in contents if each.get("type") == "reasoning"]
    parts = [_part(each) for each in contents if each.get("type") != "reasoning"]
    message["content"] = parts or attributes.get("content")
    if any(thoughts):
        message["reasoning_content"] = "\n".join(filter(None, thoughts))
    calls = [_call(_within(each, "tool_call")) for each in _in_list(attributes, "tool_calls")]
    if calls:
        message["tool_calls"] = calls
    for name in ("tool_call_id", "name"):
        if isinstance(attributes.get(name), str):
            message[name] = attributes[name]
    return message


def _part(attributes: JsonDict) -> JsonDict:
    kind = attributes.get("type")
    if kind in _MEDIA:
        url = _within(_within(attributes, "image"), "image").get("url")
        return {"type": _MEDIA[kind], _MEDIA[kind]: {"url": url}}
    return {"type": "text", "text": attributes.get("text") or ""}


def _call(attributes: JsonDict) -> JsonDict:
    function = _within(attributes, "function")
    named = {"name": function.get("name"), "arguments": function.get("arguments") or "{}"}
    return {"id": attributes.get("id"), "type": "function", "function": named}


# Flat attributes: `llm.tools.2.tool.json_schema` is a member of the third item of a list


def _listed(attributes: JsonMap, prefix: str) -> list[JsonDict]:
    """Return the objects of a list that attributes spell one by one: `prefix.0.name`,
    `prefix.1.name`.
    """
    tree: JsonDict = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            *steps, last = name.removeprefix(prefix).split(".")
            inner = tree
            for step in steps:
                inner = inner.setdefault(step, {})
                if not isinstance(inner, dict):
                    break
            else:
                inner[last] = value
    return _items(tree)


def _in_list(attributes: JsonDict, name: str) -> list[JsonDict]:
    return _items(_within(attributes, name))


def _items(tree: JsonDict) -> list[JsonDict]:
    numbered = {
        int(n): each
        for n, each in tree.items()
        if n.isdecimal() and len(n) < 7 and isinstance(each, dict)
    }
    return [numbered[n] for n in sorted(numbered) if n < _PLACES]


def _within(attributes: JsonDict, name: str) -> JsonDict:
    found = attributes.get(name)
    return found if isinstance(found, dict) else {}
