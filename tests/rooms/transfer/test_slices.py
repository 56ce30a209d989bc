"""Long deletions and imports take several short transactions, and can be interrupted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from threading import Event

import pytest
from django.core.management import call_command
from django.db import connection

from chatmemory import (
    ChatMemoryError,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    WindowTooLarge,
    database,
    services,
)
from chatmemory.exceptions import (
    DeletionUnfinished,
    DuplicateClientId,
    ImportUnfinished,
    MemoryExists,
)
from chatmemory.formats import read_transcripts
from chatmemory.inserted import NewMessage
from chatmemory.ledger import erasure, slices
from chatmemory.ledger.verification import verify
from chatmemory.messages.phrases import SEARCHED
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from chatmemory.reading import conversations, history, windows
from chatmemory.search import INDEXED_AT_ONCE
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.simulation.models import Trial
from inspector.rooms.transfer.imports import import_all

from ...conversations import create_and_add, numbered

URL = "/api/v1/memories/long/"


@pytest.fixture(autouse=True)
def _short_slices(db, monkeypatch):
    monkeypatch.setattr("chatmemory.ledger.erasure.AT_ONCE", 12)
    monkeypatch.setattr("chatmemory.ledger.erasure.SLICE", 4)
    monkeypatch.setattr("chatmemory.ledger.slices.SLICE", 4)


def rows() -> int:
    return sum(table.objects.count() for table in (Message, Stay, Step))


# Deletion


@pytest.fixture
def begun() -> str:
    """A conversation whose deletion was interrupted after it had begun."""
    create_and_add("long", MessageWindow(3), numbered(10), {"team": "sales"})
    services.keep_trial("long", numbered(1))
    services.delete("long", actor="ada")  # what follows the commit does not happen in a test
    return "long"


def test_a_deletion_that_has_begun_is_one_for_readers(begun, api, operator_client):
    for path in ("", "messages/", "messages/3/", "history/", "steps/", "steps/2/"):
        assert api.get(URL + path).status_code == 404, path
    assert api.get("/api/v1/memories/").data["results"] == []
    assert api.get("/api/v1/store/long/").json() == []
    for path in ("/c/long/", "/c/long/export/", "/c/long/settings/"):
        assert operator_client.get(path).status_code == 404, path
    assert operator_client.get("/").context["feed"] == []
    assert not Memory.objects.containing("message").exists()
    assert DjangoChatMemoryStore().get_messages("long") == []
    assert rows() == 30
    assert Memory.with_deleted.get().labels == {}
    assert not Trial.objects.exists()


def test_nothing_can_be_changed_or_made_meanwhile(begun, api):
    assert api.delete(URL).status_code == 404
    assert api.patch(URL, {"labels": {}}).status_code == 404
    body = {"id": "long", "policy": {"kind": "message_window", "max_messages": 3}}
    for answer in (api.post("/api/v1/memories/", body), api.put("/api/v1/store/long/", [])):
        assert (answer.status_code, answer["Retry-After"]) == (503, "2")
        assert answer.data["type"] == "urn:chatmemory:deletion-unfinished"
    with pytest.raises(DeletionUnfinished):
        services.create("long", MessageWindow(3))


def test_a_long_import_with_one_client_id_for_two_messages_stores_nothing():
    twice = [*numbered(10), UserMessage("another")]
    new = [
        NewMessage(each, client_id="7" if n in (2, 10) else None) for n, each in enumerate(twice)
    ]
    with pytest.raises(DuplicateClientId, match="'7' already names a message with different"):
        services.import_conversation("long", new, MessageWindow(3))
    assert not Memory.objects.exists()
    assert rows() == 0

    same = [*new[:10], new[2]]
    assert len(services.import_conversation("long", same, MessageWindow(3))) == 11
    assert conversations.memory("long").said_count == 10


def test_an_interrupted_deletion_is_finished_by_the_command(begun, capsys):
    call_command("purge_memories", "--begun")
    assert "1 interrupted deletion finished" in capsys.readouterr().out
    assert rows() == 0
    assert not Memory.with_deleted.exists()
    assert AuditEntry.objects.filter(action="delete", actor="ada").count() == 1
    create_and_add("long", MessageWindow(3), numbered(5))
    erasure.purge("long")  # by a process that has not heard of the end
    assert (conversations.memory("long").said_count, rows()) == (5, 15)
    assert verify("long") is None


def test_a_long_conversation_is_purged_after_the_commit(django_capture_on_commit_callbacks):
    create_and_add("long", MessageWindow(3), numbered(10))
    create_and_add("other", MessageWindow(3), numbered(3))
    with django_capture_on_commit_callbacks(execute=True):
        services.delete("long")
    assert (rows(), Memory.with_deleted.count()) == (9, 1)


def test_each_transaction_of_a_purge_removes_few_rows(begun, monkeypatch):
    seen = [rows()]
    slice_of = erasure.purge_slice

    def counted(*arguments) -> bool:
        is_done = slice_of(*arguments)
        seen.append(rows())
        return is_done

    monkeypatch.setattr("chatmemory.ledger.erasure.purge_slice", counted)
    services.finish_deletions()
    assert seen[-1] == 0
    assert max(before - after for before, after in pairwise(seen)) == 4


# Imports


def reading(count: int = 10):
    messages = [
        {"type": "USER", "contents": [{"type": "TEXT", "text": f"message {n}"}]}
        for n in range(count)
    ]
    return read_transcripts(json.dumps([{"id": "long", "messages": messages}]))


class Interrupted(Exception):
    pass


@contextmanager
def interrupted_after_a_slice(monkeypatch) -> Iterator[None]:
    taken = []

    def once(add, *arguments):
        taken.append(arguments)
        if len(taken) > 1:
            raise Interrupted
        return add(*arguments)

    with monkeypatch.context() as patched:
        for name in ("add_all", "add_copies"):
            add = getattr(slices, name)
            patched.setattr(slices, name, partial(once, add))
        with pytest.raises(Interrupted):
            yield


@pytest.fixture
def half(monkeypatch) -> None:
    """An import that was interrupted after the first of three slices."""
    with interrupted_after_a_slice(monkeypatch):
        list(import_all(reading(), MessageWindow(3)))
    assert conversations.memory("long").said_count == 4
    assert verify("long") is None


@pytest.mark.needs("erasure")
def test_an_interrupted_import_refuses_other_changes(half, api, operator_client):
    message = {"type": "USER", "contents": [{"type": "TEXT", "text": "hi"}]}
    answers = [
        api.post(f"{URL}messages/", {"messages": [message]}),
        api.put(f"{URL}messages/", {"messages": []}),
        api.delete(f"{URL}messages/"),
        api.patch(URL, {"labels": {}}),
        api.put("/api/v1/store/long/", []),
        api.post(f"{URL}messages/1/redact/"),
    ]
    assert {answer.status_code for answer in answers} == {409}
    assert answers[0].data["type"] == "urn:chatmemory:import-unfinished"
    assert api.get(f"{URL}history/").status_code == 200
    label = {"action": "label", "id": ["long"], "label_as_text": "team: blue"}
    for answer in (
        operator_client.post("/c/long/redact/1/"),
        operator_client.post("/c/long/add/", {"role": "user", "text": "hi"}),
        operator_client.post("/bulk/", label),
    ):
        assert answer.status_code in (409, 422)
        assert "has not ended" in answer.content.decode()


def test_only_the_same_file_and_policy_go_on(half):
    (other,) = import_all(reading(9), MessageWindow(3))
    assert "already exists" in other.refused
    (policy,) = import_all(reading(), TokenWindow(100))
    assert "under a different policy" in policy.refused
    assert conversations.memory("long").said_count == 4
    with pytest.raises(ImportUnfinished):  # another process begins with the first slice
        list(slices.add_slices("long", [services.NewMessage(each) for each in numbered(9)]))
    (same,) = import_all(reading(), MessageWindow(3))
    assert (same.messages, same.refused) == (10, "")
    assert history.all_messages("long") == numbered(10)
    assert verify("long") is None
    services.add("long", numbered(1))


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_long_import_is_the_same_as_a_short_one(request, is_begun):
    if is_begun:  # and deleted
        request.getfixturevalue("half")
        services.delete("long")
        services.finish_deletions()
    (result,) = import_all(reading(), MessageWindow(3))
    assert (result.messages, conversations.memory("long").last_step) == (10, 10)
    assert history.all_messages("long") == numbered(10)
    assert verify("long") is None
    (again,) = import_all(reading(), MessageWindow(3))
    assert again.already
    services.add("long", numbered(1))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (UserMessage("NUL \x00"), "NUL"),
        (services.NewMessage(UserMessage("a"), client_id=""), "a client id must be"),
        (UserMessage("word " * 99), "^message 10: "),
    ],
)
def test_an_import_is_checked_before_anything_is_stored(db, bad, words):
    with pytest.raises(ChatMemoryError, match=words):
        services.import_conversation(
            "long", [*numbered(9), bad], TokenWindow(60, oversized="reject")
        )
    assert not Memory.with_deleted.exists()


# Branches


def test_a_branch_that_is_refused_leaves_nothing(settings):
    settings.CHATMEMORY = {"WINDOW_MESSAGES": 3}
    create_and_add("source", MessageWindow(3), numbered(10))
    with pytest.raises(WindowTooLarge):  # at its end
        services.branch("source", "long", numbered(1), policy=MessageWindow(9))
    services.finish_deletions()
    assert list(Memory.with_deleted.values_list("pk", flat=True)) == ["source"]


@pytest.fixture
def half_a_branch(monkeypatch) -> None:
    """A branch that was interrupted after the first of three slices."""
    create_and_add("source", MessageWindow(3), numbered(10))
    with interrupted_after_a_slice(monkeypatch):
        services.branch("source", "long", numbered(1))
    assert conversations.memory("long").said_count == 4


def test_only_the_same_call_goes_on_with_an_interrupted_branch(half_a_branch):
    assert verify("long") is None
    with pytest.raises(ImportUnfinished, match="make the same branch again"):
        services.add("long", numbered(1))
    create_and_add("other", MessageWindow(3), numbered(10))
    for source, at in (("source", 9), ("other", 10)):
        with pytest.raises(MemoryExists):
            services.branch(source, "long", numbered(1), at=at)
    assert conversations.memory("long").said_count == 4
    services.branch("source", "long", numbered(1))
    assert history.all_messages("long") == [*numbered(10), *numbered(1)]
    assert windows.window("long").messages == [*numbered(10)[8:], *numbered(1)]
    assert verify("long") is None
    services.add("long", numbered(1))


def test_nor_does_one_of_a_later_conversation_of_the_same_id(half_a_branch):
    services.delete("source")
    services.finish_deletions()
    create_and_add("source", MessageWindow(3), numbered(10))
    with pytest.raises(MemoryExists):
        services.branch("source", "long", numbered(1))


def test_a_branch_that_was_interrupted_at_its_end_goes_on_there(monkeypatch):
    def interrupt(*_: object) -> None:
        raise Interrupted

    create_and_add("source", MessageWindow(3), numbered(10))
    services.pin("source", 9)
    with monkeypatch.context() as patched:
        patched.setattr("inspector.rooms.simulation.branches.add_all", interrupt)
        with pytest.raises(Interrupted):
            services.branch("source", "long", numbered(1))
    assert conversations.memory("long").said_count == 10
    with pytest.raises(ImportUnfinished):
        services.add("long", numbered(1))
    services.branch("source", "long", numbered(1))
    assert windows.window("long").messages == [numbered(10)[8], numbered(10)[9], *numbered(1)]
    assert verify("long") is None
    services.add("long", numbered(1))


def test_an_interrupted_branch_of_a_memory_that_was_cleared_is_verified(monkeypatch):
    services.create("source", MessageWindow(3))
    for _ in range(2):
        services.add("source", [SystemMessage("Be kind."), *numbered(2)])
        services.clear_messages("source")
    with interrupted_after_a_slice(monkeypatch):
        services.branch("source", "long", [])
    assert verify("long") is None
    services.branch("source", "long", [])
    assert history.all_messages("long") == history.all_messages("source")
    assert verify("long") is None


@pytest.mark.django_db(transaction=True)
def test_other_writers_of_a_file_get_in_between_the_parts_of_long_work(tmp_path, monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has one writer for a file")
    monkeypatch.setattr(database, "AT_A_STRETCH", 0.2)
    file, has_written = tmp_path / "shared.sqlite3", Event()

    def write() -> None:
        with closing(sqlite3.connect(file, 60, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            has_written.set()
            other.execute("ROLLBACK")

    with closing(sqlite3.connect(file, isolation_level=None)) as ours, ThreadPoolExecutor() as pool:
        ours.execute("BEGIN IMMEDIATE")  # so that the other one waits
        waiting = pool.submit(write)
        for part in database.pausing_for_writers(range(100_000)):
            if has_written.is_set():
                break
            if part:
                ours.execute("BEGIN IMMEDIATE")
            sum(range(300_000))  # some hundredths of a second
            ours.execute("ROLLBACK")
        waiting.result()
    assert part < 500


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite has one writer for a file")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("parts", "pauses"),
    [
        ([0.4] * 7, [0.8, 1.6, 2.4]),  # before a part that would end too late
        ([0.1, 5.0, *[0.1] * 8], [5.1]),  # after a long part once, not before each short one
    ],
)
def test_long_work_pauses_for_other_writers(monkeypatch, parts, pauses):
    now, paused = [0.0], []
    monkeypatch.setattr(database, "monotonic", lambda: now[0])
    monkeypatch.setattr(database, "sleep", lambda _: paused.append(now[0]))
    for seconds in database.pausing_for_writers(parts):
        now[0] += seconds
    assert paused == pytest.approx(pauses)


# SQLite's index takes about a microsecond for a character, in which nobody else writes.


def indexed_characters() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT coalesce(sum(min(length(m.text), {SEARCHED})), 0) FROM chatmemory_message m
            JOIN chatmemory_search_places s ON s.memory_id = m.memory_id AND s.seq = m.seq
            JOIN chatmemory_search_docsize d ON d.id = s.id"""
        )
        return int(cursor.fetchone()[0])


@pytest.mark.needs("search")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL indexes the texts themselves")
def test_long_texts_are_imported_and_deleted_a_few_at_a_time(transactional_db, monkeypatch):
    monkeypatch.setattr("chatmemory.ledger.slices.SLICE", 50)
    monkeypatch.setattr("chatmemory.ledger.erasure.SLICE", 50)
    indexed = [0]

    def note(execute, sql, params, many, context):
        if sql.startswith("BEGIN"):
            indexed.append(indexed_characters())
        return execute(sql, params, many, context)

    said = [UserMessage(f"{'some hay ' * length} needle") for length in (30_000, 9_000) * 8]
    with connection.execute_wrapper(note):
        services.import_conversation("m", said, MessageWindow(9))
        assert [row.pk for row in Memory.objects.containing("needle")] == ["m"]
        assert verify("m") is None
        services.delete("m")
    indexed.append(indexed_characters())
    assert max(indexed) > 1_400_000
    assert max(abs(after - before) for before, after in pairwise(indexed)) <= INDEXED_AT_ONCE
