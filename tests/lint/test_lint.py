"""The rules of providers: two examples each, pairing, and the repairs of a window."""

from __future__ import annotations

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
from chatmemory.formats import parse_objects
from chatmemory.lint import PROVIDERS, Turn, verdicts
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import FORMATS_OF, example
from chatmemory.lint.repairs import PLACEHOLDER

from ..properties import examples

WHOLE = ("nothing_to_send", "long_window")  # faults of the window as a whole
FOLLOWS = "No. Tool result {} has no matching tool call."
AGAIN = "No. Tool result {} answers the same tool call as {}."
ANSWERED = "No. Tool call {} is not answered"
MINDED = "Accepted, but mishandled: "
FIRST = f"{MINDED}the first message{{}}, {{}}, is not from the user."


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
def test_each_law_finds_its_bad_example_and_not_its_good_one(rule, provider):
    bad, good = (example(each, rule.example_provider) for each in (rule.bad, rule.good))
    found = [each for each in lint(bad, provider=provider) if each.rule == rule.id]
    if provider not in rule.laws:
        assert found == []
        return
    law = rule.laws[provider]
    assert {each.severity for each in found} == {law.severity}
    assert all(each.repairs in ((), rule.repairs) for each in found)
    assert all(each.positions or rule.id in WHOLE for each in found)
    assert law.source.startswith("https://")
    assert bool(law.condition) == (law.severity == "conditional")
    assert rule.id not in {each.rule for each in lint(good, provider=provider)}
    if provider == rule.example_provider:
        assert not any(each.severity == "refused" for each in lint(good, provider=provider))


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
        ("SAU", "Yes.", FIRST.format(" after the system message", "#2")),
        ("Bb", "Yes.", FIRST.format("", "#1")),
        ("UU", "Yes.", f"{MINDED}user messages #1 and #2 follow each other directly."),
        ("UAA", "Yes.", f"{MINDED}AI messages #2 and #3 follow each other directly."),
        ("S", "Yes.", "Not yet. There is only a system message, and no other message to send."),
        ("", "Not yet. There is no message to send.", None),
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


@pytest.mark.parametrize(
    ("letters", "rules"),
    [
        ("UbB", {"results_apart"}),
        ("UBUb", set()),  # a result may stand anywhere behind its call
        ("UBUbb", {"duplicate_result"}),
        ("Ub", {"orphan_result"}),
        ("UDd", {"dangling_call"}),
    ],
)
def test_openai_responses_pairs_by_ids_alone(letters, rules):
    assert {each.rule for each in lint(window(letters), provider="openai_responses")} == rules


def test_calls_without_ids_are_paired_in_their_order():
    said = [UserMessage("Hello"), call(None, None), result(None), result(None), result(None)]
    found = lint(said, provider="openai")
    rules = [(each.rule, each.positions) for each in found if each.severity == "refused"]
    assert rules == [("duplicate_result", (4, 3))]
    assert [each.rule for each in found][:2] == ["missing_call_id", "missing_call_id"]


def test_tools_of_the_provider_need_no_result_but_their_results_need_a_call():
    asked = [{"role": "user", "content": "Look."}]
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    said = {"type": "text", "text": "Found."}

    def rules(*blocks):
        turn = {"role": "assistant", "content": [*blocks]}
        found = lint(parse_objects([*asked, turn], "anthropic").messages, provider="anthropic")
        return [each.rule for each in found if each.severity != "conditional"]

    assert rules(call, answer, said) == rules(call, said) == []
    assert rules(answer, said) == ["orphan_result"]


@pytest.mark.parametrize(
    "own", [{"types": [[]]}, {"types": {"1": []}}, {"type": {}}, {"differs": []}, {"joins": 1}, 7]
)
def test_attributes_that_a_client_made_up_do_no_harm(own):
    said = dict.fromkeys(FORMATS_OF.values(), own)
    messages = [
        SystemMessage("Be brief.", said),
        UserMessage("Hello", attributes=said),
        AiMessage(None, [ToolExecutionRequest("a1B2c3D4e", "find", "{}")], attributes=said),
        ToolExecutionResultMessage("a1B2c3D4e", "find", "found", attributes=said),
    ]
    for provider in PROVIDERS:
        found = lint(messages, provider=provider)
        assert {each.severity for each in found} <= {"conditional"}


