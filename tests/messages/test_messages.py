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
from chatmemory.messages.codec import DEPTH_MAX
from chatmemory.messages.contents import DetailLevel, Image, PdfFileContent, VideoContent, check_uri
from chatmemory.messages.estimators import remember_tokens
from chatmemory.messages.message import text_of

CALL = ToolExecutionRequest("1", "find", '{"id":7}')
LINK = "https://a/b.png"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (SystemMessage("Be brief."), "Be brief."),
        (UserMessage([TextContent("See:"), ImageContent(LINK)]), f"See:\n[image {LINK}]"),
        (UserMessage([ImageContent(Image(base64_data="A")), AudioContent()]), "[image]\n[audio]"),
        (UserMessage([VideoContent(), PdfFileContent(), None]), "[video]\n[pdf]\n"),
        (UserMessage([ImageContent("data:image/png;base64,AAAA")]), "[image]"),
        (AiMessage("Let me look.", (CALL,)), 'Let me look.\nfind({"id":7})'),
        (AiMessage(None, (CALL, None, CALL)), 'find({"id":7})\nfind({"id":7})'),
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


def nested(levels: int) -> dict:
    found: dict = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


def itself() -> dict:
    found: dict = {}
    found["a"], found["b"] = found, [found]
    return found


TOO_DEEP, NO_NUMBER = "nested too deeply", "JSON has no NaN and no Infinity"
NOT_JSON = [
    *(({"a": [number]}, NO_NUMBER) for number in (math.nan, math.inf, -math.inf)),
    (nested(DEPTH_MAX + 1), f"{TOO_DEEP}: at most {DEPTH_MAX} levels"),
    (nested(3_000), TOO_DEEP),
    (itself(), TOO_DEEP),
    ({"a": -(10**4_300)}, "a number has too many digits"),
    ({7: 1}, "a JSON property is a string, not 7"),
    ({"a": [b""]}, "JSON cannot hold b''"),
]
WITH_ATTRIBUTES = [
    lambda attributes: UserMessage("hello", attributes=attributes),
    lambda attributes: AiMessage("hello", attributes=attributes),
    lambda attributes: ToolExecutionResultMessage("1", "find", "x", attributes=attributes),
    CustomMessage,
]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: SystemMessage(7), "text must be a string, not 7"),
        (lambda: UserMessage(5), "contents takes a list, not 5"),
        (lambda: UserMessage([TextContent(7)]), "text must be a string, not 7"),
        (lambda: UserMessage(["hello"]), "contents takes Content, not 'hello'"),
        (lambda: UserMessage("hello", name=7), "name must be a string, not 7"),
        (lambda: UserMessage([ImageContent(Image(7))]), "url must be a string, not 7"),
        (lambda: ImageContent(LINK, "HIGH"), "detail_level takes DetailLevel, not 'HIGH'"),
        (lambda: ImageContent(LINK, None), "detailLevel cannot be null"),
        (lambda: AudioContent("a.mp3"), "audio takes Audio, not 'a.mp3'"),
        (lambda: AiMessage(["hello"]), r"text must be a string, not \['hello'\]"),
        (lambda: AiMessage(None, ["find"]), "takes ToolExecutionRequest, not 'find'"),
        (lambda: AiMessage(None, CALL), "takes a list, not ToolExecutionRequest"),
        (
            lambda: ToolExecutionRequest("1", "find", {"id": 7}),
            r"arguments must be JSON text: ToolExecutionRequest.of\(name, {…}\) writes it",
        ),
        (
            lambda: ToolExecutionRequest.of("f", '{"a": 1}'),
            r"ToolExecutionRequest\(id, name, arguments\) takes JSON text",
        ),
        (
            lambda: ToolExecutionRequest.of("f", [1]),
            r"arguments must be a dictionary, not \[1\]",
        ),
        (
            lambda: ToolExecutionResultMessage("1", "find", "x", is_error="yes"),
            "is_error takes bool, not 'yes'",
        ),
    ],
)
def test_values_that_could_not_be_read_back_are_refused(make, error):
    with pytest.raises(InvalidMessage, match=error):
        make()


@pytest.mark.parametrize(
    "make", [*WITH_ATTRIBUTES, lambda arguments: ToolExecutionRequest.of("find", arguments)]
)
def test_attributes_and_arguments_are_what_json_can_hold(make):
    for wrong, error in NOT_JSON:
        with pytest.raises(InvalidMessage, match=error):
            make(wrong)
    for wrong in (5, 0, False, [], [("a", 1)], {1}):
        with pytest.raises(InvalidMessage, match="must be a dictionary, not "):
            make(wrong)


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


def test_the_single_text_of_a_user_message():
    assert UserMessage("hello").single_text() == UserMessage("hello").text == "hello"
    for contents in ([TextContent("a"), TextContent("b")], [ImageContent(LINK)]):
        with pytest.raises(InvalidMessage, match="whose only content is one text, but got: "):
            UserMessage(contents).single_text()
        with pytest.raises(InvalidMessage, match=r"text_of.message. joins several"):
            _ = UserMessage(contents).text


def test_a_picture_is_an_image_or_its_url():
    by_url = ImageContent(LINK, DetailLevel.HIGH)
    assert by_url == ImageContent(detail_level=DetailLevel.HIGH, image=Image(LINK))
    assert replace(by_url, image="https://a/c.png").image.url == "https://a/c.png"
    assert copy.deepcopy(by_url) == pickle.loads(pickle.dumps(by_url)) == by_url


# URLs: the verdicts are those of java.net.URI.create, OpenJDK 17


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#",
        "é",
        "a:b",
        "/a?b[c]#d[e]",
        "http:///a",
        "http://a_b/",
        "http://u:p@[::1]:80/x",
        "http://[fe80::1%eth0]/",
        "http://h:99999999999/",
        "s3://bucket/key%20x",
        "mailto:a[b]",
        "data:image/png;base64," + "A" * 1_000_000,
    ],
    ids=lambda text: text[:30],
)
def test_a_url_is_accepted(text):
    check_uri(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not a uri", "Illegal character in path at index 3"),
        ("a[b", "Illegal character in path at index 1"),
        ("\u3000", "Illegal character in path at index 0"),
        ("/a?b c", "Illegal character in query at index 4"),
        ("#a#b", "Illegal character in fragment at index 2"),
        ("a:b c", "Illegal character in opaque part at index 3"),
        ("a_b:c", "Illegal character in scheme name at index 1"),
        ("1a:b", "Illegal character in scheme name at index 0"),
        (":a", "Expected scheme name at index 0"),
        ("http:", "Expected scheme-specific part at index 5"),
        ("http://", "Expected authority at index 7"),
        ("http://x[y]/", "Illegal character in authority at index 8"),
        ("http://[zz]/", "Malformed IPv6 address at index 7"),
        ("http://[::1", "Malformed IPv6 address at index 7"),
        ("http://[::1]:x/", "Malformed IPv6 address at index 7"),
        ("a%2", "Malformed escape pair at index 1"),
    ],
)
def test_a_url_is_refused(text, complaint):
    with pytest.raises(InvalidMessage) as refused:
        check_uri(text)
    assert str(refused.value) == f"{complaint}: {text}"
