"""The documented rules of OpenAI and Anthropic on tool calls and first messages."""

from __future__ import annotations

import pytest

from chatmemory.core.lint import PromptMessage, verdicts
from chatmemory.core.messages import MessageType

S, U, A = MessageType.SYSTEM, MessageType.USER, MessageType.AI
R = MessageType.TOOL_EXECUTION_RESULT


def problems(*shape) -> list[str]:
    turns = [
        PromptMessage(seq, *(each if isinstance(each, tuple) else (each,)))
        for seq, each in enumerate(shape, 1)
    ]
    return [verdict.problem for verdict in verdicts(turns)]


@pytest.mark.parametrize(
    "shape",
    [
        (S, U, A, U),
        (U,),
        (U, (A, 1), R, A),
        (U, (A, 2), R, R, U),
        (S, U, (A, 1), R, (A, 1), R),
    ],
)
def test_both_providers_accept(shape):
    assert problems(*shape) == ["", ""]


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((U, R), "No. Tool result #2 does not follow its call."),
        ((U, (A, 1), R, R), "No. Tool result #4 does not follow its call."),
        ((U, (A, 1), U), "No. Tool call #2 is not answered before #3."),
        ((U, (A, 2), R, A), "No. Tool call #2 is not answered before #4."),
        ((U, (A, 1), (A, 1), R), "No. Tool call #2 is not answered before #3."),
        ((U, (A, 2), R), "Not yet. Tool call #2 is waiting for its results."),
    ],
)
def test_both_providers_refuse(shape, problem):
    assert problems(*shape) == [problem, problem]


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((S, A, U), "No. The first message after system is AI (#2); it must be User."),
        (((A, 1), R), "No. The first message is a tool call (#1); it must be User."),
        ((A, S, U), "No. The first message is AI (#1); it must be User."),
        ((S,), "No. There is only a system message."),
    ],
)
def test_only_anthropic_refuses(shape, problem):
    assert problems(*shape) == ["", problem]


def test_an_empty_list():
    assert problems() == ["No. There is nothing to send."] * 2
