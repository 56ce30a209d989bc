"""A text or media that exceed their setting are refused at every door, and nothing is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from chatmemory import (
    AiMessage,
    Audio,
    AudioContent,
    CustomMessage,
    Image,
    ImageContent,
    InMemoryChatMemoryStore,
    MessageTooLarge,
    MessageWindow,
    MessageWindowChatMemory,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_to_dict,
    queries,
    services,
)
from chatmemory.conf import MESSAGE_MAX, Configuration
from chatmemory.core.phrases import SEARCHED
from chatmemory.models import AuditEntry, Memory, Message, Step, Trial
from chatmemory.services import NewMessage, protocol
from chatmemory.stores.database import DjangoChatMemoryStore

pytestmark = [pytest.mark.django_db, pytest.mark.database]

DOCS = Path(__file__).parents[1] / "docs"
TEXT, MEDIA = 100, 200
OK, LONG = UserMessage("x" * TEXT), UserMessage("x" * (TEXT + 1))
WHY = (
    r"contents\[0\]\.text has 101 characters, and at most 100 are stored: send several messages, or"
    r' raise CHATMEMORY\["TEXT_CHARACTERS"\]'
)


@pytest.fixture(autouse=True)
def _small(settings):
    settings.CHATMEMORY = {"TEXT_CHARACTERS": TEXT, "MEDIA_BYTES": MEDIA}


@pytest.fixture
def empty(memory_id) -> str:
    """An empty conversation, in which nothing may have been stored when the test ends."""
    yield memory_id
    assert not Message.objects.exists()
    assert not Step.objects.exists()
    assert not Trial.objects.exists()
    assert list(Memory.objects.values_list("pk", flat=True)) == [memory_id]


def added_by_a_memory(memory_id: str) -> None:
    memory = MessageWindowChatMemory(memory_id, 3, DjangoChatMemoryStore())
    memory.add(LONG)


def set_by_a_memory(memory_id: str) -> None:
    MessageWindowChatMemory(memory_id, 3, DjangoChatMemoryStore()).set([OK, LONG])


@pytest.mark.parametrize(
    "door",
    [
        lambda m: services.add(m, [OK, LONG]),
        lambda m: services.add(m, [NewMessage(LONG)]),
        lambda m: services.change_and_add(m, [OK, LONG], policy=MessageWindow(9)),
        lambda m: services.set_messages(m, [OK, LONG]),
        lambda m: services.branch(m, "branch", [LONG]),
        lambda m: services.import_conversation("import", [OK] * 600 + [LONG], MessageWindow(3)),
        lambda m: services.keep_trial(m, [LONG]),
        lambda m: protocol.update_messages(m, [OK, LONG]),
        lambda m: protocol.update_messages("unknown", [LONG]),
        lambda m: queries.simulate(m, [OK, LONG]),
        added_by_a_memory,
        set_by_a_memory,
    ],
)
def test_a_long_text_is_refused_at_the_door(empty, door):
    with pytest.raises(MessageTooLarge, match=WHY):
        door(empty)


def test_a_long_branch_is_refused_before_it_is_begun(memory_id, monkeypatch):
    monkeypatch.setattr("chatmemory.services.slices.SLICE", 1)
    services.add(memory_id, [OK, OK])
    with pytest.raises(MessageTooLarge, match=WHY):
        services.branch(memory_id, "branch", [LONG])
    assert not AuditEntry.objects.exists()


def test_the_longest_text_is_stored(memory_id):
    services.add(memory_id, [OK])
    assert queries.said(memory_id) == [OK]


def test_the_error_counts_messages(empty):
    with pytest.raises(MessageTooLarge, match=r"^message 3: ") as refused:
        services.add(empty, [OK, OK, LONG])
    assert refused.value.index == 2


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (AiMessage("a", thinking="x" * 101), "thinking has"),
        (AiMessage(None, [None, ToolExecutionRequest("1", "f", "x" * 101)]), ".*arguments has"),
        (ToolExecutionResultMessage("1", "f", "x" * 101), r"contents\[0\].text has"),
        (ToolExecutionResultMessage("1", "x" * 101, ""), "toolName has"),
        (UserMessage([TextContent("a"), TextContent("x" * 101)]), r"contents\[1\].text has"),
        (UserMessage([ImageContent("http://h/" + "x" * 92)]), r"contents\[0\].image.url has"),
        (UserMessage("a", "x" * 101), "name has"),
        (CustomMessage({"a": [{"b": "x" * 101}]}), r"attributes.a\[0\].b has"),
        (CustomMessage({"a": {"x" * 101: 1}}), r"attributes.a \(a name in it\) has"),
        (CustomMessage({"contents[0].image.base64Data": "x" * 101}), "attributes.contents"),
    ],
)
def test_every_string_of_a_message_is_bounded(empty, message, path):
    with pytest.raises(MessageTooLarge, match=f"^{path}.*TEXT_CHARACTERS"):
        services.add(empty, [message])


@pytest.mark.parametrize(
    ("media", "path"),
    [
        (lambda data: ImageContent(Image(base64_data=data)), "image.base64Data"),
        (lambda data: ImageContent("data:" + data[5:]), "image.url"),
        (lambda data: AudioContent(Audio(binary_data=data)), "audio.binaryData"),
    ],
)
def test_media_have_a_bound_of_their_own(memory_id, media, path):
    services.add(memory_id, [UserMessage([media("x" * MEDIA)])])
    why = rf'contents\[0\]\.{path} has 201 bytes.*or raise CHATMEMORY\["MEDIA_BYTES"\]'
    with pytest.raises(MessageTooLarge, match=why):
        services.add(memory_id, [UserMessage([media("x" * (MEDIA + 1))])])
    assert len(queries.said(memory_id)) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "memories/order-7741/messages/", {"messages": [OK, LONG]}),
        ("put", "memories/order-7741/messages/", {"messages": [OK, LONG]}),
        ("post", "memories/order-7741/simulate/", {"messages": [OK, LONG]}),
        ("put", "store/order-7741/", [OK, LONG]),
        ("put", "store/unknown/", [OK, LONG]),
    ],
)
def test_the_api_answers_422(api, empty, method, path, body):
    sent = json.dumps(body, default=message_to_dict)
    call = getattr(api, method)
    answer = call(f"/api/v1/{path}", sent, content_type="application/json")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:chatmemory:message-too-large")
    assert answer.json()["field"] == "messages[1]"
    assert "contents[0].text has 101 characters" in answer.json()["detail"]
    assert 'raise CHATMEMORY["TEXT_CHARACTERS"]' in answer.json()["detail"]


def test_the_api_counts_what_was_sent(api, empty):
    """A format makes no message of a blank system message."""
    sent = [{"role": "system", "content": " "}, {"role": "user", "content": "x" * 101}]
    body = {"messages": sent, "format": "openai_chat"}
    answer = api.post("/api/v1/memories/order-7741/messages/", body, format="json")
    assert (answer.status_code, answer.data["field"]) == (422, "messages[1]")


@pytest.mark.parametrize("page", ["simulate", "add", "branch", "verdict"])
def test_the_composer_says_why(operator_client, empty, page):
    values = {"role": "user", "text": "x" * 101, "new_id": "branch"}
    answer = operator_client.post(f"/c/{empty}/{page}/", values)
    assert answer.status_code == (200 if page == "verdict" else 422)
    assert "contents[0].text has 101 characters" in answer.content.decode()
    assert "TEXT_CHARACTERS" in answer.content.decode()


CHATS = [
    [{"role": "user", "content": text} for text in texts]
    for texts in (["fine"], ["fine", "x" * 101])
]


def test_an_import_refuses_the_conversation(db, tmp_path, capsys):
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    with pytest.raises(CommandError, match="1 conversation was refused, 1 imported"):
        call_command("import_transcripts", file)
    assert "message 2: contents[0].text has 101 characters" in capsys.readouterr().err
    assert list(Memory.objects.values_list("pk", flat=True)) == ["chats-1"]


def test_the_import_page_reports_it(operator_client):
    values = {"format": "auto", "kind": "message_window", "limit": "20"}
    file = SimpleUploadedFile("chats.json", json.dumps(CHATS).encode())
    page = operator_client.post("/import/", {**values, "file": file}).content.decode()
    assert "message 2: contents[0].text has 101 characters" in page
    assert list(Memory.objects.values_list("pk", flat=True)) == ["chats-1"]


def test_the_bounds_are_half_a_million_characters_and_4_mb(memory_id, settings):
    settings.CHATMEMORY = {}
    services.add(memory_id, [UserMessage("a" * 500_000)])
    services.add(memory_id, [UserMessage([ImageContent(Image(base64_data="a" * 2**22))])])
    with pytest.raises(MessageTooLarge, match="500,001 characters"):
        services.add(memory_id, [UserMessage("a" * 500_001)])
    with pytest.raises(MessageTooLarge, match="4,194,305 bytes, and at most 4,194,304"):
        services.add(memory_id, [UserMessage([ImageContent(Image(base64_data="a" * 4_194_305))])])
    assert len(queries.said(memory_id)) == 2


def test_a_store_without_a_database_has_no_bound():
    memory = MessageWindowChatMemory("m", 3, InMemoryChatMemoryStore())
    memory.add(LONG)
    assert memory.messages() == [LONG]


def test_the_docs_tell_the_bounds():
    given = Configuration()
    longest, media = f"{given.TEXT_CHARACTERS:,} characters", f"{given.MEDIA_BYTES // 2**20} MB"
    lines = (DOCS / "api.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith("| Message too large |")]
    assert longest in row
    assert media in row
    settings = (DOCS / "mounting.md").read_text()
    assert f'`CHATMEMORY["TEXT_CHARACTERS"]` | 1 to {MESSAGE_MAX:,} | `500000`' in settings
    assert f'`CHATMEMORY["MEDIA_BYTES"]` | 1 to {MESSAGE_MAX:,} | `{given.MEDIA_BYTES}`' in settings
    for name in ("api.md", "inspector.md", "operations.md"):
        text = " ".join((DOCS / name).read_text().split())
        assert f"first {SEARCHED:,} characters" in text, name
