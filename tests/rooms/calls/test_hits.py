"""A search of all conversations finds texts that only calls sent, and says which call did."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from chatmemory import AiMessage, MessageWindow, UserMessage, search, services
from chatmemory.access.scopes import Scope
from chatmemory.access.tokens import create_token
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import overview_page
from chatmemory.search.reading import TextIndex
from inspector.rooms.calls.erasure import redact_sent
from inspector.rooms.calls.hits import LOOKED_AT, hits
from inspector.rooms.calls.models import CallMessage, ModelCall
from inspector.rooms.calls.writes import forget_old_calls, store
from inspector.shell.agents import Agent
from inspector.shell.room import HitBeside
from inspector.shell.rooms import tools

from ...conversations import create_and_add, users
from ...properties import examples
from .test_beside import START, a_call

pytestmark = pytest.mark.database
ON_SQLITE = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL indexes the texts themselves"
)


@pytest.fixture
def desk(db) -> None:
    """A conversation with a policy. Its second and third calls sent a reminder that was never
    said.
    """
    create_and_add("desk", MessageWindow(9), users("Where is it?"))
    create_and_add("other", MessageWindow(9), users("Hello"))
    said, reminder = UserMessage("Where is it?"), UserMessage("Reminder: quote BW-583021 first.")
    for n, sent in enumerate([[said], [reminder, said], [said, reminder]], 1):
        store(a_call(n, sent, session="desk"))


def ids_with(words: str) -> list[str]:
    """The conversations that every way to search finds."""
    index = search.index()
    found = sorted(Memory.objects.containing(words).values_list("pk", flat=True))
    scanned = Memory.objects.filter(index.scan_filter(words)).values_list("pk", flat=True)
    read = Memory.objects.filter(TextIndex(connection).condition(words))
    assert sorted(scanned) == found
    assert index.few(words, 100) in (None, found)  # of short words, too many have a part
    assert sorted(read.values_list("pk", flat=True)) == found
    return found


def test_a_text_that_only_calls_sent_is_found_with_its_call(desk, operator_client, api):
    assert ids_with("bw583021 reminder") == ["desk"]
    page = operator_client.get("/?q=bw583021 quote")
    assert page.context["rows"][0].hit_beside == HitBeside(
        "Reminder: quote BW-583021 first.", "sent in call 3, not in history", "/c/desk/calls/3/"
    )
    assert '<a class="link" href="/c/desk/calls/3/">sent in call 3, not in history</a>' in page.text
    assert "Reminder: <mark>quote</mark> <mark>BW-583021</mark> first." in page.text
    assert page.context["rows"][0].find == "?find=BW-583021"
    found = api.get("/api/v1/memories/?search=bw583021&count=true").data
    assert (found["count"], found["results"][0]["id"]) == (1, "desk")
    (find,) = (tool for tool in tools() if tool.__name__ == "find_conversations")
    _, line = find(Agent("http://site", Scope()), words="bw583021").words
    sent = "sent in call 3, not in history: Reminder: quote BW-583021 first."
    assert line == f"desk: 1 message in history, 1 in memory; {sent}"


def test_a_message_with_the_words_is_shown_in_place_of_a_call(desk):
    services.add("desk", [AiMessage("BW-583021 is here.")])
    (row,) = overview_page(MemoryFilter(search="bw583021")).rows
    assert row.mention.seq == 2


def test_the_phrase_in_a_call_comes_before_words_that_are_apart(desk):
    create_and_add("apart", MessageWindow(9), users("first quote it"))
    rows = overview_page(MemoryFilter(search="BW-583021 first"), ordering="-match").rows
    assert [row.memory.id for row in rows] == ["desk"]
    create_and_add("apart-2", MessageWindow(9), users("first BW-583021"))
    rows = overview_page(MemoryFilter(search="BW-583021 first"), ordering="-match").rows
    assert [row.memory.id for row in rows] == ["desk", "apart-2"]


@pytest.mark.parametrize(("prefix", "found"), [("oth", []), ("de", ["desk"])])
def test_a_token_finds_only_texts_of_its_own_conversations(desk, prefix, found):
    client = APIClient()
    token = create_token("own", role="admin", prefix=prefix)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    results = client.get("/api/v1/memories/?search=bw583021").data["results"]
    assert [each["id"] for each in results] == found


def test_an_old_call_is_not_looked_for(desk):
    for n in range(4, 4 + LOOKED_AT):
        store(a_call(n, [UserMessage("Where is it?")], session="desk"))
    found = hits("bw583021", ["desk", "other"])["desk"]
    assert found.where == "sent in an earlier call, not in history"
    assert found.url == "/c/desk/calls/"


def test_an_erased_text_is_found_no_more(desk):
    redact_sent("desk", 3, 1)
    assert ids_with("bw583021") == []
    assert verify("desk") is None
    assert hits("bw583021", ["desk"]) == {}


def test_a_deleted_text_is_found_no_more(desk):
    services.delete("desk")
    assert ids_with("bw583021") == []


@override_settings(INSPECTOR={"CALL_DAYS": 1})
def test_a_text_goes_with_its_last_call(desk):
    ModelCall.objects.update(at=START - timedelta(days=1000))
    forget_old_calls()
    assert not CallMessage.objects.exists()
    assert ids_with("bw583021") == []


words = st.sampled_from(["order", "BW-583021", "Straße", "late", "元気", "x"])
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["said", "sent", "erased"]), texts),
    min_size=1,
    max_size=6,
)


@examples(30)
@given(steps, texts)
def test_every_way_finds_the_same_conversations(db, made, sought):
    with transaction.atomic():
        for memory_id in "abc":
            services.create(memory_id, MessageWindow(99))
        has: dict[str, list[str]] = {memory_id: [] for memory_id in "abc"}
        for n, (memory_id, what, text) in enumerate(made, 1):
            if what == "said":
                services.add(memory_id, [UserMessage(text)])
                has[memory_id].append(text)
            elif what == "sent":
                store(a_call(n, [AiMessage(text)], session=memory_id))
                has[memory_id].append(text)
            else:
                CallMessage.objects.filter(memory_id=memory_id).delete()
        found = ids_with(sought)
        assert {*found} <= {memory_id for memory_id in has if has[memory_id]}
        assert all(verify(memory_id) is None for memory_id in "abc")
        transaction.set_rollback(True)


@ON_SQLITE
def test_the_index_of_texts_beside_history_is_checked_and_repaired(desk):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM chatmemory_search_places WHERE seq < 0")
    assert verify("desk").row == "text 1 beside history"
    call_command("verify_memories", "desk", repair_index=True, stdout=StringIO())
    assert verify("desk") is None
    assert ids_with("bw583021") == ["desk"]


@ON_SQLITE
def test_texts_of_before_the_index_are_put_into_it(desk):
    index = search.index()
    with connection.cursor() as cursor:
        for name in ("beside", "beside_gone", "beside_other"):
            cursor.execute(f"DROP TRIGGER chatmemory_search_{name}")
        cursor.execute("DELETE FROM chatmemory_search_places WHERE seq < 0")
    index.keep_up()
    assert ids_with("bw583021") == ["desk"]
    index.rebuild()
    assert ids_with("bw583021") == ["desk"]


@ON_SQLITE
def test_texts_of_a_removed_room_leave_the_index(desk, monkeypatch):
    monkeypatch.setattr("chatmemory.search.reading.TEXTS_BESIDE", [])
    search.index().keep_up()
    assert verify("desk") is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chatmemory_search_places WHERE seq < 0")
        assert cursor.fetchone() == (0,)


def test_a_page_sends_no_query_for_each_conversation(db, operator_client):
    def queries(more: range) -> int:
        for n in more:
            services.create(f"m{n}", MessageWindow(9))
            store(a_call(n, [UserMessage("BW-583021")], session=f"m{n}"))
        with CaptureQueriesContext(connection) as sent:
            page = operator_client.get("/?q=bw583021")
        assert all(row.hit_beside for row in page.context["rows"])
        assert len(page.context["rows"]) == more.stop
        return len(sent)

    queries(range(2))
    assert queries(range(2, 4)) == queries(range(4, 8))
