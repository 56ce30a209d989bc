"""LlamaIndex's messages, with the objects of the real package."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import (
    CacheControl,
    CachePoint,
    CitationBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms import (
    AudioBlock,
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    VideoBlock,
)

from chatmemory import (
    AiMessage,
    AudioContent,
    ImageContent,
    MessageWindowChatMemory,
    PdfFileContent,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_objects, read_transcripts, render_messages
from chatmemory.messages.contents import DetailLevel
from chatmemory.messages.message import text_of

THOUGHT = ThinkingBlock(content="I look.", additional_information={"signature": "c2ln"})
CITED = CitationBlock(
    cited_content=TextBlock(text="Rome is sunny."),
    source="weather.txt",
    title="Weather",
    additional_location_info={"page": 1},
)
OBJECTS = [
    ChatMessage(role="developer", content="Be brief."),
    ChatMessage(
        role="user",
        blocks=[
            TextBlock(text="What is this?"),
            ImageBlock(url="https://example.org/a.png", detail="low"),
            ImageBlock(image=b"iVBORw0KGgo=", image_mimetype="image/png"),
            AudioBlock(audio=b"UklGRg==", format="mp3"),
            VideoBlock(url="https://example.org/a.mp4"),
            DocumentBlock(data=b"JVBERi0=", document_mimetype="application/pdf"),
            CachePoint(cache_control=CacheControl(type="ephemeral")),
        ],
    ),
    ChatMessage(
        role="assistant",
        blocks=[
            TextBlock(text="Let me see."),
            THOUGHT,
            ToolCallBlock(tool_call_id="c", tool_name="find", tool_kwargs={"city": "Rome"}),
            ToolCallBlock(tool_call_id="d", tool_name="find", tool_kwargs='{"city":"Paris"}'),
        ],
        additional_kwargs={"id": "resp_1"},
    ),
    ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": "c"}),
    ChatMessage(role="tool", content="", additional_kwargs={"tool_call_id": "d", "name": "find"}),
    ChatMessage(role="assistant", blocks=[TextBlock(text="Sunny."), CITED]),
    ChatMessage(role="user"),
    ChatMessage(role="assistant"),
]


def test_objects_come_back_as_they_were():
    memory = MessageWindowChatMemory()
    assert memory.add_from(OBJECTS, "llama_index") == ()
    values = memory.render("llama_index")
    assert [ChatMessage.model_validate(value) for value in values] == OBJECTS
    reading = read_transcripts(json.dumps(values))
    assert (reading.format, reading.transcripts[0].messages) == (
        "llama_index",
        (*memory.messages(),),
    )


def test_what_is_in_the_messages():
    _, asked, called, first, second, said, *_ = parse_objects(OBJECTS, "llama_index").messages
    text, linked, inline, *others = asked.contents
    assert (text, linked.detail_level) == (TextContent("What is this?"), DetailLevel.LOW)
    assert (inline.image.base64_data, inline.image.mime_type) == ("iVBORw0KGgo=", "image/png")
    kinds = [ImageContent, ImageContent, AudioContent, VideoContent, PdfFileContent]
    assert [type(each) for each in (linked, inline, *others)] == kinds
    assert (called.text, called.thinking) == ("Let me see.", "I look.")
    assert called.tool_execution_requests == (
        ToolExecutionRequest("c", "find", '{"city": "Rome"}'),
        ToolExecutionRequest("d", "find", '{"city":"Paris"}'),
    )
    assert [(each.id, each.tool_name) for each in (first, second)] == [("c", "find"), ("d", "find")]
    assert text_of(said) == "Sunny.\n[source Weather]"


def test_calls_of_older_messages_are_calls():
    function = {"name": "find", "arguments": '{"city": "Rome"}'}
    call = {"id": "c", "type": "function", "function": function}
    older = ChatMessage(role="assistant", additional_kwargs={"tool_calls": [call]})
    said = [older, ChatMessage(role="function", content="sunny")]
    called, result = parse_objects(said, "llama_index").messages
    assert called.tool_execution_requests[0].name == result.tool_name == "find"
    assert render_messages([called, result], "llama_index").value[0] == older.model_dump(
        mode="json"
    )


def test_messages_of_others_are_objects_of_the_package():
    said = [
        UserMessage("weather?"),
        AiMessage(None, [ToolExecutionRequest("c", "find", "no JSON")], "I look."),
        ToolExecutionResultMessage("c", "find", "sunny"),
        *parse_objects(OBJECTS, "llama_index").messages[1:2],
    ]
    written = render_messages(said, "llama_index")
    objects = [ChatMessage.model_validate(value) for value in written.value]
    assert written.losses == ()
    assert [type(block) for block in objects[1].blocks] == [ThinkingBlock, ToolCallBlock]
    assert parse_objects(objects, "llama_index").messages[:3] == tuple(said[:3])


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "user"},
        {"role": "nobody", "blocks": []},
        {"role": "user", "blocks": [5]},
        {"role": "user", "blocks": [{"block_type": "text", "text": 5}]},
        {"role": "assistant", "blocks": [], "additional_kwargs": {"tool_calls": [5]}},
    ],
)
def test_an_unreadable_part_is_reported_with_its_place(turn):
    first = {"role": "user", "blocks": []}
    with pytest.raises(UnreadableTranscript) as refused:
        parse_objects([first, turn], "llama_index")
    assert refused.value.index == 1


def test_the_store_of_a_buffer_is_read():
    """What `ChatMemoryBuffer.to_string()` writes, and a buffer with summaries beside it."""
    said = [ChatMessage(role="user", content="Wind the clock").model_dump(mode="json")]
    store = {"store": {"chat_history": said}, "class_name": "SimpleChatStore"}
    buffer = {"chat_store": store, "chat_store_key": "chat_history", "token_limit": 3000}
    reading = read_transcripts(json.dumps({**buffer, "class_name": "ChatMemoryBuffer"}))
    (read,) = reading.transcripts
    assert (reading.format, read.name, read.losses) == ("llama_index_store", "chat_history", ())
    assert [text_of(each) for each in read.messages] == ["Wind the clock"]
    summarizing = {
        **buffer,
        "class_name": "ChatSummaryMemoryBuffer",
        "summarize_prompt": "Be short",
    }
    (read,) = read_transcripts(json.dumps(summarizing)).transcripts
    assert [each.what for each in read.losses] == ["the property 'summarize_prompt'"]
