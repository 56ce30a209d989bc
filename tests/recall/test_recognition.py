"""An error that a provider gave is found among the laws, or said to be unknown."""

from __future__ import annotations

import json

import pytest

from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example, lint
from chatmemory.lint.recognition import recognized

PATTERN = "messages.12.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
TOO_LONG = (
    "Error code: 400 - Invalid 'messages[68].tool_calls[0].id': string too long. Expected a "
    "string with maximum length 40, but got a string with length 46 instead."
)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_answer_of_each_law_is_recognized(rule):
    for provider in PROVIDERS:
        for each in lint(example(rule.bad, rule.example_provider), provider=provider):
            if each.rule == rule.id and each.error and each.severity != "mishandled":
                error = json.dumps({"error": {"message": each.error, "type": "invalid"}})
                known = [(found.rule.id, found.provider) for found in recognized(error)]
                assert (rule.id, provider) in known, each.error


@pytest.mark.parametrize(
    ("error", "rule", "at"),
    [
        (f'{{"type": "error", "error": {{"message": "{PATTERN}"}}}}', "call_id_form", 12),
        (TOO_LONG, "call_id_form", 68),
        (
            json.dumps(
                {"raw": json.dumps({"message": "Unexpected role 'user' after role 'tool'"})}
            ),
            "role_order",
            None,
        ),
    ],
)
def test_an_error_is_found_with_its_place(error, rule, at):
    assert {(each.rule.id, each.at) for each in recognized(error)} == {(rule, at)}


@pytest.mark.parametrize(
    "error", ["", "{", "Overloaded", '{"error": {"message": "Rate limit reached"}}', "[1, null]"]
)
def test_an_error_that_no_law_knows_is_unknown(error):
    assert recognized(error) == []
