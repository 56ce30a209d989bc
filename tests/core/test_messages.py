from __future__ import annotations

import copy
import pickle

import pytest

from chatmemory import (
    AiMessage,
    AudioContent,
    CustomMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.estimators import remember_tokens
from chatmemory.core.messages import Image, text_of

CALL = ToolExecutionRequest("1", "find", '{"id":7}')


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (SystemMessage("Be brief."), "Be brief."),
        (UserMessage("Where is it?"), "Where is it?"),
        (
            UserMessage([TextContent("See:"), ImageContent("https://a/b.png")]),
            "See:\n[image https://a/b.png]",
        ),
        (
            UserMessage([ImageContent(Image(base64_data="AAAA")), AudioContent()]),
            "[image]\n[audio]",
        ),
        (UserMessage([ImageContent("data:image/png;base64,AAAA")]), "[image]"),
        (AiMessage("Let me look.", (CALL,)), 'Let me look.\nfind({"id":7})'),
        (AiMessage(None, (CALL, CALL)), 'find({"id":7})\nfind({"id":7})'),
        (AiMessage(), ""),
        (ToolExecutionResultMessage("1", "find", "Gone."), "Gone."),
        (CustomMessage({"a": [1, "é"]}), '{"a":[1,"é"]}'),
    ],
)
def test_a_message_has_one_text_to_search_and_show(message, text):
    assert text_of(message) == text


def test_messages_with_attributes_can_be_keys():
    said = UserMessage("hello", attributes={"a": [1]})
    assert {said: 1}[UserMessage("hello", attributes={"a": [1]})] == 1
    assert said != UserMessage("hello")


def test_cached_token_counts_are_not_copied():
    message, same = UserMessage("hello"), UserMessage("hello")
    before = repr(message)
    remember_tokens(message, "custom:words", 1)
    assert (message, hash(message), repr(message)) == (same, hash(same), before)
    for copied in (copy.copy(message), pickle.loads(pickle.dumps(message))):
        assert copied == message
        assert vars(copied) == vars(same)


def test_a_blank_system_message_is_refused():
    with pytest.raises(ValueError, match="text cannot be null or blank"):
        SystemMessage("  \n")
