"""JSON files are read in pieces, with the values and the errors of texts that are read at once."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.codec import JsonBounds, json_text, load_json, load_json_file
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.field_checks import DEPTH_MAX

texts = st.text('a"\\\n\u00e9\u2028\N{SLOTH}', max_size=12)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
)
PLACE = st.integers(0, 200)


@pytest.fixture(params=[1, 7, 2**18], autouse=True)
def pieces(request, monkeypatch):
    monkeypatch.setattr(json_text, "PIECE", request.param)


def answer(read, *given):
    try:
        return read(*given)
    except InvalidMessage as error:
        return str(error)


@given(values, st.booleans(), st.sampled_from([None, 0, 2]))
def test_a_value_is_what_it_is_at_once(value, is_ascii, indent):
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert load_json_file(StringIO(text, newline="\n")) == load_json(text) == value


@given(values, PLACE, st.sampled_from(["", ",", "]", "}", ":", '"', "1", "\\", "\n", " ", "tru"]))
def test_an_error_is_what_it_is_at_once(value, place, replaced):
    text = "[" + json.dumps(value, indent=1) + "]"
    place %= len(text)
    text = text[:place] + replaced + text[place + 1 :]
    if text.startswith("["):  # else there may be several values
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
        '{"a":1,"a":2}',
        json.dumps(dict.fromkeys(range(50_001))),
    ],
)
def test_what_is_refused_of_a_text_is_refused_of_a_file(text):
    assert answer(load_json_file, StringIO(text)) == answer(load_json, text)


def test_what_is_nested_without_end_is_refused():
    assert "nested too deeply" in answer(load_json_file, StringIO("[" * 100_000))


def test_a_property_that_is_there_twice_is_known():
    assert load_json_file(StringIO('[{"a":1,"a":2}]'))[0].twice == ("a",)


def test_lines_are_values():
    file = StringIO('{"a":1}\r\n\n [2]\n"\u2028"\n', newline="\n")
    assert load_json_file(file) == [{"a": 1}, [2], "\u2028"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{} {}", "Extra data: line 1 column 4 (char 3)"),
        ("{}\n{}\n[1 2]", "Expecting ',' delimiter: line 3 column 4 (char 9)"),
        ("{}\n[1,\n2", "Expecting ',' delimiter: line 3 column 2 (char 8)"),
    ],
)
def test_the_line_of_an_error_is_told(text, why):
    assert answer(load_json_file, StringIO(text)) == f"not valid JSON: {why}"


def test_the_bounds_are_held():
    bounds = JsonBounds(10_000, 5_000, "as the setting says")
    assert load_json_file(StringIO("[1,2,3]"), bounds) == [1, 2, 3]
    assert "10,000 bytes of memory, as the" in answer(
        load_json_file, StringIO("[" + '{"a":"b"},' * 100 + "{}]"), bounds
    )
    too_long = StringIO('["' + "a" * json_text.PIECE * 2 + "a" * 9_000)
    assert "a text in the JSON has more than 5,000 ch" in answer(load_json_file, too_long, bounds)
