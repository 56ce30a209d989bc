"""Sizes are bounded: input, windows after a change, and answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chatmemory import (
    AiMessage,
    Audio,
    AudioContent,
    CustomMessage,
    Image,
    ImageContent,
    MessageTooLarge,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    WindowTooLarge,
    message_to_dict,
    message_to_json,
    services,
)
from chatmemory.conf import MESSAGE_MAX, Configuration
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.phrases import SEARCHED
from chatmemory.models import Memory, Message, Step
from chatmemory.reading import history, simulation, windows
from chatmemory.services import NewMessage
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.simulation.models import Trial

from .conversations import create_and_add, numbered

pytestmark = [pytest.mark.django_db, pytest.mark.database]

DOCS = Path(__file__).parents[1] / "docs"
TEXT, MEDIA = 100, 200
OK, LONG = UserMessage("x" * TEXT), UserMessage("x" * (TEXT + 1))
WHY = (
    r"contents\[0\]\.text has 101 characters, and at most 100 are stored: send several messages, or"
    r' raise CHATMEMORY\["TEXT_CHARACTERS"\]'
)


# A text or media


@pytest.fixture
def empty(memory_id, settings) -> str:
    """An empty conversation, in which nothing may have been stored when the test ends."""
    settings.CHATMEMORY = {"TEXT_CHARACTERS": TEXT, "MEDIA_BYTES": MEDIA}
    yield memory_id
    assert not Message.objects.exists()
    assert not Step.objects.exists()
    assert not Trial.objects.exists()
    assert list(Memory.objects.values_list("pk", flat=True)) == [memory_id]


def in_memory(memory_id: str) -> MessageWindowChatMemory:
    return MessageWindowChatMemory(memory_id, 3, DjangoChatMemoryStore())


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
        lambda m: simulation.simulate(m, [OK, LONG]),
        lambda m: in_memory(m).add(LONG),
        lambda m: in_memory(m).set([OK, LONG]),
    ],
)
def test_a_long_text_is_refused_at_the_door(empty, door):
    with pytest.raises(MessageTooLarge, match=WHY):
        door(empty)


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
        (SystemMessage("a", {"a": "x" * 101}), "attributes.a has"),
        (AiMessage("a", attributes={"a": "x" * 101}), "attributes.a has"),
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
def test_media_have_a_bound_of_their_own(memory_id, settings, media, path):
    settings.CHATMEMORY = {"TEXT_CHARACTERS": TEXT, "MEDIA_BYTES": MEDIA}
    services.add(memory_id, [UserMessage([media("x" * MEDIA)])])
    why = rf'contents\[0\]\.{path} has 201 bytes.*or raise CHATMEMORY\["MEDIA_BYTES"\]'
    with pytest.raises(MessageTooLarge, match=why):
        services.add(memory_id, [UserMessage([media("x" * (MEDIA + 1))])])
    assert len(history.all_messages(memory_id)) == 1


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


def test_the_error_counts_the_messages_that_were_sent(api, empty):
    """A format makes no message of a blank system message."""
    sent = [{"role": "system", "content": " "}, {"role": "user", "content": "x" * 101}]
    body = {"messages": sent, "format": "openai_chat"}
    answer = api.post("/api/v1/memories/order-7741/messages/", body, format="json")
    assert (answer.status_code, answer.data["field"]) == (422, "messages[1]")
    with pytest.raises(MessageTooLarge, match=r"^message 3: ") as refused:
        services.add(empty, [OK, OK, LONG])
    assert refused.value.index == 2


@pytest.mark.parametrize("page", ["simulate", "add", "branch", "verdict"])
def test_the_composer_says_why(operator_client, empty, page):
    values = {"role": "user", "text": "x" * 101, "new_id": "branch"}
    answer = operator_client.post(f"/c/{empty}/{page}/", values)
    assert answer.status_code == (200 if page == "verdict" else 422)
    assert "contents[0].text has 101 characters" in answer.content.decode()
    assert "TEXT_CHARACTERS" in answer.content.decode()


def test_an_import_refuses_the_conversation(operator_client, settings):
    settings.CHATMEMORY = {"TEXT_CHARACTERS": TEXT}
    chats = [
        [{"role": "user", "content": text} for text in texts]
        for texts in (["fine"], ["fine", "x" * 101])
    ]
    values = {"format": "auto", "kind": "message_window", "limit": "20"}
    file = SimpleUploadedFile("chats.json", json.dumps(chats).encode())
    page = operator_client.post("/import/", {**values, "file": file}).content.decode()
    assert "message 2: contents[0].text has 101 characters" in page
    assert list(Memory.objects.values_list("pk", flat=True)) == ["chats-1"]


def test_the_bounds_are_half_a_million_characters_and_4_mb(memory_id):
    services.add(memory_id, [UserMessage("a" * 500_000)])
    services.add(memory_id, [UserMessage([ImageContent(Image(base64_data="a" * 2**22))])])
    with pytest.raises(MessageTooLarge, match="500,001 characters"):
        services.add(memory_id, [UserMessage("a" * 500_001)])
    with pytest.raises(MessageTooLarge, match="4,194,305 bytes, and at most 4,194,304"):
        services.add(memory_id, [UserMessage([ImageContent(Image(base64_data="a" * 4_194_305))])])
    assert len(history.all_messages(memory_id)) == 2


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


# A window

MESSAGES, BYTES = "WINDOW_MESSAGES", "WINDOW_BYTES"
SAID = numbered(5)


@pytest.fixture(params=[MESSAGES, BYTES])
def setting(request, settings) -> str:
    """A bound that five messages fill, and the conversation "full" that they fill."""
    most = {MESSAGES: 5, BYTES: sum(len(message_to_json(each)) for each in SAID)}[request.param]
    settings.CHATMEMORY = {request.param: most}
    create_and_add("full", MessageWindow(6), SAID)
    name: str = request.param
    return name


def state() -> object:
    """Everything that is stored of all conversations."""
    return list(Memory.objects.order_by("pk").values()), Message.objects.count()


ONE = [UserMessage("one")]


@pytest.mark.parametrize(
    ("refused", "index"),
    [
        (lambda: services.add("full", ONE), 0),
        (lambda: services.change_and_add("full", [*ONE, *ONE], policy=MessageWindow(7)), 0),
        (lambda: services.set_messages("full", [*SAID, *ONE]), None),
        (lambda: DjangoChatMemoryStore().update_messages("theirs", [*SAID, *ONE]), None),
        (lambda: MessageWindowChatMemory("full", 6, DjangoChatMemoryStore()).add(*ONE), None),
        (lambda: services.import_conversation("new", SAID * 2, MessageWindow(2_000)), 5),
        (lambda: services.import_conversation("new", SAID * 200, MessageWindow(2_000)), 5),
        (lambda: services.branch("full", "new", ONE), 0),
        (lambda: simulation.simulate("full", ONE), 0),
        (lambda: simulation.simulate("full", ONE, at=5), 0),
    ],
)
def test_a_change_beyond_the_bounds_is_refused_and_stores_nothing(setting, refused, index):
    before = state()
    with pytest.raises(WindowTooLarge, match=rf'the window would hold .+"{setting}"') as error:
        refused()
    assert error.value.index == index
    assert state() == before


def test_what_fills_the_window_and_what_leaves_it_is_stored(setting):
    DjangoChatMemoryStore().update_messages("theirs", SAID)
    services.branch("full", "branched", [])
    services.import_conversation("imported", SAID * 200, MessageWindow(5))
    simulation.simulate("full", ONE, at=3)
    assert Memory.objects.get(pk="imported").said_count == 1_000
    for memory_id in ("theirs", "branched", "imported"):
        assert windows.outline(memory_id).totals.count == 5
        assert verify(memory_id) is None
    in_process = MessageWindowChatMemory("in process", 6)
    in_process.add(*SAID, *ONE)
    assert len(in_process.messages()) == 6


def test_evicted_messages_do_not_count(setting):
    services.change("full", policy=MessageWindow(5))
    services.add("full", [UserMessage("message 5")])
    assert windows.outline("full").totals.count == 5
    assert verify("full") is None


def test_the_api_answers_422_for_a_window(setting, api):
    before = state()
    body = {"messages": [{"role": "user", "content": "one"}], "format": "openai_chat"}
    for path in ("messages", "simulate"):
        answer = api.post(f"/api/v1/memories/full/{path}/", body, format="json")
        problem = answer.json()
        assert (answer.status_code, problem["title"]) == (422, "Window too large")
        assert problem["field"] == "messages[0]"
        assert setting in problem["detail"]
    window = [json.loads(message_to_json(each)) for each in (*SAID, UserMessage("one"))]
    answer = api.put("/api/v1/store/full/", window, format="json")
    assert (answer.status_code, answer.json()["title"]) == (422, "Window too large")
    assert state() == before


def test_a_page_tells_of_the_refusal(setting, operator_client):
    trial = services.keep_trial("full", ONE)
    page = operator_client.get(f"/c/full/?trial={trial}").content.decode()
    assert f"CHATMEMORY[&quot;{setting}&quot;]" in page


def test_under_a_lowered_setting_a_full_window_can_be_read_lowered_and_cleared(setting, settings):
    settings.CHATMEMORY = {setting: 3}
    for refused in (lambda: services.add("full", SAID[:1]), lambda: services.pin("full", 1)):
        with pytest.raises(WindowTooLarge, match=setting):
            refused()
    assert len(windows.window("full").messages) == 5
    services.change("full", policy=MessageWindow(1))
    services.clear_messages("full")
    assert windows.outline("full").stored.count == 0
    assert verify("full") is None


# No answer grows with the conversation: a page shows a part, and a list has pages.


@pytest.fixture(params=[120, 240])
def many(request, db, monkeypatch) -> int:
    """A conversation whose last step evicts all of these messages but nine. Lists are cut."""
    monkeypatch.setattr("chatmemory.api.responses.PAGE_MAX", 20)
    monkeypatch.setattr("inspector.conversation.panel.MOVED_MAX", 20)
    count: int = request.param
    create_and_add("long", MessageWindow(count), numbered(count))
    services.change("long", policy=MessageWindow(10))
    services.add("long", numbered(1))
    return count


def test_a_step_that_evicts_many_has_pages(api, many):
    url = f"/api/v1/memories/long/steps/{many + 2}/"
    found, pages, next_url = [], [], f"{url}?size=100"
    while next_url:
        page = api.get(next_url).data
        pages.append((len(page["arrived"]), len(page["evicted"])))
        found += [each["seq"] for each in page["evicted"]]
        next_url = page["later"]
    assert found == list(range(1, many - 8))
    assert (page["arrived_count"], page["evicted_count"]) == (1, many - 9)
    assert pages[0] == (1, 100)
    assert sum(arrived for arrived, _ in pages) == 1
    assert len(api.get(url).data["evicted"]) == 50


def test_the_receipt_of_a_step_is_shortened(api, many):
    lines = api.get(f"/api/v1/memories/long/steps/{many + 2}/").data["receipt"]
    assert len(lines) == 46
    signed = sum(line["amount"] for line in lines if line["kind"] in ("plus", "minus"))
    assert lines[0]["amount"] + signed == lines[-1]["amount"] == 10
    why = api.get("/api/v1/memories/long/messages/100/").data["why"]
    assert len(why["receipt"]) == 46


def test_the_answer_of_a_change_has_the_first_of_many(api, many):
    services.change("long", policy=MessageWindow(50))
    services.add("long", numbered(40))
    (change,) = api.delete("/api/v1/memories/long/messages/").data["changes"]
    assert (len(change["evicted"]), change["evicted_count"]) == (20, 50)


def test_a_comparison_lists_a_part_and_leads_to_the_others(operator_client, many):
    url = f"/c/long/?at={many}&with={many + 2}"
    seen = []
    while url:
        page = operator_client.get(url)
        changes = page.context["page"].panel.changes
        seen += changes.arrived.seqs
        assert len(changes.arrived.seqs) <= 20
        links = re.findall(
            r'href="([^"]*past=\d+[^"]*)"[^>]*>and [\d,]+ more', page.content.decode()
        )
        url = links[0].replace("&amp;", "&") if links else ""
    assert seen == list(range(1, many - 8))
    assert (changes.left.seqs, changes.left.more) == ((many + 1,), 0)


def test_pages_do_not_grow_with_the_conversation(operator_client, many):
    last = many + 2
    for url in (f"?at={many}", f"?at={last}", f"?at={many}&with={last}", f"?at={last}&msg=5"):
        html = operator_client.get(f"/c/long/{url}").content.decode()
        assert html.count("<") < 6_000, url
