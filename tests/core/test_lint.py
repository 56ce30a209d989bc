"""The rules of providers: two examples each, real exchanges, and what mends a window."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidMessage,
    InvalidValue,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    lint,
    repair,
)
from chatmemory.core.lint import PROVIDERS, RULES, Turn, verdicts
from chatmemory.core.lint.repairs import PLACEHOLDER
from chatmemory.formats import parse_objects

from ..properties import examples

FOLLOWS = "No. Tool result {} does not follow its call."
AGAIN = "No. Tool result {} answers a call that {} has answered."
ANSWERED = "No. Tool call {} is not answered"
FIRST = "Yes, although the first message{} is {}, not User."


def call(*ids):
    return AiMessage(None, [ToolExecutionRequest(id, "find", "{}") for id in ids])


def result(id, text="found"):
    return ToolExecutionResultMessage(id, "find", text)


def window(letters):
    """Capitals are calls and small letters their results, but S, U and A say something."""
    said = {"S": SystemMessage("Be brief."), "U": UserMessage("Hello"), "A": AiMessage("Hi")}
    known = {**said, "B": call("b"), "C": call("c"), "D": call("d", "e")}
    return [known.get(letter) or result(letter) for letter in letters]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_rule_finds_its_bad_example_and_not_its_good_one(rule, provider):
    found = [each for each in lint(rule.bad, provider=provider) if each.rule == rule.id]
    if provider not in rule.laws:
        assert found == []
        return
    law = rule.laws[provider]
    assert {(each.severity, each.repairs) for each in found} == {(law.severity, rule.repairs)}
    assert all(each.positions or rule.id == "nothing_to_send" for each in found)
    assert law.source.startswith("https://")
    assert provider != "gemini" or law.basis == "documentation"
    assert lint(rule.good, provider=provider) == []


@pytest.mark.parametrize(
    ("letters", "of_openai", "of_anthropic"),
    [
        ("SUAU", "Yes.", "Yes."),
        ("U", "Yes.", "Yes."),
        ("UBbA", "Yes.", "Yes."),
        ("UDedU", "Yes.", "Yes."),
        ("SUBbCc", "Yes.", "Yes."),
        ("Ub", FOLLOWS.format("#2"), None),
        ("UBbb", AGAIN.format("#4", "#3"), None),
        ("UBU", f"{ANSWERED.format('#2')} before #3.", None),
        ("UDdA", f"{ANSWERED.format('#2')} before #4.", None),
        ("UBCc", f"{ANSWERED.format('#2')} before #3.", None),
        ("UDd", "Not yet. Tool call #2 is waiting for its results.", None),
        ("UBUb", "No. Tool result #4 does not directly follow its call #2.", None),
        ("UbB", "No. Tool result #2 stands before its call #3.", None),
        ("SAU", "Yes.", FIRST.format(" after system", "AI (#2)")),
        ("Bb", "Yes.", FIRST.format("", "a tool call (#1)")),
        ("UU", "Yes.", "Yes, although #1 and #2 are both User."),
        ("S", "Yes.", "No. There is only a system message."),
        ("", "No. There is nothing to send.", None),
    ],
)
def test_what_providers_accept_and_refuse(letters, of_openai, of_anthropic):
    turns = [Turn.of(i, i + 1, message) for i, message in enumerate(window(letters))]
    openai, anthropic = verdicts(turns)
    assert openai.answer == of_openai
    if letters == "UBCc":  # one turn of the assistant for Anthropic, whose other call is answered
        assert anthropic.answer == "Not yet. Tool call #2 is waiting for its results."
    else:
        assert anthropic.answer == (of_anthropic or of_openai)
