"""Chats and sessions of agents in editors: GitHub Copilot's and Cursor's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chatmemory.formats import Reading, read_transcripts
from chatmemory.messages.message import text_of

from .test_account import AGENTS

FILES = {
    "copilot_cli": (
        "copilot_cli.jsonl",
        [
            "USER: Thatch the shed\n[file roof.txt]\nstraw, two bales",
            'AI: I count the bales.\ncount({"what": "bales"})',
            "TOOL_EXECUTION_RESULT: three bales",
            "AI: The shed is thatched.",
        ],
    ),
    "copilot_chat": (
        "copilot_chat.json",
        [
            "USER: Caulk the hull",
            'AI: I look for gaps.\nfind_gaps({"side": "port"})',
            "TOOL_EXECUTION_RESULT: one gap",
            "AI: The hull is caulked.",
            "USER: Where is it?",
            "AI: See `hull.txt` for it.",
        ],
    ),
    "cursor": (
        "cursor.jsonl",
        [
            "USER: Whet the scythe",
            'AI: I find the stone.\nShell({"command": "ls stones"})',
            "TOOL_EXECUTION_RESULT: [result not recorded]",
            "AI: The scythe is whetted.",
        ],
    ),
}


def lines(name: str) -> list[Any]:
    return [*map(json.loads, (AGENTS / name).read_text("utf-8").splitlines())]


def read_lines(records: list[Any]) -> Reading:
    return read_transcripts("\n".join(map(json.dumps, records)))


def said(reading: Reading) -> list[str]:
    (read,) = reading.transcripts
    return [f"{each.type}: {text_of(each)}" for each in read.messages]


def losses(reading: Reading) -> list[str]:
    return [loss.what for read in reading.transcripts for loss in read.losses]


@pytest.mark.parametrize("format", FILES)
def test_it_is_read_with_calls_and_results(format):
    name, expected = FILES[format]
    reading = read_transcripts((AGENTS / name).read_text("utf-8"))
    assert (reading.format, reading.refused) == (format, ())
    assert said(reading) == expected
    assert not any("words" in what for what in losses(reading))


def test_thoughts_are_kept():
    for name in ("copilot_cli.jsonl", "copilot_chat.json"):
        (read,) = read_transcripts((AGENTS / name).read_text("utf-8")).transcripts
        assert [each.thinking for each in read.messages if getattr(each, "thinking", None)]


def test_calls_of_copilot_that_only_start_are_calls_of_the_answer_before():
    """Earlier versions wrote no requests, and the text of a result beside it."""
    records = lines("copilot_cli.jsonl")
    del records[3]["data"]["toolRequests"]
    records[5]["data"] = {"toolCallId": "t1", "success": False, "output": "no bales"}
    reading = read_lines(records)
    assert said(reading)[1:3] == [
        FILES["copilot_cli"][1][1],
        "TOOL_EXECUTION_RESULT: no bales",
    ]
    assert getattr(reading.transcripts[0].messages[2], "is_error", None) is True


def test_a_summary_of_copilot_is_a_compaction_and_subagents_are_named():
    records = lines("copilot_cli.jsonl")
    summary = {"success": True, "summaryContent": "A shed was thatched.", "preCompactionTokens": 90}
    about = {"id": "e8", "timestamp": "2026-03-10T07:15:00.000Z", "parentId": "e7"}
    records += [
        {"type": "session.compaction_complete", "data": summary, **about},
        {
            "type": "assistant.message",
            "data": {"content": "From within.", "parentToolCallId": "t1", "messageId": "m9"},
            **about,
        },
        {"type": "skill.invoked", "data": {"name": "roofs", "content": "How to thatch"}, **about},
    ]
    reading = read_lines(records)
    (read,) = reading.transcripts
    assert read.session is not None
    (compaction,) = read.session.compactions
    assert compaction.tokens_before == 90
    assert text_of(read.session.messages[compaction.summary]) == "A shed was thatched."
    assert "records of subagents, of which only the results came back (1)" in losses(reading)
    assert "texts of skills (1)" in losses(reading)


def test_an_answer_of_copilot_without_rounds_names_the_steps_that_it_shows():
    value = json.loads((AGENTS / "copilot_chat.json").read_text("utf-8"))
    del value["requests"][0]["result"]["metadata"]
    reading = read_transcripts(json.dumps(value))
    assert said(reading)[1] == "AI: I look for gaps.The hull is caulked."
    assert "steps of tools whose calls are not recorded (1)" in losses(reading)


def test_results_of_cursor_answer_its_calls_in_order():
    records = lines("cursor.jsonl")
    result = {"type": "tool_result", "content": [{"type": "text", "text": "a whetstone"}]}
    records.insert(2, {"role": "user", "message": {"content": [result]}})
    reading = read_lines(records)
    assert said(reading)[2] == "TOOL_EXECUTION_RESULT: a whetstone"
    assert not any("results of tools" in what for what in losses(reading))
