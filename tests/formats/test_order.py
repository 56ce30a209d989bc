"""The order of lists: the newest message may be the first, by the times of all messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chatmemory.formats import Transcript, read_transcripts
from chatmemory.formats.order import MIXED, REVERSED, seconds_of
from chatmemory.messages.message import text_of


def read(value: Any, are_lines: bool = False) -> Transcript:
    text = "\n".join(map(json.dumps, value)) if are_lines else json.dumps(value)
    (found,) = read_transcripts(text).transcripts
    return found


def chat(*times: Any, name: str = "created_at") -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"message {n}", name: time}
        for n, time in enumerate(times)
    ]


def texts(found: Transcript) -> list[str]:
    return [text_of(each) for each in found.messages]


def told(found: Transcript) -> list[str]:
    return [each.what for each in found.losses if each.what in (REVERSED, MIXED)]


@pytest.mark.parametrize("name", ["created_at", "timestamp", "createdAt"])
@pytest.mark.parametrize(
    "times", [(4, 3, 2, 1), ("2026-05-01T10:00:02Z", "2026-05-01T10:00:01+00:00")]
)
def test_a_list_whose_times_fall_is_read_backwards(name, times):
    found = read(chat(*times, name=name))
    assert texts(found) == [f"message {n}" for n in range(len(times))][::-1]
    assert told(found) == [REVERSED]


@pytest.mark.parametrize(
    ("times", "what"),
    [
        ((1, 2, 3), []),
        ((1, 1, 2), []),
        ((3, 1, 2), [MIXED]),
        ((2, 2, 1), [MIXED]),
        ((3, None, 1), []),
    ],
)
def test_other_lists_stay_as_they_are(times, what):
    found = read(chat(*times))
    assert texts(found) == [f"message {n}" for n in range(3)]
    assert told(found) == what


def test_the_messages_of_a_thread_are_read_backwards_without_a_page_around_them():
    messages = [
        {
            "object": "thread.message",
            "thread_id": "t",
            "role": role,
            "created_at": time,
            "content": [{"type": "text", "text": {"value": text}}],
        }
        for role, time, text in (("assistant", 2, "It is sealed."), ("user", 1, "Seal the letter"))
    ]
    found = read(messages)
    assert texts(found) == ["Seal the letter", "It is sealed."]
    assert told(found) == [REVERSED]


def test_places_are_those_of_the_file_in_a_list_that_is_read_backwards():
    value = chat(2, 1)
    value[0]["x"] = "never heard words"
    for are_lines, place in ((True, "line 1"), (False, ".[0]")):
        losses = read(value, are_lines).losses
        assert [each.place for each in losses if "not read" in each.what] == [place]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (5, 5.0),
        (1_767_225_600_000, 1_767_225_600.0),
        ("2026-01-01T00:00:00Z", 1_767_225_600.0),
        ("2026-01-01T00:00:00", 1_767_225_600.0),
        ("no time", None),
        (True, None),
        ("9" * 50, None),
    ],
)
def test_times_are_numbers_or_text(value, seconds):
    assert seconds_of(value) == seconds


def test_the_times_of_messages_are_kept():
    content = [{"type": "input_text", "text": "sort the nails"}]
    payload = {"type": "message", "role": "user", "content": content}
    time = "2026-05-01T10:00:00Z"
    codex = read([{"timestamp": time, "type": "response_item", "payload": payload}], True)
    assert codex.messages[0].attributes["codex"]["timestamp"] == time
    message = {"object": "thread.message", "thread_id": "t", "role": "user", "created_at": 71}
    thread = read([{**message, "content": [{"type": "text", "text": {"value": "hello"}}]}])
    assert "71" in json.dumps(thread.messages[0].attributes)
