"""Logs of model calls, one call a line or as a list, and batches of requests. These formats are
only read.

    {"request": {…}, "response": {…}}                        a request and its answer
    {"model": …, "messages": […], "response": {…}}           the answer inside the request
    {"custom_id": …, "method": …, "url": …, "body": {…}}     input of a batch of OpenAI
    {"custom_id": …, "response": {"body": {…}}, "error": …}  output of a batch of OpenAI
    {"custom_id": …, "result": {"type": …, "message": {…}}}  output of a batch of Anthropic

Requests and answers may be in any format that this library reads. Lines with the same custom_id are
one conversation. So `cat input.jsonl output.jsonl` joins questions with their answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.exchanges import Call, format_of_calls
from chatmemory.formats.format import Refused
from chatmemory.formats.json_properties import dict_in, name_of
from chatmemory.formats.times import said_at_of
from chatmemory.formats.words import Beside
from chatmemory.messages.json_values import JsonDict, JsonValue

_MESSAGES = ("messages", "input", "contents", "prompt")
_ANSWERED = ("choices", "output", "content", "candidates", "error", "body", "message", "response")
_SESSION = ("conversation_id", "session_id", "thread_id")


def _finds(value: JsonValue) -> bool:
    return isinstance(value, dict) and _call(value) is not None


def _call(value: JsonDict) -> Call | Refused | None:
    if isinstance(value.get("custom_id"), str):
        return _of_batch(value, value["custom_id"])
    answer = _body(value.get("response"))
    request = _body(value.get("request"))
    if not isinstance(request, dict) and _is_answer(answer):
        request = {name: each for name, each in value.items() if name != "response"}
    if not isinstance(request, dict) or not any(map(request.get, _MESSAGES)):
        return None
    if answer is not None and not _is_answer(answer) and not isinstance(answer, str):
        return None
    session = _session(value) or _session(request)
    at, around = said_at_of(value) or said_at_of(answer), _around(value)
    return Call(request, answer, session, at=at, beside=around)


def _around(value: JsonDict) -> JsonDict:
    """Return the properties of a record beside its request and its response. The record's own
    properties are left out if the record is itself the request.
    """
    parts = {name: dict_in(value, name) for name in ("request", "response", "result")}
    found = {name: _BESIDE.without(each, "body") for name, each in parts.items() if "body" in each}
    if parts["result"]:
        found["result"] = _BESIDE.without(parts["result"], "message")
    is_around = "request" in value or "custom_id" in value
    return {**(_BESIDE.without(value, "body", *parts) if is_around else {}), **found}


# Properties of logs about the way to a provider. An error in place of an answer is told.
_BESIDE = Beside(
    texts=("method", "path", "endpoint", "host", "environment", "tags"),
    wholes=("headers", "error", "params", "timings"),
)


def _of_batch(value: JsonDict, id: str) -> Call | Refused | None:
    body, result = dict_in(value, "body"), dict_in(value, "result")
    answer = _body(value.get("response"))
    error = value.get("error") or result.get("error")
    if body:
        return Call(body, session=id, beside=_around(value))
    if result or answer or error:
        if not isinstance(result.get("message", {}), dict):
            return Refused(id, f"request {id}: the message of its result is not an object")
        answer = result.get("message") or answer
        return (
            Call(None, answer, id, at=said_at_of(answer), beside=_around(value))
            if answer and not error
            else Refused(id, f"request {id}: {_error_text(error)}")
        )
    return None


def _error_text(error: JsonValue) -> str:
    inner = dict_in(error, "error") or dict_in({"error": error}, "error")
    return f"the batch has an error in place of an answer: {inner.get('message') or error}"


def _body(value: JsonValue) -> JsonValue:
    """Return the body of a request or a response. The value may be the body, or an object with
    headers and the body.
    """
    body = dict_in(value, "body")
    return body or value


def _is_answer(value: JsonValue) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(_ANSWERED)


def _session(value: JsonDict) -> str | None:
    return name_of(value, *_SESSION) or name_of(dict_in(value, "metadata"), *_SESSION)


def _calls(values: Iterable[JsonValue]) -> Iterator[Call | Refused]:
    for value in values:
        if call := _call(value):
            yield call


FORMAT = format_of_calls("call_log", _finds, _calls)
