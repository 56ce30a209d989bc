"""Windows with a provider's known verdict, and the linter's findings about them."""

from __future__ import annotations

import json
from typing import Any

from chatmemory import Finding, lint
from chatmemory.formats import parse_messages, parse_objects


def found_in(window: dict[str, Any]) -> list[Finding]:
    messages = parse_messages(window["window"], window["format"]).messages
    return lint(messages, provider=window["provider"], model=window.get("model"))


def test_each_window_gets_the_verdict_of_its_provider(data_file):
    for each in json.loads(data_file("provider_windows.json").read_text("utf-8")):
        found = found_in(each)
        is_refused = any(finding.severity == "refused" for finding in found)
        if each["verdict"] == "C":
            assert any(
                finding.condition in finding.message for finding in found if finding.condition
            )
        else:
            assert is_refused == (each["verdict"] == "R"), (each["what"], found)


def test_a_rule_that_depends_on_the_model_refuses_only_if_it_is_known():
    window = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "It is"}]
    messages = parse_messages(window, "anthropic").messages

    def severities(model: str | None) -> list[str]:
        return [each.severity for each in lint(messages, provider="anthropic", model=model)]

    assert severities(None) == severities("of-my-own") == ["conditional"]
    assert severities("claude-opus-4-6") == severities("claude-sonnet-5") == ["refused"]
    assert severities("claude-sonnet-4-20250514") == severities("claude-3-7-sonnet") == []


def test_a_request_that_continues_a_stored_one_is_not_judged_as_a_whole():
    output = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
    request = {"model": "gpt-5", "input": [output]}

    def rules(request: dict[str, Any]) -> list[str]:
        messages = parse_objects(request, "openai_responses").messages
        return [each.rule for each in lint(messages, provider="openai_responses")]

    assert rules(request) == ["orphan_result"]
    assert rules({**request, "previous_response_id": "resp_1"}) == []
    assert rules({**request, "conversation": {"id": "conv_1"}}) == []


def test_the_longest_values_that_are_taken():
    def rules(provider: str, id: str, name: str = "find") -> list[str]:
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        window = [
            {"role": "user", "content": "When?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "found"},
        ]
        found = lint(parse_messages(window, "openai_chat").messages, provider=provider)
        return [each.rule for each in found]

    assert rules("openai", "c" * 40, "n" * 64) == []
    assert rules("openai", "c" * 41, "n" * 65) == ["call_id_form", "tool_name"]
    assert rules("bedrock", "c" * 64, "n" * 64) == []
    assert rules("bedrock", "c" * 65, "n" * 65) == ["call_id_form", "tool_name"]
    assert rules("anthropic", "c" * 200, "n" * 200) == []
    assert rules("mistral", "c" * 9) == []
    assert rules("mistral", "c" * 8) == rules("mistral", "c" * 10) == ["call_id_form"]
