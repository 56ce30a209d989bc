"""A message is its frame and its text; no text is in both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    InvalidMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_to_json,
)
from chatmemory.core.codec import (
    GAP,
    frame_and_size,
    frame_of,
    message_from_frame,
    payload_of,
    write_json,
)
from chatmemory.core.contents import Image, ImageContent, TextContent
from chatmemory.core.messages import text_of
from tests.core.test_codec import messages, texts

all_messages = st.one_of(
    messages,
    st.builds(SystemMessage, texts.filter(lambda text: any(sign > " " for sign in text))),
    st.builds(ToolExecutionResultMessage, texts, texts, texts),
    st.builds(UserMessage, st.lists(st.builds(TextContent, texts), min_size=1, max_size=3)),
    st.builds(CustomMessage, st.dictionaries(texts, texts)),
    st.builds(AiMessage, texts),
)
SINGLE = [
    SystemMessage("Be brief."),
    UserMessage("hi"),
    UserMessage("text"),
    UserMessage('"text":"hi"', name='"text":', attributes={"text": "hi"}),
    AiMessage("welcome"),
    AiMessage("", thinking="hm", attributes={"a": {"text": "b"}}),
    ToolExecutionResultMessage("1", "find", "\x01\x1f\\ \N{SLOTH}"),
    UserMessage("word \N{SLOTH}" * 70_000),
]
OTHERS = [
    UserMessage([TextContent("one"), TextContent("two")]),
    UserMessage([TextContent("what is this?"), ImageContent(Image(base64_data="00"))]),
    AiMessage("I look.", (ToolExecutionRequest("1", "find", "{}"),)),
    AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),)),
    CustomMessage({"text": "hi"}),
]


@given(all_messages)
def test_a_message_is_its_frame_and_its_text(message):
    frame, text, payload = frame_of(message), text_of(message), message_to_json(message)
    assert frame_and_size(message) == (frame, len(payload.encode(errors="surrogatepass")))
    assert payload_of(frame, text) == payload
    assert payload_of(payload, text) == payload
    assert message_from_frame(frame, text) == message_from_frame(payload, text) == message


@pytest.mark.parametrize("message", SINGLE)
def test_one_text_is_not_in_the_frame(message):
    frame, text = frame_of(message), text_of(message)
    assert payload_of(frame, text) == message_to_json(message)
    assert frame.count(GAP) == 1
    assert frame == message_to_json(message).replace(
        f'"text":{write_json(text)}', f'"text":{GAP}', 1
    )


@pytest.mark.parametrize("message", OTHERS)
def test_a_frame_without_a_gap_is_all_of_the_json(message):
    assert frame_of(message) == message_to_json(message)


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (frame_of(SystemMessage("Be brief.")), " "),
        (frame_of(UserMessage("hi")).replace("USER", "NOBODY"), "hi"),
        (f"{GAP}{GAP}", "hi"),
        ("{", "hi"),
    ],
)
def test_what_is_no_message_is_refused(frame, text):
    with pytest.raises(InvalidMessage):
        message_from_frame(frame, text)
