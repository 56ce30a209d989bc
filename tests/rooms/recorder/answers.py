"""Answers of each provider in its own form, whole and as events: "Hallo", and no tool call."""

from __future__ import annotations

import json

from .upstream import answer_json, chunk

_COMPLETION = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06"}
_COUNTS = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
_TEXT = {"type": "output_text", "text": "Hallo", "annotations": []}
_ITEM = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [_TEXT],
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-4o-2024-08-06",
    "status": "completed",
    "output": [_ITEM],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 9,
        "output_tokens": 2,
        "total_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [{"type": "text", "text": "Hallo"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
_GENERATED = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "Hallo"}]},
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
    "modelVersion": "gemini-2.5-flash",
    "responseId": "r1",
}


def _completion(is_stream: bool):
    if not is_stream:
        message = {"role": "assistant", "content": "Hallo", "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**_COMPLETION, "choices": [choice], "usage": _COUNTS}
    about = {**_COMPLETION, "object": "chat.completion.chunk"}
    deltas = [{"role": "assistant", "content": "Hal"}, {"content": "lo"}, {}]
    events = [
        {**about, "choices": [{"index": 0, "delta": each, "finish_reason": None}]}
        for each in deltas
    ]
    events[-1]["choices"][0]["finish_reason"] = "stop"
    return [*events, {**about, "choices": [], "usage": _COUNTS}, "[DONE]"]


def _response(is_stream: bool):
    if not is_stream:
        return _RESPONSE
    begun = {**_RESPONSE, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0}
    part = {**place, "content_index": 0}
    empty = {**_ITEM, "status": "in_progress", "content": []}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        {"type": "response.content_part.added", **part, "part": {**_TEXT, "text": ""}},
        {"type": "response.output_text.delta", **part, "delta": "Hal", "logprobs": []},
        {"type": "response.output_text.delta", **part, "delta": "lo", "logprobs": []},
        {"type": "response.output_text.done", **part, "text": "Hallo", "logprobs": []},
        {"type": "response.content_part.done", **part, "part": _TEXT},
        {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
        {"type": "response.completed", "response": _RESPONSE},
    ]
    return [{**each, "sequence_number": n} for n, each in enumerate(events)]


def _message(is_stream: bool):
    if not is_stream:
        return _MESSAGE
    begun = {**_MESSAGE, "content": [], "stop_reason": None}
    delta = {"type": "content_block_delta", "index": 0}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {**delta, "delta": {"type": "text_delta", "text": "Hal"}},
        {**delta, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]


def _generated(is_stream: bool):
    if not is_stream:
        return _GENERATED
    return [
        {
            **_GENERATED,
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}],
        }
        for text in ("Hal", "lo")
    ] + [
        {
            **_GENERATED,
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": ""}]},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
        }
    ]


def as_provider(handler, got) -> None:
    """Answer a request as the provider of its path does."""
    path = got.path.partition("?")[0]
    request = json.loads(got.body)
    is_stream = bool(request.get("stream")) or ":stream" in path
    if path.endswith("/count_tokens"):
        answer_json(handler, {"input_tokens": 9})
        return
    made = next(make for end, make in _BY_PATH if end in path)(is_stream)
    if is_stream:
        _answer_events(handler, made, has_names="chat/completions" not in path)
    else:
        answer_json(handler, made)


_BY_PATH = (
    ("/chat/completions", _completion),
    ("/responses", _response),
    ("/messages", _message),
    ("enerateContent", _generated),
)


def _answer_events(handler, events, has_names: bool) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for each in events:
        name = each.get("type") if has_names and isinstance(each, dict) else None
        data = each if isinstance(each, str) else json.dumps(each)
        chunk(handler, f"{f'event: {name}{chr(10)}' if name else ''}data: {data}\n\n".encode())
    chunk(handler, b"")
