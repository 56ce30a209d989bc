"""In every format, all text of a file is in a message, or its place is reported as a loss.

Files are made of each format's own shapes, and then one thing is moved, cut or left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    Reading,
    read_transcripts,
    readable_formats,
    render_messages,
    two_way_formats,
    words,
)
from chatmemory.messages.message import text_of

from ..properties import examples

CALL = ToolExecutionRequest("c1", "find", '{"what": "saffron"}')
CONVERSATION = [
    SystemMessage("Talk of Valencia."),
    UserMessage("Which spice is it?"),
    AiMessage("Let me look.", [CALL], "Surely yellow"),
    ToolExecutionResultMessage("c1", "find", "crocus stamens"),
    AiMessage("It is saffron."),
]
SAID = [
    *("Talk of Valencia.", "Which spice is it?", "Let me look.", "Surely yellow", "saffron"),
    *("crocus stamens", "It is saffron."),
]
OTHER_NAMES = ("value", "text", "content", "body", "parts", "message", "reasoning", "x_words")
RECORDS = [name for name, each in readable_formats().items() if each.is_record]


def words_of(message: ChatMessage) -> str:
    if not isinstance(message, AiMessage):
        return text_of(message)
    calls = (call.arguments or "" for call in message.tool_execution_requests if call)
    return "\n".join([message.text or "", message.thinking or "", *calls])


def stored_text(reading: Reading) -> str:
    messages = (message for each in reading.transcripts for message in each.messages)
    summaries = (
        each.session.messages[place]
        for each in reading.transcripts
        if each.session
        for place in each.session.summaries
    )
    return "\n".join(map(words_of, (*messages, *summaries)))


def places(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each property of a JSON value that has text: its object and its name."""
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str) and any(said in each for said in SAID):
                yield value, name
            yield from places(each)
    elif isinstance(value, list):
        for each in value:
            yield from places(each)


def is_reported(reading: Reading) -> bool:
    """Return whether something is refused, or a loss names a place where words were not read."""
    losses = [loss for each in reading.transcripts for loss in each.losses]
    is_named = any("not read" in loss.what and loss.place for loss in losses)
    return bool(reading.refused) or is_named or any("the property" in loss.what for loss in losses)


@examples(60)
@pytest.mark.parametrize("format", two_way_formats())
@given(given=st.data())
def test_text_under_another_name_is_read_or_reported(format, given):
    value = json.loads(json.dumps(render_messages(CONVERSATION, format).value))
    before = [said for said in SAID if said in json.dumps(value, ensure_ascii=False)]
    holder, name = given.draw(st.sampled_from([*places(value)]))
    names = [each for each in OTHER_NAMES if each not in holder]
    holder[given.draw(st.sampled_from(names))] = holder.pop(name)
    try:
        reading = read_transcripts(json.dumps(value))
    except UnreadableTranscript:
        return
    found = stored_text(reading)
    assert all(said in found or is_reported(reading) for said in before)


@examples(60)
@pytest.mark.parametrize("format", two_way_formats())
@given(given=st.data())
def test_text_in_unknown_properties_is_kept_or_reported(format, given):
    value = json.loads(json.dumps(render_messages(CONVERSATION, format).value))
    holder, _ = given.draw(st.sampled_from([*places(value)]))
    more: Any = given.draw(
        st.sampled_from(
            ["It grows in Spain", ["It grows in Spain"], [{"text": "It grows in Spain"}]]
        )
    )
    holder[given.draw(st.sampled_from(("reasoning_text", "x_words", "thoughts")))] = more
    try:
        reading = read_transcripts(json.dumps(value))
    except UnreadableTranscript:
        return
    assert "It grows in Spain" in stored_text(reading) or is_reported(reading)


@pytest.mark.parametrize(
    ("budget", "missing"),
    [(10_000, []), (0, ["may not be read: the conversation is too long to search all of it"])],
)
def test_words_that_are_not_searched_for_everywhere_are_not_reported_as_lost(
    monkeypatch, budget, missing
):
    monkeypatch.setattr(words, "LOOKED_THROUGH", budget)
    turns = [{"role": "user", "content": f"It grows in place {n}"} for n in range(20)]
    turns[0]["x_words"] = "place 9"
    (read,) = read_transcripts(json.dumps({"messages": turns})).transcripts
    losses = [each.what for each in read.losses if each.where == "message 1"]
    assert losses == [f"words under 'x_words', which {each}" for each in missing]


# Sessions of agents: each of these makes a record that says a text, the n-th of its file


def claude_code(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    record = {"uuid": f"r{n}", "parentUuid": parent, "sessionId": "s", "type": kind}
    match kind:
        case "user":
            return {**record, "message": {"role": "user", "content": text}}
        case "assistant":
            block = {"type": "text", "text": text}
            return {**record, "message": {"id": f"m{n}", "role": kind, "content": [block]}}
        case "call":
            block = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"what": text}}
            message = {"id": f"m{n}", "role": "assistant", "content": [block]}
            return {**record, "type": "assistant", "message": message}
        case "result":
            block = {"type": "tool_result", "tool_use_id": f"c{n - 1}", "content": text}
            return {**record, "type": "user", "message": {"role": "user", "content": [block]}}
        case "queued":
            about = {"type": "queued_command", "prompt": text}
            return {**record, "type": "attachment", "attachment": about}
    return {**record, "type": "progress", "data": {"type": "hook_progress"}}


