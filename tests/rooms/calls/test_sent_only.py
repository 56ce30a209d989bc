"""A text that calls sent, and that was never said, obeys what erases, moves and finds texts."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.exceptions import MessageNotFound
from chatmemory.messages.message import text_of
from chatmemory.models import Message
from chatmemory.signals import vacuuming
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI
from inspector.rooms.calls.erasure import redact_sent
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.reads import CallNotFound, one_call
from inspector.rooms.calls.writes import store

from ...properties import examples
from .test_beside import START, a_call

pytestmark = pytest.mark.database

SAID = "The code is A-1182."
TEXTS = (
    "The desk is D-66307741.",
    "Order B-7731 waits here.",
    "ok?",
    "A long sentence without terms",
)
SECRET = TEXTS[0]
CALL = [UserMessage(SECRET), UserMessage(SAID), AiMessage("Noted."), UserMessage(TEXTS[2])]


@pytest.fixture
def desk(db) -> str:
    make_desk()
    return "m"


def make_desk() -> None:
    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage(SAID), AiMessage("Noted."), UserMessage("And now?")])


def tables_with(text: str) -> set[str]:
    """The tables of this project in which a row has a text. It is longer than the digits of a time
    or a count, which could have it by chance.
    """
    return {
        model._meta.db_table
        for model in apps.get_models()
        if model._meta.db_table.startswith("chatmemory_")
        and any(text in repr(row) for row in model._base_manager.values_list())
    }


sent_lists = st.lists(
    st.lists(st.sampled_from([*TEXTS, SAID]), min_size=1, max_size=6), min_size=1, max_size=4
)


@examples(60)
@given(sent_lists, st.sampled_from([OPENAI, ANTHROPIC]), st.sampled_from(TEXTS))
def test_a_redaction_reaches_all_calls_that_sent_the_text_and_no_other_call(
    db, lists, format, text
):
    with transaction.atomic():
        make_desk()
        calls = [
            a_call(n, [*map(UserMessage, sent)], format, note=text if text in sent else "")
            for n, sent in enumerate(lists, 1)
        ]
        for call in calls:
            store(call)
        places = [(n, sent.index(text)) for n, sent in enumerate(lists, 1) if text in sent]
        if places:
            assert redact_sent("m", *places[-1])
            assert not redact_sent("m", *places[0])
            assert not tables_with(text) or text == TEXTS[2]  # too short to be looked for elsewhere
        for n, sent in enumerate(lists, 1):
            found = one_call("m", n)
            kept = [text_of(row.message) for row in found.rows]
            assert [each == one for each, one in zip(kept, sent, strict=True)] == [
                each != text for each in sent
            ]
            assert found.row.is_exact is (text not in sent)
        assert Message.objects.filter(text=SAID).exists()
        transaction.set_rollback(True)


def test_only_what_calls_sent_is_redacted_in_a_call(desk):
    store(a_call(1, CALL))
    for place in (1, 4):  # a message of the history, and none
        with pytest.raises(MessageNotFound):
            redact_sent("m", 1, place)
    with pytest.raises(CallNotFound):
        redact_sent("m", 2, 0)
    assert one_call("m", 1).row.is_exact


def test_the_page_and_the_api_redact_it(desk, operator_client, api):
    store(a_call(1, CALL))
    store(a_call(2, CALL[:2]))
    assert operator_client.get("/c/m/calls/1/").text.count("Redact this message") == 2
    answer = operator_client.post("/c/m/calls/1/redact/0/", follow=True)
    assert answer.redirect_chain[-1][0] == "/c/m/calls/1/"
    assert answer.text.count("Redact this message") == 1
    assert not tables_with("66307741")
    again = api.post("/api/v1/memories/m/calls/2/messages/0/redact/")
    assert again.json() == {"is_new": False}
    assert api.post("/api/v1/memories/m/calls/1/messages/3/redact/").json() == {"is_new": True}
    for path in ("1/messages/1", "1/messages/9", "7/messages/0"):
        assert api.post(f"/api/v1/memories/m/calls/{path}/redact/").status_code == 404
    assert operator_client.post("/c/m/calls/1/redact/1/").status_code == 404


@pytest.mark.parametrize("by", ["deletion", "age"])
def test_it_goes_with_its_conversation_and_with_its_calls(desk, by):
    store(a_call(1, CALL))
    assert tables_with("66307741")
    if by == "deletion":
        services.delete("m")
    else:
        ModelCall.objects.update(at=START - timedelta(days=400))
        with override_settings(INSPECTOR={"CALL_DAYS": 10}):
            vacuuming.send(None)
    assert not tables_with("66307741")


def test_an_archive_has_the_conversation_without_it(desk, tmp_path):
    store(a_call(1, CALL))
    output = StringIO()
    call_command("export_conversations", "m", stdout=output)
    assert "66307741" not in output.getvalue()
    file = tmp_path / "archive.jsonl"
    file.write_text(output.getvalue())
    call_command("import_transcripts", str(file), prefix="a-", stdout=StringIO())
    texts = Message.objects.filter(memory_id="a-m").order_by("seq").values_list("text", flat=True)
    assert [*texts] == [SAID, "Noted.", "And now?"]
    assert not ModelCall.objects.filter(memory_id="a-m").exists()
    store(a_call(1, CALL, session="a-m"))
    assert one_call("a-m", 1).seqs == [None, 1, 2, None]


def test_a_branch_begins_without_it(desk):
    store(a_call(1, CALL))
    services.branch("m", "other", [UserMessage("hm")])
    assert not ModelCall.objects.filter(memory_id="other").exists()
    redact_sent("m", 1, 0)
    assert not tables_with("66307741")


@pytest.mark.needs("search", "phrase")
def test_a_search_says_which_call_sent_it(desk, operator_client, api):
    store(a_call(1, CALL))
    store(a_call(2, CALL[:2]))
    store(a_call(3, CALL[1:]))
    page = " ".join(operator_client.get("/c/m/?find=desk is d-6630").text.split())
    assert "Nobody said these words." in page
    assert (
        "Model calls sent 1 message with these words that is not in this history, last in" in page
    )
    assert 'href="/c/m/calls/2/">call 2</a>' in page
    assert "sent by model calls" not in operator_client.get("/c/m/?find=A-1182").text
    assert len(api.get("/api/v1/memories/?search=D-6630").json()["results"]) == 1
    redact_sent("m", 1, 0)
    assert api.get("/api/v1/memories/?search=D-6630").json()["results"] == []
    assert "sent by model calls" not in operator_client.get("/c/m/?find=D-6630").text
    assert json.dumps(api.get("/api/v1/memories/m/calls/2/").json()).count("66307741") == 0
