"""Scripts are lines that people type, or transcripts that they paste."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    CustomMessage,
    InvalidValue,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.script import read_draft, read_script, unknown_role, write_draft


def call(name: str, arguments: str | None = None) -> AiMessage:
    return AiMessage(None, (ToolExecutionRequest(None, name, arguments),))


def result(name: str | None, text: str) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(None, name, text)


def test_each_line_is_a_message():
    script = (
        'system: Be brief.\nuser: first\n  second\ncall: find({"id": 7})\nresult: found\nAI: ok'
    )
    assert read_script(script) == [
        SystemMessage("Be brief."),
        UserMessage("first\n  second"),
        call("find", '{"id": 7}'),
        result("find", "found"),
        AiMessage("ok"),
    ]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("user: hi\nassistant: hello\nTool: 7", (2, "assistant")),
        ("user: hi\n  Human : hello", (2, "Human")),
        ("user: see https://example.org\nat 12:30\nhttps://example.org\n- a: b", None),
        ('call: find({\n"id": 7\n})', None),
        ('[{"role": "user",\ncontent: "no"}]', None),
        ("user: one\nai: two\n\n  system: three", None),
    ],
)
def test_a_word_before_a_colon_that_is_no_role_is_found(script, found):
    assert unknown_role(script) == found


@pytest.mark.parametrize(
    ("script", "messages"),
    [
        ("user: note: buy milk", [UserMessage("note: buy milk")]),
        ("\n \nuser: hi\n\n", [UserMessage("hi")]),
        ("call: now", [call("now")]),
        ("call: find(\n1\n)", [call("find", "\n1\n")]),
        ("result: found", [result(None, "found")]),
        (
            "call: find(1)\ncall: weigh(2)\nresult: a\nresult: b\nresult: c",
            [
                call("find", "1"),
                call("weigh", "2"),
                result("find", "a"),
                result("weigh", "b"),
                result("weigh", "c"),
            ],
        ),
        (
            "call: find(1)\nuser: no\ncall: weigh(2)\nresult: b",
            [call("find", "1"), UserMessage("no"), call("weigh", "2"), result("weigh", "b")],
        ),
        ('[{"role":"user","content":"hi"}]', [UserMessage("hi")]),
    ],
)
def test_a_script_is_read(script, messages):
    assert read_script(script) == messages


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_break_ends_a_line(mark):
    assert read_script(f"user: one{mark}ai: two\r\nai: three") == [
        UserMessage(f"one{mark}ai: two"),
        AiMessage("three"),
    ]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("hello", "the first line must begin with a role: user:, ai:, system:, call: or result:"),
        ("{", "not valid JSON"),
        ("[]", "found: the text is an empty list"),
        ("{}", "found: the text is an empty object"),
        ('[{"role":"user","content":1}]', r"conversation 1: \.\[0\]: content must be"),
    ],
)
def test_other_text_is_refused(bad, why):
    with pytest.raises(InvalidValue, match=why):
        read_script(bad)


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("user", UserMessage("user: hi")),
        ("ai", AiMessage("user: hi")),
        ("system", SystemMessage("user: hi")),
        ("result", result(None, "user: hi")),
        ("script", UserMessage("hi")),
    ],
)
def test_only_the_role_script_splits_a_draft(role, message):
    assert read_draft(role, "user: hi") == [message]


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        (UserMessage("hello\nthere"), ("user", "hello\nthere")),
        (SystemMessage("Be brief."), ("system", "Be brief.")),
        (AiMessage("ok"), ("ai", "ok")),
        (result(None, "found"), ("result", "found")),
        (call("find", '{"id": 7}'), ("script", 'call: find({"id": 7})')),
        (call("now"), ("script", "call: now")),
    ],
)
def test_a_draft_is_written_as_it_was_typed(message, typed):
    assert write_draft(message) == typed
    assert read_draft(*typed) == [message]


@pytest.mark.parametrize(
    "message",
    [
        result("find", "found"),
        AiMessage("I look", (ToolExecutionRequest("1", "find", "{}"),)),
        UserMessage("hello", name="ada"),
        UserMessage(" "),
        CustomMessage({"a": 1}),
    ],
)
def test_a_draft_that_cannot_be_typed_is_written_as_json(message):
    role, text = write_draft(message)
    assert role == "script"
    assert read_draft(role, text) == [message]
