"""What providers say about prompts that are too long, about rates, and about places."""

from __future__ import annotations

import json
import tomllib
from copy import deepcopy
from pathlib import Path

import pytest

from chatmemory.lint.answers import RateLimited, place_in, rate_limited, too_long
from chatmemory.lint.recognition import recognized

WORDINGS = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text("utf-8"))


def wordings(kind):
    """The wordings of a kind, each with the name of its provider and its source."""
    return [
        pytest.param(each, id=f"{each.pop('provider')} {each.pop('source')}")
        for each in deepcopy(WORDINGS[kind])
    ]


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("wording", wordings("long"))
def test_a_prompt_that_is_too_long_has_its_numbers(wording, is_json):
    text = json.dumps({"error": {"message": wording["text"]}}) if is_json else wording["text"]
    found = too_long(text)
    assert found is not None
    for number in ("tokens", "fits", "over"):
        assert getattr(found, number) == wording.get(number)
    assert rate_limited(text) is None


@pytest.mark.parametrize("wording", wordings("rate"))
def test_a_rate_is_no_fault_of_a_message(wording):
    text = wording.pop("text")
    assert rate_limited(text) == RateLimited(**wording)
    assert too_long(text) is None


@pytest.mark.parametrize("wording", wordings("path"))
def test_the_place_of_an_error_is_found(wording):
    for text in (wording["text"], json.dumps({"error": {"message": wording["text"]}})):
        assert place_in(text).path == wording["path"]


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ("Invalid value at messages.[0].role", "messages[0].role"),
        ("messages[0].role: unknown", "messages[0].role"),
        ("messages.0.content.1: Input should be", "messages[0].content[1]"),
        ("messages.3.content.1.tool_use.id: String", "messages[3].content[1].tool_use.id"),
        ("* GenerateContentRequest: contents[2].parts[0].text: empty", "contents[2].parts[0].text"),
        ("Invalid 'input[2].call_id': empty string", "input[2].call_id"),
        ("no place in messages.", ""),
        ("the messages 0 and 1", ""),
    ],
)
def test_paths_are_read_in_the_forms_of_each_provider(error, path):
    for text in (error, json.dumps({"error": {"message": error}})):
        found = place_in(text)
        assert (found.path if found else "") == path


def test_a_law_without_an_index_gets_the_place_of_the_error():
    error = "messages.[4].role: Unexpected role 'user' after role 'tool'"
    assert {(each.rule.id, each.at) for each in recognized(error)} == {("role_order", 4)}


@pytest.mark.parametrize(
    "error", ["", "{", "Overloaded", "[1, null]", "prompt", "invalid x-api-key"]
)
def test_other_errors_are_about_neither(error):
    assert (too_long(error), rate_limited(error), place_in(error)) == (None, None, None)