def codex(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    match kind:
        case "user" | "assistant":
            part = {"type": "input_text" if kind == "user" else "output_text", "text": text}
            item: dict[str, Any] = {"type": "message", "role": kind, "content": [part]}
        case "call":
            arguments = json.dumps({"what": text})
            item = {"type": "function_call", "call_id": f"c{n}", "name": "look"}
            item["arguments"] = arguments
        case "result":
            item = {"type": "function_call_output", "call_id": f"c{n - 1}", "output": text}
        case "queued":
            return {"type": "event_msg", "payload": {"type": "user_message", "message": text}}
        case _:
            return {"type": "turn_context", "payload": {"cwd": "/w"}}
    return {"type": "response_item", "payload": item}


def openhands(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    event = {"id": str(n), "source": "user" if kind in ("user", "queued") else "agent"}
    said = {"role": "user", "content": [{"type": "text", "text": text}]}
    match kind:
        case "user" | "queued":
            return {**event, "kind": "MessageEvent", "llm_message": said}
        case "assistant":
            return {**event, "kind": "MessageEvent", "llm_message": {**said, "role": "assistant"}}
        case "call":
            call = {"function": {"name": "look", "arguments": json.dumps({"what": text})}}
            return {**event, "kind": "ActionEvent", "tool_call_id": f"c{n}", "tool_call": call}
        case "result":
            given = {"content": [{"type": "text", "text": text}]}
            about = {"tool_call_id": f"c{n - 1}", "observation": given}
            return {**event, "kind": "ObservationEvent", **about}
    return {**event, "kind": "ConversationStateUpdateEvent"}


def gemini_cli(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    head = {} if n else {"sessionId": "s", "projectHash": "h"}
    record = {**head, "id": f"r{n}", "type": "user", "content": [{"text": text}]}
    call = {"id": f"c{n}", "name": "look", "status": "success", "args": {}}
    response = {"functionResponse": {"name": "look", "response": {"output": text}}}
    match kind:
        case "user" | "queued":
            return record
        case "assistant":
            return {**record, "type": "gemini", "content": text}
        case "call":
            return {
                **record,
                "type": "gemini",
                "content": "",
                "toolCalls": [{**call, "args": [text]}],
            }
        case "result":
            calls = [{**call, "result": [response]}]
            return {**record, "type": "gemini", "content": "", "toolCalls": calls}
    return {**head, "$set": {"lastUpdated": "later"}}


def qwen_code(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    record = {"uuid": f"r{n}", "parentUuid": parent, "sessionId": "s"}
    call = {"functionCall": {"id": f"c{n}", "name": "look", "args": {"what": text}}}
    response = {"id": f"c{n - 1}", "name": "look", "response": {"output": text}}
    types = {"queued": "user", "call": "assistant", "result": "tool_result"}
    parts = {"call": call, "result": {"functionResponse": response}}
    if kind == "state":
        return {**record, "type": "system", "subtype": "ui_telemetry"}
    type = types.get(kind, kind)
    role = "model" if type == "assistant" else "user"
    message = {"role": role, "parts": [parts.get(kind, {"text": text})]}
    return {**record, "type": type, "message": message}


def copilot_cli(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    call = {"toolCallId": f"c{n}", "name": "look", "arguments": {"what": text}}
    events: dict[str, tuple[str, dict[str, Any]]] = {
        "user": ("user.message", {"content": text}),
        "queued": ("user.message", {"content": text, "delivery": "queued"}),
        "assistant": ("assistant.message", {"messageId": f"m{n}", "content": text}),
        "call": (
            "assistant.message",
            {"messageId": f"m{n}", "content": "", "toolRequests": [call]},
        ),
        "result": (
            "tool.execution_complete",
            {"toolCallId": f"c{n - 1}", "success": True, "result": {"content": text}},
        ),
        "state": ("session.usage_info", {"tokenLimit": 9}),
    }
    type, data = events[kind]
    return {"type": type, "data": data, "id": f"r{n}", "parentId": parent}


def cursor(n: int, kind: str, text: str, parent: str | None) -> dict[str, Any]:
    blocks = {
        "call": {"type": "tool_use", "name": "look", "input": {"what": text}},
        "result": {"type": "tool_result", "content": text},
    }
    if kind == "state":
        return {"type": "turn_ended", "status": "success"}
    role = "assistant" if kind in ("assistant", "call") else "user"
    block = blocks.get(kind, {"type": "text", "text": text})
    return {"role": role, "message": {"content": [block]}}


MADE = {
    "claude_code": claude_code,
    "codex": codex,
    "copilot_cli": copilot_cli,
    "cursor": cursor,
    "gemini_cli": gemini_cli,
    "openhands": openhands,
    "qwen_code": qwen_code,
}
KINDS = ("user", "assistant", "call", "result", "queued", "state")


def test_each_format_of_records_is_made_here():
    assert sorted(MADE) == sorted(RECORDS)


@st.composite
def sessions(draw: Any, format: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return records, in Claude Code with any parents, and their texts."""
    kinds = ["user", *draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=10))]
    records, said = [], []
    for n, kind in enumerate(kinds):
        text = f"words{'abcdefghijk'[n]} of record {n}"
        parents = st.sampled_from([f"r{n - 1}", f"r{n - 1}", "never written", None, "any"])
        parent = draw(parents) if n else None
        if parent == "any":
            parent = f"r{draw(st.integers(0, n - 1))}"
        records.append(MADE[format](n, kind, text, parent))
        said += [] if kind == "state" else [text]
    return records, said


@examples(150)
@pytest.mark.parametrize("format", RECORDS)
@given(given=st.data())
def test_text_in_a_session_is_read_or_reported(format, given):
    records, said = given.draw(sessions(format))
    reading = read_transcripts("\n".join(map(json.dumps, records)), format)
    assert reading.refused == ()
    found = stored_text(reading)
    losses = [loss.what for each in reading.transcripts for loss in each.losses]
    missing = [text for text in said if text not in found]
    told = [loss for loss in losses if "not on the path" in loss]
    assert not missing or told == [
        f"messages that are not on the path to the last message ({len(missing)})"
    ]


@examples(100)
@pytest.mark.parametrize("format", RECORDS)
@given(given=st.data())
def test_a_bad_line_is_named_and_the_others_are_one_session(format, given):
    records = [MADE[format](n, KINDS[n % 4], f"words of {n}", f"r{n - 1}") for n in range(6)]
    records[0]["parentUuid"] = None
    lines = [*map(json.dumps, records)]
    bad = given.draw(st.sampled_from(["null", "[]", '"x"', lines[3][:-9], "{}", "\0\0", "no json"]))
    place = given.draw(st.integers(1, len(lines)))
    content = "\n".join([*lines[:place], bad, *lines[place:]])
    reading = read_transcripts(content.encode() + b"\n")
    assert reading.format == format
    assert [each.where for each in reading.refused] == [f"line {place + 1}"]
    (whole,) = read_transcripts("\n".join(lines)).transcripts
    (found,) = reading.transcripts
    assert found.messages == whole.messages


def test_items_that_only_events_of_codex_have_are_read_once():
    def event(**payload: Any) -> dict[str, Any]:
        return {"type": "event_msg", "payload": payload}

    about = {"call_id": "c1", "command": ["ls"], "aggregated_output": "notes.txt"}
    answered = {"type": "AgentMessage", "content": [{"type": "Text", "text": "Done."}]}
    records = [
        *([event(type="user_message", message="yes")] * 2),
        event(type="exec_command_end", **about),
        event(type="agent_message", message="Done."),
        event(type="item_completed", item=answered),
    ]
    (found,) = read_transcripts("\n".join(map(json.dumps, records))).transcripts
    assert [*map(words_of, found.messages)] == [
        *("yes", "yes", '\n\n{"command": ["ls"]}', "notes.txt", "Done.\n"),
    ]


@pytest.mark.parametrize("format", RECORDS)
def test_a_line_that_is_no_utf8_is_named(format):
    made = FORMATS[format] and MADE[format]
    lines = [json.dumps(made(n, "user", f"words of {n}", None)).encode() for n in range(3)]
    cut = '{"type": "user", "text": "caffè'.encode()[:-1]
    reading = read_transcripts(b"\n".join([*lines, cut]))
    assert [each.where for each in reading.refused] == ["line 4"]
    assert sum(len(each.messages) for each in reading.transcripts) == 3


@pytest.mark.parametrize("format", RECORDS)
def test_a_session_in_which_nobody_speaks_is_refused(format):
    lines = [json.dumps(MADE[format](n, "state", "", None)) for n in range(3)]
    if format == "codex":
        lines.insert(0, json.dumps({"type": "session_meta", "payload": {"id": "s"}}))
    if format == "openhands":
        more = {"id": "9", "source": "agent", "kind": "Condensation", "forgotten_event_ids": []}
        lines.append(json.dumps(more))
    if format == "cursor":
        lines.append(json.dumps({"role": "user", "message": {"content": []}}))
    (refused,) = read_transcripts("\n".join(lines)).refused
    assert refused.why.startswith("it has no message with content")


def test_an_answer_that_goes_on_later_is_found_although_nothing_else_is_searched(monkeypatch):
    monkeypatch.setattr(words, "LOOKED_THROUGH", -1)
    kinds = ["user", "assistant", *["state"] * 9, "assistant", "user"]
    records = [
        claude_code(n, kind, f"Place {n} of it", f"r{n - 1}" if n else None)
        for n, kind in enumerate(kinds)
    ]
    for each in (records[1], records[11]):
        each["message"]["id"] = "of one answer"
    lines = "\n".join(map(json.dumps, records))
    (read,) = read_transcripts(lines, "claude_code").transcripts
    assert "Place 1 of it\nPlace 11 of it\n" in map(words_of, read.messages)
    assert not [each.what for each in read.losses if "read:" in each.what]
