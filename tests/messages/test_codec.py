"""Messages as JSON, by Jackson's rules; frames, in which a text is stored once; and files, read in
pieces with the values and the errors of texts that are read at once.
"""

from __future__ import annotations

import contextlib
import json
import re
from io import StringIO
from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    InvalidMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    load_json,
    message_from_json,
    message_to_json,
    messages_from_json,
    text_of,
)
from chatmemory.messages.codec import (
    DEPTH_MAX,
    GAP,
    JsonBounds,
    attributes_beside,
    bytes_of,
    frame_and_size,
    frame_of,
    json_lines,
    json_text,
    message_from_frame,
    payload_of,
    stored_json,
    without_attributes,
    write_json,
)
from chatmemory.messages.contents import Image, ImageContent, TextContent
from chatmemory.messages.message import with_attributes
from chatmemory.messages.texts import readable_stored_text, readable_text

from ..properties import examples

texts = st.text(max_size=50)
hard = st.text('a"\\\n\u00e9\u2028\N{SLOTH}', max_size=12)
floats = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | hard,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hard, inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(texts, values, max_size=2)
requests = st.builds(ToolExecutionRequest, texts | st.none(), texts | st.none(), texts | st.none())
messages = st.one_of(
    st.builds(SystemMessage, texts.filter(lambda text: any(sign > " " for sign in text))),
    st.builds(UserMessage, texts, texts.filter(bool) | st.none(), attributes),
    st.builds(UserMessage, st.lists(st.builds(TextContent, texts), min_size=1, max_size=3)),
    st.builds(
        AiMessage, texts | st.none(), st.lists(requests, max_size=3), texts | st.none(), attributes
    ),
    st.builds(ToolExecutionResultMessage, texts, texts, texts),
    st.builds(CustomMessage, attributes),
)


def bare(message: ChatMessage) -> ChatMessage:
    """Return a message without attributes, unless they are its content."""
    return message if isinstance(message, CustomMessage) else with_attributes(message, {})


@given(st.text(min_size=1).filter(str.strip), attributes)
def test_the_attributes_of_a_system_message_stand_beside_its_json(text, own):
    message = SystemMessage("." + text, own)
    frame, payload, beside = frame_of(message), message_to_json(message), attributes_beside(message)
    assert payload == message_to_json(bare(message))
    assert stored_json(message) == payload + (beside or "")
    size = len(stored_json(message).encode(errors="surrogatepass"))
    assert frame_and_size(message) == (frame, size)
    read = message_from_frame(frame, message.text, beside)
    assert (read, read.attributes) == (message, own)
    assert (beside is None) == (not own)
    assert bytes_of(message) >= bytes_of(bare(message)) + sum(map(getsizeof, own))


@pytest.mark.parametrize("beside", ["{", "[]", "5"])
def test_invalid_attributes_are_refused(beside):
    with pytest.raises(InvalidMessage):
        message_from_frame('{"text":\x01,"type":"SYSTEM"}', "hi", beside)


@given(messages)
def test_a_message_reads_back_equal_from_its_json_and_from_its_frame_and_text(message):
    frame, text, payload = frame_of(message), text_of(message), message_to_json(message)
    assert message_from_json(payload) == message
    assert frame_and_size(message) == (frame, len(payload.encode(errors="surrogatepass")))
    assert payload_of(frame, text) == payload_of(payload, text) == payload
    assert message_from_frame(frame, text) == message_from_frame(payload, text) == message
    assert readable_stored_text(frame, text) == readable_text(message)
    assert without_attributes(payload) == without_attributes(message_to_json(bare(message)))
    assert message_from_json(without_attributes(payload)) == bare(message)
    if isinstance(message, CustomMessage):
        compact = {"ensure_ascii": False, "separators": (",", ":")}
        assert text == json.dumps(message.attributes, **compact)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "nested too deeply"),
        ('{"n":' + "9" * 1_000_000 + "}", "more than 4,300 digits"),
        ('{"n":1e400}', "too large"),
        ('{"n":NaN}', "NaN is not valid JSON"),
        ('{},"foo":1', "a CUSTOM message has no property 'foo'"),
    ],
    ids=["deep", "long number", "infinite", "NaN", "unknown"],
)
def test_hostile_json_is_refused_and_the_property_named(attributes, why):
    with pytest.raises(InvalidMessage, match=why):
        message_from_json('{"type":"CUSTOM","attributes":' + attributes + "}")


