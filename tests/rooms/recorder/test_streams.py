"""Streams of answers with pieces that are not as the provider's documentation says."""

from __future__ import annotations

import json

import pytest

from inspector.rooms.calls.bodies import OPENAI
from inspector.rooms.recorder.streams import answer_of


def stream(*pieces: object) -> bytes:
    """A stream of chunks with these pieces of one tool call."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": piece}]}}]}
        for piece in pieces
    ]
    return "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks]).encode() + b"data: [DONE]"


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (['{"a"', ": 1}"], '{"a": 1}'),
        ([{"a": 1}], {"a": 1}),
        (["", {"a": 1}], {"a": 1}),
        ([{"a": 1}, '{"b": 2}'], '{"b": 2}'),
        ([{"a": 1}, {"b": 2}], {"b": 2}),
        ([None, 7, "8", [9]], [9]),
    ],
)
def test_arguments_that_are_no_text_are_kept(pieces, arguments):
    answer, is_ended = answer_of(stream(*({"arguments": each} for each in pieces)), OPENAI)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == arguments
    assert is_ended


@pytest.mark.parametrize("piece", ["text", 7, None, [1], {"name": {"a": 1}}, {"name": 7}])
def test_any_piece_of_a_call_is_read(piece):
    answer, _ = answer_of(stream({"name": "find"}, piece, {"name": "find"}), OPENAI)
    assert answer["choices"][0]["message"]["tool_calls"]
