"""Any file, body or row is read as messages or refused with one of our errors."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory.exceptions import InvalidValue
from chatmemory.formats import FORMATS, parse_messages, read_transcripts, render_messages
from chatmemory.formats.script import read_draft
from chatmemory.messages.codec import decode_json, load_json, message_from_json, message_to_json

from .budget import search, settings_of

# Words of all the formats, so that values come close to what a parser looks for.
_NAMES = """type text contents attributes toolExecutionRequests id name arguments toolName isError
thinking image url base64Data mimeType detailLevel audio video pdfFile role content tool_calls
function function_call tool_call_id reasoning_content refusal image_url detail input_audio data
format file file_data filename from value conversations messages traj system tools task_id trial"""
_WORDS = """SYSTEM USER AI TOOL_EXECUTION_RESULT CUSTOM TEXT IMAGE AUDIO VIDEO PDF HIGH low auto
system developer user assistant tool function text image_url input_audio file refusal human gpt
function_call observation data:image/png;base64,QQ== data:application/pdf;base64,QQ== [] {
https://example.com/a.png {"name":"find","arguments":{}}"""
NAMES, WORDS = _NAMES.split(), _WORDS.split()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=8),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=3),
)
names = st.sampled_from(NAMES) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
kinds = st.fixed_dictionaries({"type": st.sampled_from(WORDS[:10]) | scalars})
roles = st.fixed_dictionaries({"role": st.sampled_from(WORDS) | scalars, "content": values})
turns = st.fixed_dictionaries({"from": st.sampled_from(WORDS) | scalars, "value": scalars})
heads = st.one_of(kinds, roles, turns)
messages = st.builds(lambda rest, head: {**rest, **head}, st.dictionaries(names, values), heads)
files = st.one_of(
    values,
    st.lists(messages, max_size=4),
    st.fixed_dictionaries({"id": scalars, "messages": st.lists(messages, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"conversations": st.lists(messages, min_size=1, max_size=3)}),
)
mangled = st.builds(
    lambda text, n, junk: text[:n] + junk + text[n:],
    st.builds(json.dumps, files),
    st.integers(0, 200),
    st.text(max_size=4),
)


lines = st.sampled_from(["user: ", "ai:", "call: f(", "call: {", "result:", "system:", ")", ""])
scripts = st.lists(st.builds(str.__add__, lines, st.text(max_size=6))).map("\n".join)
roles_of_drafts = st.sampled_from(["user", "ai", "result", "system", "script"])


def message(text):
    written = message_to_json(message_from_json(text))
    assert message_to_json(message_from_json(written)) == written


def messages_in(format, turns):
    read = parse_messages(turns, format).messages
    for other in (name for name in FORMATS if FORMATS[name].render):
        rendered = render_messages(read, other)
        json.dumps(rendered.value)
        with contextlib.suppress(InvalidValue):
            parse_messages(rendered.value, other)


def file(text, format):
    with contextlib.suppress(InvalidValue):
        read_transcripts(text.encode("utf-8", "surrogatepass"), format)
    for refused in read_transcripts(text, format).refused:
        refused.where.encode()


texts = st.builds(json.dumps, files) | mangled | st.text()
formats = st.sampled_from(["auto", *FORMATS])
PARSERS = {
    "a message": (message, st.builds(json.dumps, messages) | mangled | st.text()),
    "a body": (load_json, mangled | st.text()),
    "arguments": (decode_json, mangled | st.text()),
    "a list": (messages_in, st.sampled_from([*FORMATS]), st.lists(messages, max_size=4) | values),
    "a file": (file, texts, formats),
    "any bytes": (read_transcripts, st.binary(max_size=60)),
    "a draft": (read_draft, roles_of_drafts, scripts | mangled),
}


@pytest.mark.parametrize("name", PARSERS)
def test_whatever_is_given_is_read_or_refused(name):
    read, *given_values = PARSERS[name]

    @settings_of(100)
    @given(st.tuples(*given_values))
    def anything(given):
        with contextlib.suppress(InvalidValue):
            read(*given)

    search(anything)
