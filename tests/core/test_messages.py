from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from types import MappingProxyType

import pytest

from chatmemory import (
    AiMessage,
    AudioContent,
    CustomMessage,
    ImageContent,
    InvalidMessage,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_from_json,
    message_to_json,
)
from chatmemory.core.codec import DEPTH_MAX
from chatmemory.core.contents import DetailLevel, Image
from chatmemory.core.estimators import remember_tokens
from chatmemory.core.messages import text_of

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


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: SystemMessage(7), "text must be a string, not 7"),
        (lambda: UserMessage([TextContent(7)]), "text must be a string, not 7"),
        (lambda: UserMessage(["hello"]), "contents takes Content, not 'hello'"),
        (lambda: UserMessage("hello", name=7), "name must be a string, not 7"),
        (lambda: UserMessage("hello", attributes={7: 1}), "a JSON property is a string, not 7"),
        (lambda: UserMessage("hello", attributes={"a": [b""]}), "JSON cannot hold b''"),
        (lambda: UserMessage([ImageContent(Image(7))]), "url must be a string, not 7"),
        (
            lambda: ImageContent("https://a/b.png", "HIGH"),
            "detail_level takes DetailLevel, not 'HIGH'",
        ),
        (lambda: AudioContent("a.mp3"), "audio takes Audio, not 'a.mp3'"),
        (lambda: AiMessage(["hello"]), r"text must be a string, not \['hello'\]"),
        (lambda: AiMessage(None, ["find"]), "takes ToolExecutionRequest, not 'find'"),
        (
            lambda: ToolExecutionRequest("1", "find", {"id": 7}),
            r"arguments must be JSON text: ToolExecutionRequest.of\(name, {…}\) writes it",
        ),
        (
            lambda: ToolExecutionResultMessage("1", "find", "x", is_error="yes"),
            "is_error takes bool, not 'yes'",
        ),
        (lambda: CustomMessage({"a": {1}}), r"JSON cannot hold {1}"),
    ],
)
def test_what_could_not_be_read_back_is_refused(make, error):
    with pytest.raises(InvalidMessage, match=error):
        make()


NO_OBJECT = "attributes must be a dictionary, not "
NO_NUMBER = "JSON has no NaN and no Infinity"
WITH_ATTRIBUTES = [
    lambda attributes: UserMessage("hello", attributes=attributes),
    lambda attributes: AiMessage("hello", attributes=attributes),
    lambda attributes: ToolExecutionResultMessage("1", "find", "x", attributes=attributes),
    CustomMessage,
]


def nested(levels: int) -> dict:
    found: dict = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


def itself() -> dict:
    found: dict = {}
    found["a"], found["b"] = found, [found]
    return found


@pytest.mark.parametrize("make", WITH_ATTRIBUTES)
@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        *((wrong, NO_OBJECT) for wrong in (5, 0, False, "", "a", [], [("a", 1)], {1})),
        *(({"a": [number]}, NO_NUMBER) for number in (math.nan, math.inf, -math.inf)),
        (nested(DEPTH_MAX + 1), f"nested too deeply: at most {DEPTH_MAX} levels"),
        (nested(3_000), "nested too deeply"),
        (itself(), "nested too deeply"),
        ({"a": -(10**4_300)}, "a number has too many digits"),
    ],
)
def test_attributes_are_what_json_can_hold(make, attributes, error):
    with pytest.raises(InvalidMessage, match=error):
        make(attributes)


@pytest.mark.parametrize("make", WITH_ATTRIBUTES)
def test_attributes_are_any_mapping_or_none(make):
    assert make(None) == make({}) == make(MappingProxyType({}))
    attributes = {"a": [1, 2.5, None, True, ("x",)], "b": MappingProxyType({"c": {}})}
    assert make(MappingProxyType(attributes)).attributes == attributes
    for most in (make(nested(DEPTH_MAX)), make({"a": 1 - 10**4_300})):
        assert message_from_json(message_to_json(most)) == most
    assert text_of(CustomMessage(attributes)).endswith('"b":{"c":{}}}')


def test_a_call_is_made_of_its_arguments():
    call = ToolExecutionRequest.of("find", {"name": "Zoë", "at": [1]}, id="1")
    assert call == ToolExecutionRequest("1", "find", '{"name": "Zoë", "at": [1]}')
    assert AiMessage(None, [call]) == AiMessage(None, (call,))
    proxy = MappingProxyType({"k": MappingProxyType({})})
    assert ToolExecutionRequest.of("find", proxy).arguments == '{"k": {}}'
    assert ToolExecutionRequest.of("find", None).arguments == "{}"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (nested(3_000), "nested too deeply"),
        (itself(), "nested too deeply"),
        ({"a": 10**4_300}, "a number has too many digits"),
    ],
)
def test_arguments_that_cannot_be_written_are_refused(arguments, error):
    with pytest.raises(InvalidMessage, match=error):
        ToolExecutionRequest.of("find", arguments)


def test_the_single_text_of_a_user_message():
    assert UserMessage("hello").single_text() == "hello"
    for contents in ([TextContent("a"), TextContent("b")], [ImageContent("https://a/b.png")]):
        with pytest.raises(InvalidMessage, match="Expecting single text content, but got: "):
            UserMessage(contents).single_text()


def test_a_blank_system_message_is_refused():
    with pytest.raises(ValueError, match="text cannot be null or blank"):
        SystemMessage("  \n")


def test_a_picture_is_an_image_or_its_url():
    by_url = ImageContent("https://a/b.png", DetailLevel.HIGH)
    assert by_url == ImageContent(detail_level=DetailLevel.HIGH, image=Image("https://a/b.png"))
    assert replace(by_url, image="https://a/c.png").image.url == "https://a/c.png"
    assert copy.deepcopy(by_url) == pickle.loads(pickle.dumps(by_url)) == by_url
