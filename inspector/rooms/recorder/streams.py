"""Joins the pieces of answers that were streamed as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from inspector.rooms.calls.bodies import ANTHROPIC, GEMINI, OPENAI, loaded

Json = JsonDict


def answer_of(body: bytes, format: str) -> tuple[Json | None, bool]:
    """Return the answer that was streamed as server-sent events, and whether the stream is
    complete. `format` is the format of the provider's API, such as "openai_chat".

    If the stream was interrupted, the answer has only the parts that arrived. The answer is None if
    no part arrived.
    """
    if format == GEMINI:
        found = loaded(body)  # the pieces are a list, if they are no events
        return _generated(found if isinstance(found, list) else [*_events(body)])
    events = [*_events(body)]
    if format == OPENAI:
        return _completion(events)
    return _message(events) if format == ANTHROPIC else _response(events)


def _events(body: bytes) -> Iterator[JsonValue]:
    """Yield the data of events: objects, and "[DONE]"."""
    for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(lines)
        if data == b"[DONE]":
            yield "[DONE]"
            continue
        found = loaded(data)  # None for a comment, or for a piece of an event that was cut
        if isinstance(found, dict):
            yield found


def _error(event: Json) -> bool:
    return isinstance(event.get("error"), dict) and "choices" not in event


# Chat completions


def _completion(events: JsonList) -> tuple[Json | None, bool]:
    found: Json = {}
    choices: dict[int, Json] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        if _error(event):
            return event, True
        found |= {
            name: each
            for name, each in event.items()
            if name not in ("choices", "object") and each is not None
        }
        for choice in _objects(event.get("choices")):
            index = choice.get("index")
            if isinstance(index, int):
                _add_choice(choices.setdefault(index, _empty_choice(index)), choice)
    if not found and not choices:
        return None, False
    is_ended = "[DONE]" in events or any(each["finish_reason"] for each in choices.values())
    whole = [choices[index] for index in sorted(choices)]
    for choice in whole:
        message = choice["message"]
        if calls := message.pop("calls", None):
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**found, "object": "chat.completion", "choices": whole}, is_ended


def _empty_choice(index: int) -> Json:
    message: Json = {"role": "assistant", "content": None}
    return {"index": index, "message": message, "finish_reason": None}


def _add_choice(known: Json, choice: Json) -> None:
    if choice.get("finish_reason"):
        known["finish_reason"] = choice["finish_reason"]
    delta = choice.get("delta")
    message = known["message"]
    for name, value in delta.items() if isinstance(delta, dict) else ():
        if name == "tool_calls":
            for call in _objects(value):
                index = call.get("index")
                calls = message.setdefault("calls", {})
                key = index if isinstance(index, int) else len(calls)
                _add_texts(calls.setdefault(key, {}), call)
        elif isinstance(value, str) and name != "role":
            message[name] = (message.get(name) or "") + value
        elif value is not None:
            message[name] = value


def _add_texts(known: Json, piece: Json) -> None:
    """Add a piece to a tool call. Arguments arrive as pieces of a text. Other members arrive as a
    whole.

    Some hosts send arguments as an object. It replaces what came before.
    """
    for name, value in piece.items():
        before = known.get(name)
        if name == "index" or value is None:
            continue
        if name == "arguments":
            are_texts = isinstance(value, str) and isinstance(before, str)
            known[name] = before + value if are_texts else value
        elif isinstance(value, dict):
            known[name] = before if isinstance(before, dict) else {}
            _add_texts(known[name], value)
        elif value != "" and not isinstance(before, dict):
            known[name] = value


def _objects(value: JsonValue) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Messages of Anthropic

_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "json",
}


def _message(events: JsonList) -> tuple[Json | None, bool]:
    found: Json | None = None
    blocks: dict[int, Json] = {}
    is_ended = False
    for event in events:
        if not isinstance(event, dict):
            continue
        index, delta = event.get("index"), event.get("delta")
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                found = {**event["message"]}
            case "content_block_start" if isinstance(index, int):
                blocks[index] = {**(event.get("content_block") or {})}
            case "content_block_delta" if isinstance(delta, dict) and index in blocks:
                _add_delta(blocks[index], delta)
            case "message_delta" if found is not None:
                found |= delta if isinstance(delta, dict) else {}
                counts = event.get("usage")
                known = {name: n for name, n in (counts or {}).items() if n is not None}
                found["usage"] = {**(found.get("usage") or {}), **known}
            case "message_stop":
                is_ended = True
            case "error":
                return event, True
    if found is None:
        return None, False
    return {**found, "content": [_whole(blocks[index]) for index in sorted(blocks)]}, is_ended


def _add_delta(block: Json, delta: Json) -> None:
    kind = str(delta.get("type"))
    if name := _PIECES.get(kind):
        piece = delta.get("partial_json" if kind == "input_json_delta" else name)
        if isinstance(piece, str):
            block[name] = (block.get(name) or "") + piece
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]


def _whole(block: Json) -> Json:
    if text := block.pop("json", None):
        found = loaded(text.encode(errors="surrogatepass"))
        block["input"] = {} if found is None else found
    return block


# Responses of OpenAI


def _response(events: JsonList) -> tuple[Json | None, bool]:
    begun: Json | None = None
    items: dict[int, Json] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        kind = str(event.get("type"))
        response, index = event.get("response"), event.get("output_index")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return (response, True) if isinstance(response, dict) else (None, True)
        if kind == "error":
            return {"error": event}, True
        if isinstance(response, dict):
            begun = response
        elif kind == "response.output_item.done" and isinstance(index, int):
            items[index] = event.get("item") or {}
    if begun is None:
        return None, False
    return {**begun, "output": [items[index] for index in sorted(items)]}, False


# Gemini


def _generated(events: JsonList) -> tuple[Json | None, bool]:
    """Return the answer of a stream whose events are answers themselves, each with the next parts.
    Return also whether the stream is complete.
    """
    found: Json = {}
    candidates: dict[int, Json] = {}
    for event in _objects(events):
        if _error(event):
            return event, True
        found |= {name: each for name, each in event.items() if name != "candidates"}
        for n, candidate in enumerate(_objects(event.get("candidates"))):
            index = candidate.get("index", n)
            if isinstance(index, int):
                _add_candidate(candidates.setdefault(index, {}), candidate)
    if not found and not candidates:
        return None, False
    if candidates:
        found = {"candidates": [candidates[index] for index in sorted(candidates)], **found}
    is_blocked = "promptFeedback" in found
    return found, is_blocked or any(each.get("finishReason") for each in candidates.values())


def _add_candidate(known: Json, piece: Json) -> None:
    known |= {name: each for name, each in piece.items() if name != "content"}
    content = piece.get("content")
    if not isinstance(content, dict):
        return
    whole = known.setdefault("content", {"parts": []})
    whole |= {name: each for name, each in content.items() if name != "parts"}
    for part in _objects(content.get("parts")):
        _add_part(whole["parts"], part)


def _add_part(parts: list[Json], part: Json) -> None:
    """Add a part. A text is joined to a text before it, but thoughts stay separate."""
    last = parts[-1] if parts else {}
    texts = last.get("text"), part.get("text")
    is_same = last.get("thought") == part.get("thought")
    if all(isinstance(each, str) for each in texts) and is_same:
        parts[-1] = {**last, **part, "text": "".join(texts)}  # type: ignore[arg-type]  # the parts of an answer are JSON
    else:
        parts.append(part)