@pytest.mark.parametrize(
    ("number", "java"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_float_is_written_in_javas_notation(number, java):
    assert write_json(number) == java


@given(floats)
def test_writing_does_not_change_floats(number):
    assert float(write_json(number)) == number


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, [10**5_000]])
def test_values_that_json_cannot_express_are_not_written(value):
    with pytest.raises(InvalidMessage):
        write_json([value])


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [("TRUE", True), (" false ", False), ("null", None), ("", None), ("0", ...), ("tRuE", ...)],
)
def test_flags_are_read_in_jacksons_spellings(spelling, meant):
    result = {"type": "TOOL_EXECUTION_RESULT", "id": "1", "toolName": "t", "text": "x"}
    text = json.dumps({**result, "isError": spelling})
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


# Frames


CALL = (ToolExecutionRequest("1", "find", "{}"),)


@pytest.mark.parametrize(
    ("message", "gaps"),
    [
        (SystemMessage("Be brief."), 1),
        (UserMessage("text"), 1),
        (UserMessage('"text":"hi"', name='"text":', attributes={"text": "hi"}), 1),
        (AiMessage("", thinking="hm", attributes={"a": {"text": "b"}}), 1),
        (ToolExecutionResultMessage("1", "find", "\x01\x1f\\ \N{SLOTH}"), 1),
        (UserMessage([TextContent("one"), TextContent("two")]), 0),
        (UserMessage([TextContent("what is this?"), ImageContent(Image(base64_data="00"))]), 0),
        (AiMessage("I look.", CALL), 0),
        (AiMessage(None, CALL), 0),
        (CustomMessage({"text": "hi"}), 0),
    ],
)
def test_one_text_is_not_in_the_frame_and_a_frame_without_a_gap_is_all_of_the_json(message, gaps):
    payload, text = message_to_json(message), text_of(message)
    assert frame_of(message) == payload.replace(f'"text":{write_json(text)}', f'"text":{GAP}', gaps)
    assert frame_of(message).count(GAP) == gaps


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (frame_of(SystemMessage("Be brief.")), " "),
        (frame_of(UserMessage("hi")).replace("USER", "NOBODY"), "hi"),
        (f"{GAP}{GAP}", "hi"),
        ("{", "hi"),
    ],
)
def test_an_invalid_frame_is_refused(frame, text):
    with pytest.raises(InvalidMessage):
        message_from_frame(frame, text)


# Files


@pytest.fixture(params=[1, 7, 2**18])
def pieces(request, monkeypatch):
    """How many characters of a file are read at once."""
    monkeypatch.setattr(json_text, "PIECE", request.param)


def load_json_file(file, bounds=None):
    """The value of a file, or a list of the values of its lines."""
    values = [line.problem or line.value for line in json_lines(file, bounds)]
    return values[0] if len(values) == 1 else values


def answer(read, *given):
    try:
        return read(*given)
    except InvalidMessage as error:
        return str(error)


@examples(50)
@given(values, st.booleans(), st.sampled_from([None, 0, 2]))
def test_a_value_read_from_a_file_equals_the_value_read_at_once(pieces, value, is_ascii, indent):
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert load_json_file(StringIO(text, newline="\n")) == load_json(text) == value


@examples(50)
@given(
    values,
    st.integers(0, 200),
    st.sampled_from(["", ",", "]", "}", ":", '"', "1", "\\", "\n", " ", "tru"]),
)
def test_an_error_in_a_file_equals_the_error_of_the_whole_text(pieces, value, place, replaced):
    text = "[" + json.dumps(value, indent=1) + "]"
    place %= len(text)
    text = text[:place] + replaced + text[place + 1 :]
    is_of_lines = any(re.fullmatch(r"\s*\{.*\}\s*", line) for line in text.split("\n")[1:])
    if text.startswith("[") and not is_of_lines:  # else there may be several values
        found = answer(load_json_file, StringIO(text, newline="\n"))
        expected = answer(load_json, text)
        assert found == expected or "Extra data" in expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1e400]",
        "[NaN]",
        "[-Infinity]",
        "[01]",
        '{"a" 1}',
        "{a:1}",
        "[{}",
        "[1.]",
        "[" + "1" * 4_301 + "]",
        '["a\tb"]',
        '["\\ud8"]',
        '["\\x"]',
        "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
        "[" * DEPTH_MAX + "]" * DEPTH_MAX,
        '{"a":' * (DEPTH_MAX + 1) + "1" + "}" * (DEPTH_MAX + 1),
        '["\\ud83d"]',
        '["\\ud83e\\udda5"]',
    ],
)
def test_what_is_refused_of_a_text_is_refused_of_a_file(pieces, text):
    assert answer(load_json_file, StringIO(text)) == answer(load_json, text)


