"""Exports of chat sites: trees of messages, of which one path is the conversation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chatmemory import AiMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import Transcript, read_transcripts
from chatmemory.formats.trees import path_to
from chatmemory.messages.contents import ImageContent
from chatmemory.messages.message import text_of


def read(value: Any, format: str) -> Transcript:
    """Return the conversation of a file, which is found to be of this format, with its branches."""
    reading = read_transcripts(json.dumps(value))
    assert (reading.format, reading.refused) == (format, ())
    main, *branches = reading.transcripts
    assert [each.name for each in branches] == [
        f"{main.name}-branch-{n}" for n in range(1, len(branches) + 1)
    ]
    return replace(main, branches=tuple(branches))


def lines_of(transcript: Transcript) -> list[str]:
    return [f"{message.type[:4].lower()}: {text_of(message)}" for message in transcript.messages]


def test_a_path_ends_at_a_circle():
    assert path_to("c", {"a": "c", "b": "a", "c": "b"}) == ["a", "b", "c"]
    assert path_to("b", {"b": "elsewhere"}) == ["b"]
    assert path_to(None, {"b": None}) == []


# ChatGPT


def node(parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    message = {"author": {"role": role, "name": more.pop("name", None)}, "content": content}
    return {"parent": parent, "message": {**message, **more}}


def chatgpt(current: str | None, **nodes: Any) -> dict[str, Any]:
    return {"conversation_id": "c", "title": "T", "mapping": nodes, "current_node": current}


def test_the_current_node_ends_the_conversation_and_other_paths_are_branches():
    tree = chatgpt(
        "a2",
        root={"parent": None, "message": None},
        hidden=node("root", "system", ""),
        q=node("hidden", "user", "q"),
        a1=node("q", "assistant", "first"),
        q1=node("a1", "user", "on"),
        a2=node("q", "assistant", "second"),
        empty=node("q", "assistant", ""),
    )
    transcript = read([tree], "chatgpt")
    assert (transcript.name, lines_of(transcript)) == ("c", ["user: q", "ai: second"])
    (branch,) = transcript.branches
    assert (branch.shared, lines_of(branch)) == (1, ["user: q", "ai: first", "user: on"])


def test_code_for_a_tool_is_a_call_and_its_output_the_result():
    code = {"content_type": "code", "language": "python", "text": "draw()"}
    output = {"content_type": "execution_output", "text": "drawn"}
    tree = chatgpt(
        None,
        q=node(None, "user", "draw"),
        t=node("q", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
        c=node("t", "assistant", code, recipient="python"),
        r=node("c", "tool", output, name="python"),
        s=node("r", "assistant", '{"query": "x"}', recipient="web"),
        e=node("s", "tool", {"content_type": "system_error", "text": "no net"}, name="web"),
        a=node("e", "assistant", "done"),
    )
    messages = read(tree, "chatgpt").messages
    assert messages[1].thinking == "hm"
    calls = [each for m in messages for each in getattr(m, "tool_execution_requests", ())]
    assert [(each.name, each.arguments) for each in calls] == [
        ("python", '{"code": "draw()"}'),
        ("web", '{"query": "x"}'),
    ]
    results = [each for each in messages if isinstance(each, ToolExecutionResultMessage)]
    assert [(each.id, text_of(each), each.is_error) for each in results] == [
        ("call_1", "drawn", None),
        ("call_2", "no net", True),
    ]


def test_several_parts_settings_and_files_are_read():
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    audio = {"content_type": "audio_transcription", "text": "spoken"}
    parts = {"content_type": "multimodal_text", "parts": ["look", image, audio]}
    profile = {"content_type": "user_editable_context", "user_profile": "I am Ada"}
    files = {"attachments": [{"id": "f", "name": "plan.pdf"}]}
    tree = chatgpt(
        None,
        p=node(None, "user", profile),
        q=node("p", "user", parts, metadata=files),
        a=node("q", "assistant", {"content_type": "tether_quote", "title": "W", "text": "quoted"}),
        u=node("a", "assistant", {"content_type": "new_kind", "blob": 5}),
    )
    transcript = read(tree, "chatgpt")
    assert lines_of(transcript) == [
        "syst: I am Ada",
        "user: look\n[image file-service://x]\nspoken\n[file plan.pdf]",
        "ai: quoted\nW",
    ]
    assert [loss.what for loss in transcript.losses] == ["content of type 'new_kind'"]


# Claude.ai


def claude(*messages: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [
        {"uuid": f"m{n}", "sender": sender, "text": "", **about}
        for n, (sender, about) in enumerate(messages)
    ]
    return {"uuid": "c", "name": "T", "chat_messages": listed, **more}


def test_claude_ai_attachments_tools_and_thoughts():
    attached = [{"file_name": "a.txt", "extracted_content": "red tulips"}]
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "calendar", "input": {"month": "april"}},
        {"type": "tool_result", "name": "calendar", "content": [{"type": "text", "text": "free"}]},
        {"type": "text", "text": "In April."},
        {"type": "strange", "x": 1},
    ]
    transcript = read(
        [
            claude(
                ("human", {"text": "When?", "attachments": attached}),
                ("assistant", {"content": blocks}),
            )
        ],
        "claude_ai",
    )
    assert lines_of(transcript) == [
        "user: When?\n[file a.txt]\nred tulips",
        'ai: I look.\ncalendar({"month": "april"})',
        "tool: free",
        "ai: In April.",
    ]
    assert transcript.messages[1].thinking == "hm"
    assert [loss.what for loss in transcript.losses] == ["a block of type 'strange'"]


def test_an_edited_question_of_claude_ai_makes_a_branch():
    tree = claude(
        ("human", {"text": "roses", "parent_message_uuid": "root"}),
        ("assistant", {"text": "need sun", "parent_message_uuid": "m0"}),
        ("human", {"text": "ferns", "parent_message_uuid": "root"}),
        ("assistant", {"text": "need shade", "parent_message_uuid": "m2"}),
    )
    transcript = read(tree, "claude_ai")
    assert lines_of(transcript) == ["user: ferns", "ai: need shade"]
    assert [(each.shared, lines_of(each)) for each in transcript.branches] == [
        (0, ["user: roses", "ai: need sun"])
    ]
    shown = read({**tree, "current_leaf_message_uuid": "m1"}, "claude_ai")
    assert lines_of(shown) == ["user: roses", "ai: need sun"]


# Open WebUI


def webui(**messages: Any) -> dict[str, Any]:
    return {"id": "c", "chat": {"history": {"messages": messages, "currentId": [*messages][-1]}}}


def test_open_webui_files_and_branches():
    image = {"type": "image", "url": "data:image/png;base64,QQ=="}
    file = {"type": "file", "name": "a.txt", "file": {"data": {"content": "in it"}}}
    transcript = read(
        [
            webui(
                q={"role": "user", "content": "see", "parentId": None, "files": [image, file]},
                a={"role": "assistant", "content": "one", "parentId": "q", "sources": [{"d": 1}]},
                b={"role": "assistant", "content": "two", "parentId": "q"},
            )
        ],
        "open_webui",
    )
    assert lines_of(transcript)[1:] == ["ai: two"]
    contents = transcript.messages[0].contents
    assert isinstance(contents[1], ImageContent)
    assert contents[2].text == "[file a.txt]\nin it"
    assert [lines_of(each)[1:] for each in transcript.branches] == [["ai: one"]]


def test_a_chat_of_open_webui_without_a_history_is_a_list():
    listed = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert lines_of(read({"id": "c", "chat": {"messages": listed}}, "open_webui")) == [
        "user: a",
        "ai: b",
    ]


# LibreChat


def libre(id: str, parent: str, by_user: bool, **more: Any) -> dict[str, Any]:
    return {"messageId": id, "parentMessageId": parent, "isCreatedByUser": by_user, **more}


def test_librechat_parts_are_read_in_order():
    call = {"id": "c1", "name": "search", "args": '{"q": "x"}', "output": "found"}
    parts = [
        {"type": "think", "think": "hm"},
        {"type": "text", "text": {"value": "I look."}},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": "Here."},
        {"type": "video_url", "video_url": {}},
    ]
    transcript = read(
        {
            "conversationId": "c",
            "messages": [libre("1", "0", True, text="q"), libre("2", "1", False, content=parts)],
        },
        "librechat",
    )
    assert lines_of(transcript) == [
        "user: q",
        'ai: I look.\nsearch({"q": "x"})',
        "tool: found",
        "ai: Here.",
    ]
    assert transcript.messages[1].thinking == "hm"
    assert [loss.what for loss in transcript.losses] == ["a part of type 'video_url'"]


def test_a_recursive_export_of_librechat_is_a_tree():
    answers = [libre("2", "1", False, text="one"), libre("3", "1", False, text="two")]
    tree = {
        "conversationId": "c",
        "messagesTree": [libre("1", "0", True, text="q", children=answers)],
    }
    transcript = read(tree, "librechat")
    assert lines_of(transcript) == ["user: q", "ai: two"]
    assert [lines_of(each) for each in transcript.branches] == [["user: q", "ai: one"]]


# All of them


HOSTILE: list[tuple[Any, str]] = [
    (
        chatgpt(None, q=node(None, "user", {"content_type": "text", "parts": [5, None, {}]})),
        "chatgpt",
    ),
    (chatgpt("nowhere", q={"parent": 5, "message": {"author": 5, "content": 5}}), "chatgpt"),
    (claude(("human", {"content": 5, "attachments": 5, "parent_message_uuid": 5})), "claude_ai"),
    (webui(q={"role": "user", "content": 5, "files": [5, {}], "parentId": "q"}), "open_webui"),
    ({"messages": [libre("1", "1", False, content=[5, {"type": 5}])]}, "librechat"),
]


@pytest.mark.parametrize(("value", "format"), HOSTILE)
def test_wrong_types_are_refused_or_read(value, format):
    try:
        reading = read_transcripts(json.dumps(value), format)
    except UnreadableTranscript:
        return
    for transcript in reading.transcripts:
        assert all(isinstance(each, UserMessage | AiMessage) for each in transcript.messages)
