"""Imported messages have the times of their source; those without a time have the import's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from chatmemory.formats.format import Node, Response
from chatmemory.formats.times import said_at_of
from chatmemory.models import Memory, Message, Step

pytestmark = pytest.mark.django_db

FIELD = Path(__file__).parents[2] / "data" / "field"
JANUARY = "2026-01-05T09:58:00+00:00"
NEXT = "2026-01-05T10:03:00+00:00"  # in the next hour
SECONDS, LATER = 1767607080, 1767607380

# Files of formats with times, all of them in the hours from 9 and from 10 of 5 January
MADE: dict[str, Any] = {
    "openai_chat": [
        {"role": "user", "content": "Pack the tent", "created_at": JANUARY},
        {"role": "assistant", "content": "Packed.", "created_at": NEXT},
    ],
    "openai_list": [
        {
            "id": f"msg_{n}",
            "object": "thread.message",
            "thread_id": "th_1",
            "role": role,
            "content": [{"type": "text", "text": {"value": text, "annotations": []}}],
            "created_at": at,
        }
        for n, role, text, at in (
            (2, "assistant", "Packed.", LATER),
            (1, "user", "Pack the tent", SECONDS),
        )
    ],
    "opencode": {
        "info": {"id": "ses_1"},
        "messages": [
            {
                "info": {"id": f"m{n}", "role": role, "time": {"created": 1_000 * at}},
                "parts": [{"id": f"p{n}", "type": "text", "text": text}],
            }
            for n, role, text, at in (
                (1, "user", "Pack the tent", SECONDS),
                (2, "assistant", "Packed.", LATER),
            )
        ],
    },
    "goose": {
        "id": "s1",
        "working_dir": "/home/ada",
        "conversation": [
            {"role": role, "created": at, "content": [{"type": "text", "text": text}]}
            for role, text, at in (
                ("user", "Pack the tent", SECONDS),
                ("assistant", "Packed.", LATER),
            )
        ],
    },
    "call_log": {
        "messages": [{"role": "user", "content": "Pack the tent", "created_at": JANUARY}],
        "response": {
            "id": "c",
            "object": "chat.completion",
            "created": LATER,
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Packed."}}],
        },
    },
    "langsmith": {
        "id": "r1",
        "run_type": "llm",
        "start_time": JANUARY,
        "inputs": {"messages": [{"role": "user", "content": "Pack the tent"}]},
        "outputs": {"messages": [{"role": "assistant", "content": "Packed."}]},
    },
    "vercel_ui": [
        {"id": "1", "role": "user", "createdAt": JANUARY, "parts": [_part]}
        for _part in ({"type": "text", "text": "Pack the tent"},)
    ],
}
# Files of the field, with the hour of their first message
IN_THE_FIELD = {
    "chatgpt.json": "2026-05-01T10",
    "claude-ai.json": "2026-05-01T10",
    "cc-fork.jsonl": "2026-05-01T10",
    "cc-compaction-after-fork.jsonl": "2026-05-01T10",
    "codex-events-only.jsonl": "2026-05-01T12",
    "gemini-cli.json": "2026-05-01T10",
    "langfuse.json": "2026-05-01T10",
    "langgraph-history.json": "2026-05-01T10",
    "librechat.json": "2026-05-01T10",
    "open-webui.json": "2026-05-01T10",
    "qwen-code.jsonl": "2026-05-01T13",
}


def hours() -> list[str]:
    said = Message.objects.filter(origin=Message.Origin.SAID).order_by("memory_id", "seq")
    times = said.values_list("said_at", flat=True)
    return [f"{each:%Y-%m-%dT%H}" for each in times]


@pytest.mark.parametrize("format", MADE)
def test_a_file_keeps_the_hours_of_its_source(format, tmp_path):
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(MADE[format]))
    call_command("import_transcripts", file)
    found = hours()
    assert found
    assert found[0] == "2026-01-05T09"
    assert {*found} <= {"2026-01-05T09", "2026-01-05T10"}
    if format in ("openai_chat", "openai_list", "opencode", "goose", "call_log"):
        assert found == ["2026-01-05T09", "2026-01-05T10"]


@pytest.mark.parametrize(("name", "hour"), IN_THE_FIELD.items())
def test_programs_files_keep_the_hours_of_their_source(name, hour):
    call_command("import_transcripts", FIELD / name)
    found = hours()
    assert found
    assert {*found} == {hour}


def test_what_a_file_has_gained_has_its_own_times(tmp_path):
    file = tmp_path / "chat.jsonl"
    for n in (1, 2):
        file.write_bytes((FIELD / f"grown-claude-code-{n}.jsonl").read_bytes())
        call_command("import_transcripts", file)
    assert Memory.objects.count() == 1
    assert hours() == ["2026-05-01T10"] * 4


def test_messages_without_a_time_have_the_time_of_their_step(tmp_path):
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "Pack the tent"}]))
    call_command("import_transcripts", file)
    (row,), (step,) = Message.objects.all(), Step.objects.all()
    assert row.said_at == step.at


@pytest.mark.parametrize(
    ("turn", "at"),
    [
        ({"timestamp": "2026-01-05T10:58:00+01:00"}, JANUARY),
        ({"timestamp": "2026-01-05T09:58:00"}, JANUARY),
        ({"create_time": float(SECONDS)}, JANUARY),
        ({"time": {"created": SECONDS * 1_000}}, JANUARY),
        ({"info": {"time": {"created": SECONDS}}}, JANUARY),
        ({"metadata": {"createdAt": JANUARY}}, JANUARY),
        ({"parts": [{"timestamp": JANUARY}]}, JANUARY),
        (Node("1", None, {"createdAt": JANUARY}), JANUARY),
        (Response({"role": "assistant"}, {"created": SECONDS}), JANUARY),
        ({"created_at": None, "timestamp": JANUARY}, JANUARY),
        ({"timestamp": 1}, None),
        ({"time": 12.5}, None),
        ({"timestamp": True}, None),
        ({"timestamp": "2999-01-01T00:00:00Z"}, None),
        ({"timestamp": 1e300}, None),
        ({"timestamp": "yesterday"}, None),
        ({"content": "no time"}, None),
        ("text", None),
        (None, None),
    ],
)
def test_a_turn_has_a_time_as_programs_write_it(turn, at):
    assert said_at_of(turn) == (at and datetime.fromisoformat(at).astimezone(UTC))
