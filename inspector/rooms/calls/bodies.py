"""Reads requests and responses of providers: their messages, tools and token counts.

A body is a JSON object in one of four formats: openai_chat, openai_responses, anthropic and gemini.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chatmemory.exceptions import ChatMemoryError, InvalidMessage
from chatmemory.formats import FORMATS, render_messages
from chatmemory.formats.json_properties import dict_in, text_in
from chatmemory.messages.codec import load_json
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import ChatMessage, SystemMessage
from inspector.rooms.calls.call import Usage, count_in

OPENAI, RESPONSES, ANTHROPIC = "openai_chat", "openai_responses", "anthropic"
GEMINI = "gemini"
# The members that are rendered from messages, the list first
OWN_FIELDS: Mapping[str, tuple[str, ...]] = {
    OPENAI: ("messages",),
    RESPONSES: ("input", "instructions"),
    ANTHROPIC: ("messages", "system"),
    GEMINI: ("contents", "systemInstruction"),
}
# The place of the content of an answer, which is the text and the calls of the model
_ANSWERS: Mapping[str, Sequence[str | int]] = {
    OPENAI: ("choices", 0, "message"),
    RESPONSES: ("output",),
    ANTHROPIC: ("content",),
    GEMINI: ("candidates", 0, "content"),
}
_FINISHES = {"tool_call": "tool_calls"}  # two spellings of one reason


def loaded(body: bytes) -> JsonValue:
    """Read JSON. Return None if the bytes are not JSON, or exceed the limits of all input, such as
    the depth of nesting.
    """
    try:
        return load_json(body.decode())
    except (UnicodeDecodeError, InvalidMessage):
        return None


def is_request(value: JsonValue, model: str = "") -> bool:
    """Return whether a value is a request to a model: it has messages, and it or the URL names a
    model. `model` is the model in the URL's path, or "".
    """
    if not isinstance(value, dict) or not (model or isinstance(value.get("model"), str)):
        return False
    has_messages = _is_list(value.get("messages")) or _is_list(value.get("contents"))
    return has_messages or isinstance(value.get("input"), str | list)


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def format_of_request(request: JsonMap, provider: str = "") -> str:
    """Guess the format of a request from its members, and from the name of its provider. The guess
    is never Gemini's format.
    """
    if "input" in request and "messages" not in request:
        return RESPONSES
    if "anthropic" in provider.lower():
        return ANTHROPIC
    claims = FORMATS[ANTHROPIC].claims
    return ANTHROPIC if claims is not None and claims(dict(request)) else OPENAI


def messages_in(
    request: JsonMap, format: str, after: Sequence[ChatMessage] = ()
) -> tuple[ChatMessage, ...] | None:
    """Return the messages of a request; None if they cannot be read.

    `after` are earlier messages that the provider has stored, and that this request continues. They
    are inserted after the instructions of the request.
    """
    if after:
        request = {name: each for name, each in request.items() if name != "previous_response_id"}
    if format == RESPONSES and isinstance(text := request.get("input"), str):
        request = {**request, "input": [{"role": "user", "content": text}]}
        if not text:
            return None
    messages = _read(request, format, after)
    if not after or messages is None:
        return messages
    head = int(has_instructions(request, messages))
    return (*messages[:head], *after, *messages[head:])


def has_instructions(request: JsonMap, messages: Sequence[ChatMessage]) -> bool:
    """Return whether the first of `messages` is a system message from the member `instructions` of
    the request. OpenAI's Responses API applies instructions to one request only.
    """
    return bool(request.get("instructions")) and any(
        isinstance(each, SystemMessage) for each in messages[:1]
    )


def answer_in(response: JsonMap | None, format: str) -> tuple[ChatMessage, ...] | None:
    """Return the messages of a provider's response; None if they cannot be read."""
    if not response or not content_at(response, format):
        return None
    # Some hosts leave this member out, and it does not follow from a text alone
    is_response = {"object": "response"} if format == RESPONSES else {}
    return _read({**response, **is_response}, format)


def _read(
    body: JsonMap, format: str, after: Sequence[ChatMessage] = ()
) -> tuple[ChatMessage, ...] | None:
    known = FORMATS[format]
    try:
        raw = known.find(dict(body))
        return tuple(known.parse(raw.turns, after).messages) if raw else None
    except (ChatMemoryError, RecursionError):
        return None


def made_of(messages: Iterable[ChatMessage], format: str) -> JsonDict:
    """Render messages as members of a request, such as {"messages": […]}, in the format of a
    provider.
    """
    value = render_messages(messages, format).value
    if isinstance(value, dict):
        return value
    return {OWN_FIELDS[format][0]: value}


def answer_made_of(messages: Sequence[ChatMessage], format: str) -> JsonValue:
    """Render messages as the content of a response (see `content_at`) in the format of a provider.
    None if there are no messages, or if they do not fit into one response.
    """
    if not messages:
        return None
    rendered = made_of(messages, format)[OWN_FIELDS[format][0]]
    match format:
        case "openai_responses":
            return rendered
        case "anthropic":
            return rendered[0]["content"] if len(rendered) == 1 else None
    return rendered[0] if len(rendered) == 1 else None


def content_at(response: JsonValue, format: str) -> JsonValue:
    """Return the part of a response that is the model's output, as the provider sent it; None if
    the response has no such part.
    """
    for step in _ANSWERS[format]:
        try:
            response = response[step]
        except (KeyError, IndexError, TypeError):
            return None
    return response