def test_findings_call_messages_by_their_numbers():
    (finding,) = lint(window("Ub"), provider="anthropic", numbers=[7, 12])
    assert finding.message == "Tool result #12 has no matching tool call."
    assert finding.error.startswith("messages.1.content.0: unexpected `tool_use_id`")
    assert (finding.positions, finding.repairs) == ((1,), ("drop_result",))


@pytest.mark.parametrize(
    ("messages", "provider", "error"),
    [
        (window("U"), "x", InvalidValue),
        (["Hello"], "openai", InvalidMessage),
        (UserMessage("Hello"), "openai", InvalidMessage),
    ],
)
def test_what_cannot_be_linted(messages, provider, error):
    for ask in (lint, repair):
        with pytest.raises(error):
            ask(messages, provider=provider)


# Repairs


@pytest.mark.parametrize(
    ("letters", "provider", "repaired", "done"),
    [
        ("SBbAUA", "gemini", "SUA", ["begin_with_user"] * 3),
        ("ABbUA", "bedrock", "UA", ["begin_with_user"] * 3),
        ("AUA", "gemini", "AUA", []),
        ("SUBbA", "anthropic", "SUBbA", []),
        ("Ub", "openai", "U", ["drop_result"]),
        ("UBbbA", "openai", "UBbA", ["drop_duplicate"]),
        ("UBU", "gemini", "UBbU", ["add_placeholder"]),
        ("UDeA", "openai", "UDedA", ["add_placeholder"]),
        ("UBUbA", "anthropic", "UBbUA", ["move_result"]),
        ("UBUbA", "openai_responses", "UBUbA", []),
        ("UbB", "openai", "UBb", ["move_result"]),
        ("USA", "anthropic", "SUA", ["system_first"]),
        ("SUSA", "anthropic", "SUA", ["drop_duplicate"]),
        ("USA", "openai", "USA", []),
    ],
)
def test_repairs_of_a_window(letters, provider, repaired, done):
    found = repair(window(letters), provider=provider)
    expected = window(repaired)
    assert [(each.type, getattr(each, "id", None)) for each in found.messages] == [
        (each.type, getattr(each, "id", None)) for each in expected
    ]
    assert [each.repair for each in found.done] == done
    assert not any(each.severity == "refused" for each in found.left)


def test_a_placeholder_says_what_it_is_and_names_the_tool():
    found = repair(window("UB"), provider="openai", numbers=[3, 9])
    assert found.messages[-1] == result("b", PLACEHOLDER)
    assert found.sources == [0, 1, None]
    (done,) = found.done
    assert (done.position, done.what) == (1, "Tool call #9: a placeholder result was added.")


ids = st.sampled_from(["1", "2", "3", None])
said = st.one_of(
    st.builds(UserMessage, st.sampled_from(["Hello", ""])),
    st.builds(AiMessage, st.sampled_from(["Hi", ""])),
    st.builds(SystemMessage, st.sampled_from(["Be brief.", "Be kind."])),
    st.lists(ids, min_size=1, max_size=2).map(lambda chosen: call(*chosen)),
    st.builds(result, ids),
    st.builds(result, ids),
)


@examples(300)
@given(st.lists(said, max_size=9), st.sampled_from(sorted(PROVIDERS)))
def test_a_mended_window_is_clean_or_says_what_remains(messages, provider):
    found = repair(messages, provider=provider)
    left = lint(found.messages, provider=provider)
    assert [(each.rule, each.positions) for each in left] == [
        (each.rule, each.positions) for each in found.left
    ]
    assert not any(each.repairs for each in left)
    if not any(each.repairs for each in lint(messages, provider=provider)):
        assert (list(found.messages), list(found.done)) == (messages, [])
    kept = [source for source in found.sources if source is not None]
    assert [found.messages[found.sources.index(source)] for source in kept] == [
        messages[source] for source in kept
    ]
    left_out = {each.position for each in found.done if each.repair.startswith(("drop", "begin"))}
    moved = {each.position for each in found.done if each.repair != "add_placeholder"}
    assert [each for each in kept if each not in moved] == sorted(set(kept) - moved)
    assert {*kept, *left_out} == {*range(len(messages))}
    assert left_out.isdisjoint(kept)
    again = repair(found.messages, provider=provider)
    assert (list(again.messages), list(again.done)) == (list(found.messages), [])
