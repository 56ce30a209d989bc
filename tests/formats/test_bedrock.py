"""Amazon Bedrock's Converse."""

from __future__ import annotations

import json

import pytest

from chatmemory import AiMessage, SystemMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    parse_objects,
    read_transcripts,
    render_messages,
)
from chatmemory.messages.contents import (
    DetailLevel,
    Image,
    ImageContent,
    PdfFileContent,
    TextContent,
)

IMAGE = {"image": {"format": "png", "source": {"bytes": "QQ=="}}}
DOCUMENT = {"document": {"format": "pdf", "name": "plan", "source": {"bytes": "QQ=="}}}
REQUEST = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {"role": "user", "content": [{"text": "How cold?"}, IMAGE, DOCUMENT]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                {"text": "I check."},
                {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"town": "Gouda"}}},
                {"toolUse": {"toolUseId": "t2", "name": "weather", "input": {"town": "Delft"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"json": {"sky": "grey"}}]}},
                {
                    "toolResult": {
                        "toolUseId": "t2",
                        "content": [{"text": "no such town"}],
                        "status": "error",
                    }
                },
                {"text": "Go on."},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"citationsContent": {"content": [{"text": "Cold."}], "citations": []}},
                {"cachePoint": {"type": "default"}},
            ],
        },
    ],
}


def test_a_request_is_read():
    read = parse_objects(REQUEST, "bedrock")
    system, user, answer, first, second, more, last = read.messages
    assert read.losses == ()
    assert system == SystemMessage("Be brief.")
    assert [*map(type, user.contents)] == [TextContent, ImageContent, PdfFileContent]
    assert (answer.text, answer.thinking) == ("I check.", "hm")
    assert [each.id for each in answer.tool_execution_requests] == ["t1", "t2"]
    assert (first.contents, first.is_error) == ((TextContent('{"sky": "grey"}'),), None)
    assert (second.tool_name, second.is_error) == ("weather", True)
    assert [type(first), type(more)] == [ToolExecutionResultMessage, UserMessage]
    assert isinstance(last, AiMessage)
    assert last.text == "Cold."


def test_a_request_comes_back_equal():
    read = parse_objects(REQUEST, "bedrock")
    assert render_messages(read.messages, "bedrock").value == REQUEST


def test_messages_of_other_origin_are_written():
    said = [
        SystemMessage("Be brief."),
        SystemMessage("Be kind."),
        UserMessage([TextContent("see"), ImageContent(Image("s3://b/a.png", None, "image/png"))]),
        ToolExecutionResultMessage("t", "f", "x"),
        ToolExecutionResultMessage("u", "f", "y"),
    ]
    rendered = render_messages(said, "bedrock")
    source = {"s3Location": {"uri": "s3://b/a.png"}}
    assert rendered.value == {
        "system": [{"text": "Be brief."}, {"text": "Be kind."}],
        "messages": [
            {
                "role": "user",
                "content": [{"text": "see"}, {"image": {"format": "png", "source": source}}],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "t", "content": [{"text": "x"}]}},
                    {"toolResult": {"toolUseId": "u", "content": [{"text": "y"}]}},
                ],
            },
        ],
    }


def test_a_response_is_an_answer_with_its_usage():
    message = {"role": "assistant", "content": [{"text": "Cold."}]}
    response = {
        "output": {"message": message},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3},
    }
    (answer,) = parse_objects(response, "bedrock").messages
    assert answer.text == "Cold."
    assert answer.attributes["bedrock"]["response"]["usage"] == {"inputTokens": 3}


def test_a_file_of_blocks_without_types_is_of_bedrock_and_of_no_other_format():
    reading = read_transcripts(json.dumps(REQUEST))
    assert (reading.format, reading.refused) == ("bedrock", ())
    others = {name for name, each in FORMATS.items() if each.find(REQUEST["messages"])}
    assert others == {"bedrock"}


@pytest.mark.parametrize(
    "content", [5, [5], [{}], [{"toolUse": 5}], [{"toolResult": 5}], [{"text": 5}], [{"x": {}}]]
)
@pytest.mark.parametrize("role", ["user", "assistant", "nobody"])
def test_wrong_types_are_refused(role, content):
    with pytest.raises(UnreadableTranscript):
        parse_messages([{"role": role, "content": content}], "bedrock")


def test_an_image_of_the_web_is_lost():
    image = ImageContent(Image("https://example.org/a.png"), DetailLevel.AUTO)
    rendered = render_messages([UserMessage([TextContent("see"), image])], "bedrock")
    assert [loss.what for loss in rendered.losses] == ["image content"]