def with_content(response: JsonValue, format: str, content: JsonValue) -> JsonValue:
    """Return a response with its output (see `content_at`) replaced by `content`."""
    return _replaced(response, [*_ANSWERS[format]], content)


def _replaced(value: JsonValue, path: list[str | int], content: JsonValue) -> JsonValue:
    if not path:
        return content
    first, *rest = path
    if isinstance(value, dict) and first in value:
        return {**value, first: _replaced(value[first], rest, content)}
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        return [*value[:first], _replaced(value[first], rest, content), *value[first + 1 :]]
    return value


def tools_in(request: JsonMap) -> list[JsonDict]:
    """Return the tool definitions of a request, or [] if they are no list of objects."""
    tools = request.get("tools")
    return tools if isinstance(tools, list) and _is_list(tools) else []


def tool_name(definition: JsonMap) -> str:
    """Return the name of a tool, or its type if the tool has no name. For a Gemini tool that
    declares functions, return the names of the functions, separated by commas.
    """
    declared = definition.get("functionDeclarations")
    if isinstance(declared, list) and _is_list(declared):
        return ", ".join(text_in(each, "name") or "" for each in declared)
    function = dict_in(dict(definition), "function")
    return text_in(function, "name") or text_in(dict(definition), "name") or _type(definition)


def _type(definition: JsonMap) -> str:
    found = definition.get("type")
    return found if isinstance(found, str) else ""


def session_in(request: JsonMap) -> str:
    """Return the name of the conversation in a request, or "" if the request names none.

    The name is the ID of a conversation that the provider stores, or else a conversation or session
    ID in the request's metadata.
    """
    if name := provider_conversation(request):
        return name
    metadata = request.get("metadata")
    names = ("conversation_id", "session_id")
    found = [metadata.get(name) for name in names] if isinstance(metadata, dict) else []
    return next((each for each in found if isinstance(each, str) and each), "")


def provider_conversation(request: JsonMap) -> str:
    """Return the ID of the conversation that a request of OpenAI's Responses API continues, or "".

    OpenAI stores this conversation, so the model sees messages that are not in the request.
    """
    found = request.get("conversation")
    found = found.get("id") if isinstance(found, dict) else found
    return found if "input" in request and isinstance(found, str) else ""


def usage_in(response: JsonValue, format: str) -> Usage:
    """Return the token counts in a provider's response. A count that the provider did not send is
    None.
    """
    name = "usageMetadata" if format == GEMINI else "usage"
    usage = response.get(name) if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return Usage()
    if format == GEMINI:
        return _gemini_usage(usage)
    if format == ANTHROPIC:
        cached, written = (_count(usage, f"cache_{n}_input_tokens") for n in ("read", "creation"))
        fresh = _count(usage, "input_tokens")
        whole = None if fresh is None else fresh + (cached or 0) + (written or 0)
        return Usage(whole, cached, written, _count(usage, "output_tokens"))
    is_chat = format == OPENAI
    prompt, answer = ("prompt", "completion") if is_chat else ("input", "output")
    of_prompt = dict_in(usage, f"{prompt}_tokens_details")
    of_answer = dict_in(usage, f"{answer}_tokens_details")
    cached = _count(of_prompt, "cached_tokens")
    return Usage(
        _count(usage, f"{prompt}_tokens"),
        _count(usage, "prompt_cache_hit_tokens") if cached is None else cached,  # DeepSeek
        _count(of_prompt, "cache_write_tokens"),  # OpenRouter
        _count(usage, f"{answer}_tokens"),
        _count(of_answer, "reasoning_tokens"),
    )


def _gemini_usage(usage: JsonMap) -> Usage:
    names = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount")
    prompt, cached, answer = (_count(usage, name) for name in names)
    thoughts = _count(usage, "thoughtsTokenCount")
    output = None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0)
    return Usage(prompt, cached, None, output, thoughts)


def _count(usage: JsonMap, name: str) -> int | None:
    return count_in(usage.get(name))


def finish_in(response: JsonValue, format: str) -> str:
    """Return the provider's word for why an answer ended, such as `stop`; "" if the response has
    none.
    """
    if not isinstance(response, dict):
        return ""
    if format == OPENAI:
        choices = response.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        found = first.get("finish_reason") if isinstance(first, dict) else None
    elif format == ANTHROPIC:
        found = response.get("stop_reason")
    elif format == GEMINI:
        candidates = response.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        found = first.get("finishReason") if isinstance(first, dict) else None
        found = found or dict_in(response, "promptFeedback").get("blockReason")
    else:
        why = dict_in(response, "incomplete_details").get("reason")
        found = why or response.get("status")
    return finish_named(found)


def finish_named(found: JsonValue) -> str:
    return _FINISHES.get(found, found)[:64] if isinstance(found, str) else ""


def model_in(body: JsonValue) -> str:
    found = body.get("model") if isinstance(body, dict) else None
    return found[:255] if isinstance(found, str) else ""


def response_id_in(response: JsonValue, format: str) -> str:
    """Return the id by which a later request can continue a response, or ""."""
    found = response.get("id") if format == RESPONSES and isinstance(response, dict) else None
    return found if isinstance(found, str) else ""


def error_in(response: JsonValue) -> str:
    """Return the error message of a response, or "" if the response is no error."""
    error = response.get("error") if isinstance(response, dict) else None
    if isinstance(error, dict):
        found = error.get("message") or error.get("type") or ""
        return found if isinstance(found, str) else ""
    return error if isinstance(error, str) else ""
