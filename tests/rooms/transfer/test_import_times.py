"""Imported messages have the times of their source; those without a time have the import's."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from chatmemory.formats import read_transcripts, readable_formats
from chatmemory.formats.format import Node, Response
from chatmemory.formats.times import said_at_of
from chatmemory.models import Memory, Message, Step

from ...formats.test_account import SAMPLES, written
from ...formats.test_nothing_is_lost import RECORDS

pytestmark = pytest.mark.django_db

FIELD = Path(__file__).parents[2] / "data" / "field"
JANUARY = "2026-01-05T09:58:00+00:00"
NEXT = "2026-01-05T10:03:00+00:00"  # in the next hour
SECONDS, LATER = 1767607080, 1767607380


def pair(made: Callable[[int, str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a question and its answer as records, made of a number, a role and a text."""
    return [made(0, "user", "Pack the tent"), made(1, "assistant", "Packed.")]


TIMES, NUMBERS = (JANUARY, NEXT), (SECONDS, LATER)
RUN = {"id": "r1", "inputs": {"messages": [{"role": "user", "content": "Pack the tent"}]}}
ANSWERED = {"role": "assistant", "content": "Packed."}
COMPLETION = {"id": "c", "object": "chat.completion", "model": "m", "created": LATER}
CHAT = pair(lambda n, role, text: {"role": role, "content": text, "created_at": TIMES[n]})
# Files of formats with times, both of them those of the two messages
MADE: dict[str, Any] = {
    "openai_chat": pair(
        lambda n, role, text: {"role": role, "content": text, "created_at": TIMES[n]}
    ),
    "wrapped": {
        "conversation": pair(
            lambda n, role, text: {"role": role, "content": text, "created_at": TIMES[n]}
        )
    },
    "openai_list": pair(
        lambda n, role, text: {
            "id": f"msg_{n}",
            "object": "thread.message",
            "thread_id": "th_1",
            "role": role,
            "content": [{"type": "text", "text": {"value": text, "annotations": []}}],
            "created_at": NUMBERS[n],
        }
    )[::-1],
    "opencode": {
        "info": {"id": "ses_1"},
        "messages": pair(
            lambda n, role, text: {
                "info": {"id": f"m{n}", "role": role, "time": {"created": 1_000 * NUMBERS[n]}},
                "parts": [{"id": f"p{n}", "type": "text", "text": text}],
            }
        ),
    },
    "goose": {
        "id": "s1",
        "working_dir": "/home/ada",
        "conversation": pair(
            lambda n, role, text: {
                "role": role,
                "created": NUMBERS[n],
                "content": [{"type": "text", "text": text}],
            }
        ),
    },
    "call_log": {
        "messages": [{"role": "user", "content": "Pack the tent", "created_at": JANUARY}],
        "response": {**COMPLETION, "choices": [{"index": 0, "message": ANSWERED}]},
    },
    "langsmith": [
        {**RUN, "run_type": "llm", "start_time": JANUARY, "outputs": {"messages": [ANSWERED]}}
    ],
    "langfuse": [
        {
            "id": "g1",
            "traceId": "t1",
            "type": "GENERATION",
            "startTime": JANUARY,
            "input": RUN["inputs"]["messages"],
            "output": ANSWERED,
        }
    ],
    "langgraph": [
        {
            "values": {
                "messages": [
                    {"type": "human", "content": "Pack the tent", "id": "1"},
                    {"type": "ai", "content": "Packed.", "id": "2"},
                ][: n + 1]
            },
            "config": {"configurable": {"thread_id": "th-1"}},
            "metadata": {"step": n},
            "created_at": TIMES[n],
        }
        for n in (1, 0)
    ],
    "vercel_ui": pair(
        lambda n, role, text: {
            "id": str(n),
            "role": role,
            "createdAt": TIMES[n],
            "parts": [{"type": "text", "text": text}],
        }
    ),
    "pydantic_ai": [
        {
            "kind": "request",
            "parts": [{"part_kind": "user-prompt", "content": "Pack it", "timestamp": JANUARY}],
        },
        {
            "kind": "response",
            "parts": [{"part_kind": "text", "content": "Packed."}],
            "timestamp": NEXT,
        },
    ],
    "openai_responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": SECONDS,
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Packed.", "annotations": []}],
            }
        ],
    },
    "chatgpt": {
        "current_node": "1",
        "mapping": {
            str(n): {"id": str(n), "parent": "0" if n else None, "message": each}
            for n, each in enumerate(
                pair(
                    lambda n, role, text: {
                        "author": {"role": role},
                        "create_time": float(NUMBERS[n]),
                        "content": {"content_type": "text", "parts": [text]},
                    }
                )
            )
        },
    },
    "claude_ai": {
        "uuid": "c",
        "chat_messages": pair(
            lambda n, role, text: {
                "uuid": str(n),
                "sender": "assistant" if n else "human",
                "text": text,
                "created_at": TIMES[n],
            }
        ),
    },
    "librechat": {
        "conversationId": "c",
        "messages": pair(
            lambda n, role, text: {
                "messageId": str(n),
                "parentMessageId": "0" if n else None,
                "isCreatedByUser": not n,
                "sender": role,
                "text": text,
                "createdAt": TIMES[n],
            }
        ),
    },
    "open_webui": {
        "id": "w",
        "chat": {
            "history": {
                "currentId": "1",
                "messages": {
                    each["id"]: each
                    for each in pair(
                        lambda n, role, text: {
                            "id": str(n),
                            "parentId": "0" if n else None,
                            "role": role,
                            "content": text,
                            "timestamp": NUMBERS[n],
                        }
                    )
                },
            }
        },
    },
    "copilot_chat": {
        "responderUsername": "GitHub Copilot",
        "requests": pair(
            lambda n, role, text: {
                "requestId": str(n),
                "message": {"text": text},
                "timestamp": 1_000 * NUMBERS[n],
            }
        ),
    },
    "copilot_cli": pair(
        lambda n, role, text: {
            "type": f"{role}.message",
            "id": str(n),
            "timestamp": TIMES[n],
            "data": {"content": text},
        }
    ),
    "cursor": pair(
        lambda n, role, text: {
            "role": role,
            "ts": 1_000 * NUMBERS[n],
            "message": {"content": [{"type": "text", "text": text}]},
        }
    ),
    "gemini_cli": {
        "sessionId": "s",
        "projectHash": "h",
        "messages": pair(
            lambda n, role, text: {
                "id": str(n),
                "type": "gemini" if n else "user",
                "timestamp": TIMES[n],
                "content": text,
            }
        ),
    },
    "claude_code": pair(
        lambda n, role, text: {
            "uuid": str(n),
            "parentUuid": "0" if n else None,
            "sessionId": "s",
            "type": role,
            "timestamp": TIMES[n],
            "message": {"id": f"m{n}", "role": role, "content": [{"type": "text", "text": text}]},
        }
    ),
    "codex": [
        {"timestamp": JANUARY, "type": "session_meta", "payload": {"id": "cx"}},
        *pair(
            lambda n, role, text: {
                "timestamp": TIMES[n],
                "type": "response_item",
                "payload": {
                    "type": "message",
                    "role": role,
                    "content": [{"type": "output_text" if n else "input_text", "text": text}],
                },
            }
        ),
    ],
    "openhands": pair(
        lambda n, role, text: {
            "id": str(n),
            "source": "agent" if n else "user",
            "kind": "MessageEvent",
            "timestamp": TIMES[n],
            "llm_message": {"role": role, "content": [{"type": "text", "text": text}]},
        }
    ),
    "qwen_code": pair(
        lambda n, role, text: {
            "uuid": str(n),
            "parentUuid": "0" if n else None,
            "sessionId": "s",
            "type": role,
            "timestamp": TIMES[n],
            "message": {"role": "model" if n else "user", "parts": [{"text": text}]},
        }
    ),
}
# Files whose messages all have the time of their call
OF_A_CALL = {"langsmith": 2, "langfuse": 2, "openai_responses": 1}
# Formats whose messages have no time, and why
WITHOUT_TIMES = {
    **dict.fromkeys(("anthropic", "bedrock", "gemini"), "requests, whose messages have no time"),
    "langchain": "its messages have no time",
    "langchain4j": "its messages have no time",
    "llama_index": "its messages have no time",
    "llama_index_store": "a store of messages of llama_index",
    "otel_genai": "spans have times, the messages in them have none",
    "sharegpt": "its turns have a speaker and a text",
    "vercel_model": "a ModelMessage has no time, only a UIMessage may have one",
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
def test_a_message_has_the_time_of_its_source(format, tmp_path):
    is_session = format in RECORDS and isinstance(MADE[format], list)
    file = tmp_path / "chat.json"
    file.write_text(written(MADE[format], are_lines=is_session))
    assert read_transcripts(file.read_text()).format == format
    call_command("import_transcripts", file)
    said = Message.objects.filter(origin=Message.Origin.SAID).order_by("memory_id", "seq")
    times = [each.isoformat() for each in said.values_list("said_at", flat=True)]
    assert times == ([JANUARY] * OF_A_CALL[format] if format in OF_A_CALL else [JANUARY, NEXT])


def test_each_format_has_times_or_a_reason():
    assert sorted([*MADE, *WITHOUT_TIMES]) == sorted(readable_formats())


@pytest.mark.parametrize("format", WITHOUT_TIMES)
def test_files_of_a_format_without_times_have_none(format):
    assert SAMPLES[format]
    for value, are_lines in SAMPLES[format]:
        reading = read_transcripts(written(value, are_lines))
        assert not any(each.times for each in reading.transcripts)


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
