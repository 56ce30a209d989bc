from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    InvalidMessage,
    ToolExecutionRequest,
    UserMessage,
    message_from_json,
    message_to_json,
    messages_from_json,
    text_of,
)
from chatmemory.core.codec import write_json

texts = st.text(max_size=50)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
requests = st.builds(ToolExecutionRequest, texts | st.none(), texts | st.none(), texts | st.none())
messages = st.one_of(
    st.builds(UserMessage, texts, texts.filter(bool) | st.none(), st.dictionaries(texts, values)),
    st.builds(
        AiMessage,
        texts | st.none(),
        st.lists(requests, max_size=3),
        texts | st.none(),
        st.dictionaries(texts, values, max_size=3),
    ),
)


@given(messages)
def test_a_written_message_reads_back_equal(message):
    assert message_from_json(message_to_json(message)) == message


@given(st.text(max_size=60) | st.builds(lambda m: message_to_json(m)[:-3], messages))
def test_any_text_is_a_message_or_an_invalid_message(text):
    with contextlib.suppress(InvalidMessage):
        message_to_json(message_from_json(text))


@pytest.mark.parametrize(
    "hostile",
    [
        '{"type":"CUSTOM","attributes":' + '{"a":' * 10_000 + "1" + "}" * 10_001,
        '{"type":"CUSTOM","attributes":{"n":' + "9" * 1_000_000 + "}}",
        '{"type":"CUSTOM","attributes":{"n":1e400}}',
        '{"type":"CUSTOM","attributes":{"n":NaN}}',
    ],
    ids=["deep", "long number", "infinite", "NaN"],
)
def test_hostile_json_is_refused(hostile):
    with pytest.raises(InvalidMessage):
        message_from_json(hostile)


def test_errors_name_the_property():
    with pytest.raises(InvalidMessage, match="'foo'"):
        message_from_json('{"type":"USER","contents":[{"type":"TEXT","text":"x"}],"foo":1}')


def test_numbers_are_written_as_java_writes_them():
    written = message_to_json(
        UserMessage("x", attributes={"a": 1e20, "b": 1.5, "c": 1e-5, "d": 1e7})
    )
    assert '"a":1.0E20,"b":1.5,"c":1.0E-5,"d":1.0E7' in written


@pytest.mark.parametrize(
    ("number", "java"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-0.000747, "-7.47E-4"),
        (9999999.0, "9999999.0"),
        (-12345678.9, "-1.23456789E7"),
        (1e15, "1.0E15"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_float_is_written_in_javas_notation(number, java):
    assert write_json(number) == java


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_writing_does_not_change_floats(number):
    assert float(write_json(number)) == number


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [("TRUE", True), (" false ", False), ("null", None), ("", None), ("0", ...), ("tRuE", ...)],
)
def test_flags_are_read_in_jacksons_spellings(spelling, meant):
    text = (
        '{"type":"TOOL_EXECUTION_RESULT","id":"1","toolName":"t","text":"x","isError":"'
        + spelling
        + '"}'
    )
    if meant is ...:
        with pytest.raises(InvalidMessage, match="isError must be true or false"):
            message_from_json(text)
    else:
        assert message_from_json(text).is_error is meant


def test_null_items_are_read_or_refused():
    text = '[{"type":"USER","contents":[{"type":"TEXT","text":"a"}]},null]'
    assert messages_from_json(text) == [UserMessage("a"), None]
    with pytest.raises(InvalidMessage, match=r"messages\[1\] is null"):
        messages_from_json(text, nulls=False)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_text_of_attributes_is_what_python_writes(value):
    as_json = json.dumps({"a": value}, ensure_ascii=False, separators=(",", ":"))
    assert text_of(CustomMessage({"a": value})) == as_json
