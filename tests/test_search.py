"""Conversations are found by their messages, and not by erased texts."""

from __future__ import annotations

import pytest
from django.db import connection

from chatmemory import AiMessage, UserMessage, queries, search, services
from chatmemory.core.policies import MessageWindow
from chatmemory.models import Memory, Message


def found(words: str) -> list[str]:
    return sorted(Memory.objects.containing(words).values_list("pk", flat=True))


@pytest.fixture
def shop(db) -> None:
    for memory_id, *words in [
        ("alpha", "Where is my parcel?", "It is in Dijon."),
        ("beta", "100% cotton, size 'L' or \"XL\"?"),
        ("gamma", "Straße und Ärger", "お元気ですか", "<b>a_b\\c</b>"),
    ]:
        services.create(memory_id, MessageWindow(2))
        services.add(memory_id, [UserMessage(word) for word in words])


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("parcel", ["alpha"]),
        ("PARCEL", ["alpha"]),
        ("is my par", ["alpha"]),
        ("100%", ["beta"]),
        ("0_", []),
        ("a_b\\c", ["gamma"]),
        ("a%b", []),
        ("'L' or \"XL\"", ["beta"]),
        ("ärger", ["gamma"]),
        ("元気で", ["gamma"]),
        ("元気", ["gamma"]),
        ("<b>a", ["gamma"]),
        ("parcel OR cotton", []),
        ("par*", []),
        ("lph", ["alpha"]),
        ("et", ["beta"]),
        ("zz", []),
    ],
)
def test_it_finds_exactly_what_was_said(shop, words, ids):
    assert found(words) == ids


def test_the_index_follows_adds_and_deletions(shop):
    services.add("beta", [AiMessage("your parcel is late")])
    assert found("parcel") == ["alpha", "beta"]
    services.delete("alpha")
    assert found("parcel") == ["beta"]
    services.clear_messages("beta")
    assert found("parcel") == ["beta"], "history keeps what memory forgot"


def test_the_index_follows_changed_texts(shop):
    Message.objects.filter(memory_id="alpha", seq=1).update(text="[redacted]")
    assert found("parcel") == []
    assert found("redacted") == ["alpha"]


def test_synthetic_messages_are_not_found(db):
    services.create("m", MessageWindow(9))
    services.add("m", [UserMessage("one"), UserMessage("two")])
    services.set_messages("m", [UserMessage("a summary"), UserMessage("two")])
    assert found("summary") == []


def test_a_rebuilt_index_finds_the_same(shop):
    search.rebuild(connection)
    assert found("parcel") == ["alpha"]
    services.delete("alpha")
    assert found("parcel") == []


def test_the_index_can_be_removed_and_installed_again(transactional_db):
    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage("a needle in the hay")])
    search.remove(connection)
    services.add("m", [UserMessage("another needle")])
    search.install(connection)
    assert found("needle") == ["m"]
    assert found("another") == ["m"]


def test_a_search_uses_the_index(shop):
    """Reading every text would take a second per million messages."""
    plan = Memory.objects.containing("parcel").explain()
    if connection.vendor == "sqlite":
        assert "chatmemory_search VIRTUAL TABLE INDEX" in plan
    else:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        assert "message_by_text" in Memory.objects.containing("parcel").explain()


@pytest.mark.parametrize("words", ["parcel", "元気"], ids=["indexed", "not indexed"])
def test_a_neighbour_who_said_it_often_hides_nothing(db, monkeypatch, words):
    monkeypatch.setattr(search, "MENTIONS_MAX", 2)
    for memory_id, times in (("acme/1", 1), ("Acme/1", 1), ("loud/1", 3), ("acme%/1", 1)):
        services.create(memory_id, MessageWindow(2))
        services.add(memory_id, [UserMessage(f"{words} {n}") for n in range(times)])

    def found_by(prefix: str) -> list[str]:
        page = queries.memory_page(queries.MemoryFilter(search=words, id_prefix=prefix))
        return [row.id for row in page.rows]

    assert found_by("acme/") == ["acme/1"]
    assert found_by("acme%") == ["acme%/1"]
    assert found_by("loud/") == ["loud/1"]
    assert found_by("none/") == []
