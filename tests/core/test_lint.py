"""The documented rules of OpenAI and Anthropic on tool calls and first messages."""

from __future__ import annotations

import pytest

from chatmemory.core.lint import PromptMessage, verdicts

from .letters import messages

FOLLOWS, ANSWERED = (
    "No. Tool result {} does not follow its call.",
    "No. Tool call {} is not answered",
)
FIRST = "No. The first message is {}; it must be User."


@pytest.mark.parametrize(
    ("letters", "of_openai", "of_anthropic"),
    [
        ("SuAu", "", ""),
        ("u", "", ""),
        ("uCRA", "", ""),
        ("u2RRu", "", ""),  # 2 calls two tools
        ("SuCRCR", "", ""),
        ("uR", FOLLOWS.format("#2"), None),
        ("uCRR", FOLLOWS.format("#4"), None),
        ("uCu", f"{ANSWERED.format('#2')} before #3.", None),
        ("u2RA", f"{ANSWERED.format('#2')} before #4.", None),
        ("uCCR", f"{ANSWERED.format('#2')} before #3.", None),
        ("u2R", "Not yet. Tool call #2 is waiting for its results.", None),
        ("SAu", "", "No. The first message after system is AI (#2); it must be User."),
        ("CR", "", FIRST.format("a tool call (#1)")),
        ("ASu", "", FIRST.format("AI (#1)")),
        ("S", "", "No. There is only a system message."),
        ("", "No. There is nothing to send.", None),
    ],
)
def test_what_providers_accept_and_refuse(letters, of_openai, of_anthropic):
    types = [message.type for message in messages(letters.replace("2", "C"))]
    calls = [{"C": 1, "2": 2}.get(letter, 0) for letter in letters]
    found = verdicts(list(map(PromptMessage, range(1, 9), types, calls)))
    assert [verdict.problem for verdict in found] == [
        of_openai,
        of_openai if of_anthropic is None else of_anthropic,
    ]
