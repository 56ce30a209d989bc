"""Sessions of Gemini CLI and Qwen Code, whose messages have the parts of Gemini."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chatmemory import AiMessage
from chatmemory.formats import Transcript, read_transcripts
from chatmemory.messages.message import text_of

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2026-05-01T10:00:00Z", "kind": "main"}


def read(*records: Any) -> Transcript:
    (transcript,) = read_transcripts("\n".join(map(json.dumps, records))).transcripts
    return transcript


def lines_of(transcript: Transcript) -> list[str]:
    return [f"{message.type[:4].lower()}: {text_of(message)}" for message in transcript.messages]


def losses_of(transcript: Transcript) -> str:
    return "; ".join(loss.what for loss in transcript.losses)


# Gemini CLI


def record(id: str, type: str, content: Any = "", time: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "content": content, "timestamp": _at(time), **more}


def _at(time: int) -> str:
    return f"2026-05-01T10:00:0{time}Z"


def tool(id: str, output: Any, time: int = 0, **more: Any) -> dict[str, Any]:
    response = {"id": id, "name": "ls", "response": {"output": output}}
    call = {"id": id, "name": "ls", "args": {"path": "."}, "timestamp": _at(time)}
    return {**call, "status": "success", "result": [{"functionResponse": response}], **more}


def test_a_message_of_gemini_cli_that_changed_counts_as_it_was_written_last():
    waiting = {**tool("c1", ""), "status": "executing", "result": None}
    answer = record("g1", "gemini", "I list.", 1, tokens={"input": 9})
    transcript = read(
        HEAD,
        record("u1", "user", [{"text": "list"}]),
        {**answer, "toolCalls": [waiting]},
        {**answer, "toolCalls": [tool("c1", "a.txt", 2)]},
        {"$set": {"lastUpdated": "later"}},
        record("g2", "gemini", "draft", 3),
        {"$patch": {"id": "g2", "content": "There is a.txt."}},
    )
    assert lines_of(transcript) == [
        "user: list",
        'ai: I list.\nls({"path": "."})',
        "tool: a.txt",
        "ai: There is a.txt.",
    ]
    assert transcript.name == "s"
    assert transcript.session.prompts == {1: 9}


@pytest.mark.parametrize("older", [True, False])
@pytest.mark.parametrize("as_list", [True, False])
def test_sessions_of_gemini_cli_that_follow_each_other_are_all_read(older, as_list):
    records: list[Any] = []
    for name in ("s1", "s2", "s3"):
        head, message = {**HEAD, "sessionId": name}, record("u1", "user", f"words of {name}")
        records += [{**head, "messages": [message]}] if older else [head, message]
    text = json.dumps(records) if as_list else "\n".join(map(json.dumps, records))
    read = read_transcripts(text).transcripts
    assert [(each.name, each.number, lines_of(each)) for each in read] == [
        (f"s{n}", n, [f"user: words of s{n}"]) for n in (1, 2, 3)
    ]


def test_a_session_of_gemini_cli_that_is_written_again_is_one():
    again = {**HEAD, "messages": [record("u1", "user", "a"), record("u2", "user", "b")]}
    assert lines_of(read({**HEAD, "messages": [record("u1", "user", "a")]}, again)) == [
        "user: a",
        "user: b",
    ]


def test_words_that_are_not_older_than_the_call_are_said_after_it():
    thought = {"subject": "Look", "description": "into it"}
    calls = [tool("c1", "a.txt"), {**tool("c2", ""), "status": "error", "result": [{"text": "no"}]}]
    answer = record("g", "gemini", "Done.", thoughts=[thought], toolCalls=calls)
    transcript = read({**HEAD, "messages": [record("u", "user", "list"), answer]})
    assert [text.partition(":")[0] for text in lines_of(transcript)] == [
        "user",
        "ai",
        "tool",
        "tool",
        "ai",
    ]
    assert transcript.messages[1].thinking == "Look: into it"
    assert transcript.messages[3].is_error
    assert lines_of(transcript)[-1] == "ai: Done."


def test_messages_that_a_rewind_took_back_are_a_branch_and_notes_of_the_program_are_reported():
    records = [
        HEAD,
        record("u1", "user", "a"),
        record("u2", "user", "b"),
        record("g2", "gemini", "c"),
        {"$rewindTo": "u2"},
        record("i", "info", "Request cancelled."),
        record("u3", "user", "d"),
    ]
    transcript, before = read_transcripts("\n".join(map(json.dumps, records))).transcripts
    assert lines_of(transcript) == ["user: a", "user: d"]
    assert lines_of(before) == ["user: a", "user: b", "ai: c"]
    assert (before.is_branch, before.shared) == (True, 1)
    assert "'info' (1)" in losses_of(transcript)


def test_parts_of_a_message_of_gemini_cli_that_are_not_written_again_stay():
    transcript = read(
        HEAD,
        record("u1", "user", "list"),
        record("g1", "gemini", "I list.", 1, toolCalls=[tool("c1", "a.txt", 2)]),
        {"$set": {"messages": [record("g1", "gemini", "", 1, tokens={"input": 9})]}},
        {"$set": {"messages": [record("g1", "gemini", "", toolCalls=[tool("c2", "b.txt", 3)])]}},
    )
    answer = transcript.messages[1]
    assert answer.text == "I list."
    assert [each.id for each in answer.tool_execution_requests] == ["c1", "c2"]
    assert lines_of(transcript)[2:] == ["tool: a.txt", "tool: b.txt"]
    assert "not read" not in losses_of(transcript)


def test_messages_that_the_program_set_are_added_to_those_before():
    transcript = read(
        HEAD, record("u1", "user", "a"), {"$set": {"messages": [record("s", "user", "sum")]}}
    )
    assert lines_of(transcript) == ["user: a", "user: sum"]


def test_a_message_of_an_older_file_that_is_no_object_is_left_out():
    messages = [record("u1", "user", "a"), 7, None, record("g1", "gemini", "b")]
    reading = read_transcripts(json.dumps({**HEAD, "messages": messages}))
    (transcript,) = reading.transcripts
    assert lines_of(transcript) == ["user: a", "ai: b"]
    assert reading.refused == ()


# Qwen Code


def turn(id: str, parent: str | None, type: str, *parts: Any, **more: Any) -> dict[str, Any]:
    role = "model" if type == "assistant" else "user"
    about = {"uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": "t", "type": type}
    return {**about, "message": {"role": role, "parts": [*parts]}, **more}


def test_sessions_of_qwen_code_that_follow_each_other_are_all_read():
    records = [
        {**turn(f"{n}{name}", n and f"{n - 1}{name}", "user", {"text": f"{n} {name}"}), **about}
        for name in ("one", "two")
        for n, about in enumerate([{"sessionId": name}] * 2)
    ]
    read = read_transcripts("\n".join(map(json.dumps, records))).transcripts
    assert [(each.name, lines_of(each)) for each in read] == [
        ("one", ["user: 0 one", "user: 1 one"]),
        ("two", ["user: 0 two", "user: 1 two"]),
    ]


def test_a_session_of_qwen_code_follows_the_parents_of_its_last_message():
    call = {"functionCall": {"id": "c", "name": "ls", "args": {}}}
    result = {"functionResponse": {"id": "c", "name": "ls", "response": {"output": "a.txt"}}}
    usage = {"usageMetadata": {"promptTokenCount": 7}}
    transcript = read(
        turn("1", None, "user", {"text": "list"}),
        turn("2", "1", "assistant", {"text": "left behind"}),
        turn("3", "1", "assistant", {"text": "hm", "thought": True}, call, **usage),
        turn("4", "3", "tool_result", result),
        {
            "uuid": "5",
            "parentUuid": "4",
            "sessionId": "s",
            "type": "system",
            "subtype": "ui_telemetry",
        },
        turn("6", "5", "assistant", {"text": "There is a.txt."}),
        {
            "uuid": "7",
            "parentUuid": "6",
            "sessionId": "s",
            "type": "system",
            "subtype": "custom_title",
        },
    )
    assert lines_of(transcript) == [
        "user: list",
        "ai: ls({})",
        "tool: a.txt",
        "ai: There is a.txt.",
    ]
    answer = transcript.messages[1]
    assert isinstance(answer, AiMessage)
    assert (answer.thinking, answer.tool_execution_requests[0].id) == ("hm", "c")
    assert transcript.session.prompts == {1: 7}
    assert "not on the path to the last message (1)" in losses_of(transcript)


def test_a_compression_of_qwen_code_is_a_compaction():
    kept = {"role": "model", "parts": [{"text": "d"}]}
    summary = {"role": "user", "parts": [{"text": "all so far"}]}
    payload = {"info": {"originalTokenCount": 90, "newTokenCount": 9}}
    compression = {"subtype": "chat_compression", "systemPayload": payload}
    payload["compressedHistory"] = [summary, kept]
    transcript = read(
        turn("1", None, "user", {"text": "a"}),
        turn("2", "1", "assistant", {"text": "b"}),
        turn("3", "2", "user", {"text": "c"}),
        turn("4", "3", "assistant", {"text": "d"}),
        {**turn("5", "4", "system"), **compression},
        turn("6", "5", "user", {"text": "e"}),
    )
    assert lines_of(transcript) == ["user: a", "ai: b", "user: c", "ai: d", "user: e"]
    (compaction,) = transcript.session.compactions
    assert text_of(transcript.session.messages[compaction.summary]) == "all so far"
    assert (compaction.window, compaction.tokens_before) == ((4, 3), 90)


def test_a_session_of_qwen_code_is_not_one_of_claude_code():
    lines = "\n".join(map(json.dumps, [turn("1", None, "user", {"text": "a"})] * 2))
    assert read_transcripts(lines).format == "qwen_code"