def test_an_object_has_up_to_50_000_properties():
    text = json.dumps(dict.fromkeys(range(50_001)))
    assert answer(load_json_file, StringIO(text)) == answer(load_json, text)
    assert "at most 50,000 properties, but has 50,001" in answer(load_json, text)


def test_what_is_special_of_a_file(pieces):
    assert "nested too deeply" in answer(load_json_file, StringIO("[" * 100_000))
    assert load_json_file(StringIO('[{"a":1,"a":2}]'))[0].twice == ("a",)
    lines = StringIO('{"a":1}\r\n\n [2]\n"\u2028"\n', newline="\n")
    assert load_json_file(lines) == [{"a": 1}, [2], "\u2028"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[] []", "Extra data: line 1 column 4 (char 3)"),
        ("[]\n[1 2]", "Expecting ',' delimiter: line 2 column 4 (char 6)"),
        ("[]\n[1,\n2", "Expecting ',' delimiter: line 3 column 2 (char 8)"),
    ],
)
def test_an_error_has_its_line(pieces, text, why):
    assert answer(load_json_file, StringIO(text)) == f"not valid JSON: {why}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a":1}\n{"b":\n{"c":3}\n', [(1, {"a": 1}), (2, "not JSON"), (3, {"c": 3})]),
        ('{"a":1}\n{"b":[1,\n', [(1, {"a": 1}), (2, "not JSON")]),
        ('{"a":1}{"b":2} {"c":3}\nnull', [(1, {"a": 1}), (1, {"b": 2}), (1, {"c": 3}), (2, None)]),
        (
            '{"a":1}\n\n{"b":2} cut\n{"c":3}',
            [(1, {"a": 1}), (3, {"b": 2}), (3, "not JSON"), (4, {"c": 3})],
        ),
        ('"content":"b"}\n{"c":3}', [(1, "not JSON"), (2, {"c": 3})]),
        (
            '{"a":1}\n[NaN]\n\0\0{"c":3}',
            [(1, {"a": 1}), (2, "not JSON: NaN is not valid JSON"), (3, "not JSON")],
        ),
    ],
)
def test_a_line_that_is_no_json_is_left_out_of_a_file_of_lines(pieces, text, lines):
    found = json_lines(StringIO(text, newline="\n"))
    assert [(line.number, line.problem or line.value) for line in found] == lines


@pytest.mark.parametrize("text", ['{\n"a": 1,\n{"b": 2}\n}', '[\n{"a": 1},\n{"b": 2\n]', '{"a":'])
def test_a_file_that_is_no_file_of_lines_is_refused_whole(pieces, text):
    with pytest.raises(InvalidMessage, match="not valid JSON"):
        list(json_lines(StringIO(text, newline="\n")))


def test_the_bounds_are_held(pieces):
    bounds = JsonBounds(10_000, 5_000, "as the setting says")
    assert load_json_file(StringIO("[1,2,3]"), bounds) == [1, 2, 3]
    many = StringIO("[" + '{"a":"b"},' * 100 + "{}]")
    assert "10,000 bytes of memory: as the" in answer(load_json_file, many, bounds)
    too_long = StringIO('["' + "a" * json_text.PIECE * 2 + "a" * 9_000)
    assert "a text in the JSON has more than 5,000 ch" in answer(load_json_file, too_long, bounds)


@given(st.text(max_size=60) | st.builds(lambda m: message_to_json(m)[:-3], messages))
def test_any_text_is_a_message_or_an_invalid_message(text):
    with contextlib.suppress(InvalidMessage):
        message_to_json(message_from_json(text))
