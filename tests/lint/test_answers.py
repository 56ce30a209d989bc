"""What providers say about prompts that are too long, about rates, and about places."""

from __future__ import annotations

import json

import pytest

from chatmemory.lint.answers import place_in, rate_limited, too_long
from chatmemory.lint.recognition import recognized

OPENAI = "This model's maximum context length is 8192 tokens. However, "
LONG = {
    "prompt is too long: 215000 tokens > 200000 maximum": (215_000, 200_000, 200_000, 15_000),
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input "
    "length or `max_tokens` and try again": (188_240, 200_000, 178_667, 9_573),
    f"{OPENAI}your messages resulted in 10010 tokens. Please reduce the length of the messages.": (
        10_010,
        8_192,
        8_192,
        1_818,
    ),
    f"{OPENAI}you requested 8500 tokens (7500 in the messages, 1000 in the completion).": (
        7_500,
        8_192,
        7_192,
        308,
    ),
    "Your input exceeds the context window of this model. Please adjust your input.": (
        None,
        None,
        None,
        None,
    ),
    "The input token count (1048577) exceeds the maximum number of tokens allowed (1048575).": (
        1_048_577,
        1_048_575,
        1_048_575,
        2,
    ),
    "The input token count exceeds the maximum number of tokens allowed 32,768.": (
        None,
        32_768,
        32_768,
        None,
    ),
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
    "context length": (40_000, 32_768, 32_768, 7_232),
    "ValidationException: Too many input tokens. Max input tokens: 8192, request input token "
    "count: 9001": (9_001, 8_192, 8_192, 809),
    "Input is too long for requested model.": (None, None, None, None),
}


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("error", LONG)
def test_a_prompt_that_is_too_long_has_its_numbers(error, is_json):
    text = json.dumps({"type": "error", "error": {"message": error}}) if is_json else error
    found = too_long(text)
    assert found is not None
    assert (found.tokens, found.maximum, found.fits, found.over) == LONG[error]
    assert rate_limited(text) is None


RATES = {
    "Rate limit reached for gpt-4o in organization org-a on tokens per min (TPM): Limit 30000, "
    "Used 29000, Requested 2000. Please try again in 2s.": (30_000, "tokens", "minute", "2s"),
    "Request too large for gpt-4o in organization org-a on tokens per min (TPM): Limit 30000, "
    "Requested 45000.": (30_000, "tokens", "minute", ""),
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute.": (
        40_000,
        "input tokens",
        "minute",
        "",
    ),
    '{"error": {"message": "Rate limit reached"}}': (None, "", "", ""),
    '{"type": "rate_limit_error"}': (None, "", "", ""),
    "429 RESOURCE_EXHAUSTED": (None, "", "", ""),
    "Resource has been exhausted (e.g. check quota).": (None, "", "", ""),
    "Requests rate limit exceeded": (None, "", "", ""),
    "ThrottlingException: Too many tokens, please wait before trying again.": (None, "", "", ""),
}


@pytest.mark.parametrize("error", RATES)
def test_a_rate_is_no_fault_of_a_message(error):
    found = rate_limited(error)
    assert found is not None
    assert (found.limit, found.unit, found.period, found.wait) == RATES[error]
    assert too_long(error) is None


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
