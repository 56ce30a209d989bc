"""Transactions: their locks, their errors, and events before, between and after them."""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, connections
from django.db.transaction import TransactionManagementError
from rest_framework.test import APIClient

from chatmemory import (
    AiMessage,
    MessageWindow,
    ToolExecutionRequest,
    UserMessage,
    VersionConflict,
    database,
    services,
)
from chatmemory.access.tokens import create_token
from chatmemory.conf import check_times_have_zones
from chatmemory.inserted import InsertedStep
from chatmemory.ledger import protocol, sql
from chatmemory.ledger.transaction import PLANNED_AT_MOST
from chatmemory.ledger.verification import verify
from chatmemory.lint.repairs import PLACEHOLDER
from chatmemory.messages.estimators import ESTIMATORS, encodings, ranks
from chatmemory.models import Memory, Step
from chatmemory.reading import conversations
from chatmemory.signals import memory_changed
from inspector.conversation.state import conversation_state
from inspector.rooms.simulation.showing import simulated_state
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.state import ConversationQuery

from .a_program import LettersEstimator
from .connecting import connected
from .conversations import create_and_add, numbered, texts, users


def test_a_transaction_takes_the_lock_of_writers_in_any_project(db, tmp_path):
    """A project need not know SQLite's `transaction_mode`, and keeps its own for its own."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite has one lock of writers")
    file = str(tmp_path / "plain.sqlite3")
    other = sqlite3.connect(file, isolation_level=None, timeout=0)
    with connected(file):
        connections["default"].settings_dict["OPTIONS"] = {}
        with database.atomic(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        assert connections["default"].transaction_mode is None
        with database.atomic(), database.atomic():
            pass
    other.execute("BEGIN IMMEDIATE")
    other.close()


def test_checks_warn_of_requests_in_one_transaction_and_of_local_times(monkeypatch, settings):
    assert database.check_transactions_are_short() == []
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
    (found,) = database.check_transactions_are_short()
    assert "DATABASES['default'] has ATOMIC_REQUESTS" in found.msg
    assert check_times_have_zones() == []
    settings.USE_TZ = False
    (found,) = check_times_have_zones()
    assert "USE_TZ = True" in found.msg


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a pooler is for PostgreSQL")
def test_a_database_without_a_pooler_gets_no_other_connection(transactional_db, monkeypatch):
    """Each command makes this check."""
    connection.ensure_connection()
    opened = []
    monkeypatch.setattr(psycopg, "connect", lambda **_: opened.append(1))
    assert (database.check_sessions_are_kept(), opened) == ([], [])


def inserted_step(memory_id):
    """Return a step that is stored already."""
    services.add(memory_id, [UserMessage("hello")])
    row = Step.objects.filter(memory=memory_id).first()
    return InsertedStep(*(getattr(row, name) for name in InsertedStep.__slots__))


def test_what_fails_is_an_error_of_django_and_nothing_of_it_is_written(memory_id):
    row = Memory.objects.get(pk=memory_id)
    before, step = sql.values_of(row), inserted_step(memory_id)
    row.policy = None
    with pytest.raises(IntegrityError), database.atomic():
        sql.write(row, before, {}, steps=[step])
    row.refresh_from_db()
    assert row.policy == MessageWindow(3)
    with database.atomic():
        connections["default"].set_rollback(True)
        with pytest.raises(TransactionManagementError):
            sql.write(row, before, {}, steps=[step])


def test_what_replaces_the_cursors_of_django_sees_all_statements(memory_id, monkeypatch):
    """As toolbars do, which show the queries of a page."""
    ours, seen = connections["default"], []
    django_cursor = ours.cursor

    def watched():
        cursor = django_cursor()
        monkeypatch.setattr(cursor, "execute", partial(noted, cursor.execute))
        return cursor

    def noted(execute, sql, values=None):
        seen.append(sql)
        return execute(sql, values)

    monkeypatch.setattr(ours, "cursor", watched)
    services.add(memory_id, [UserMessage("hello")])
    assert any("INSERT INTO chatmemory_message" in sql for sql in seen)
    assert any("UPDATE chatmemory_memory" in sql for sql in seen)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite sets it on the connection")
def test_a_write_that_does_not_wait_lets_later_ones_wait(db):
    """Its outer transaction may be the transaction of a request."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '7s'")
        with database.nowait():
            pass
        with pytest.raises(DatabaseError), database.nowait():
            cursor.execute("SELECT 1 / 0")
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("7s",)


# Nothing is counted while the lock of a writer is held, and no change that came first is lost


WATCHED = MessageWindow(9, estimator="watched")


CHANGES = {
    "a policy": lambda: services.change("other", policy=WATCHED),
    "a policy and messages": lambda: services.change_and_add("other", numbered(2), policy=WATCHED),
    "messages": lambda: services.add("m", numbered(2, "new")),
    "a list": lambda: services.set_messages("m", numbered(2, "new")),
    "a client's list": lambda: protocol.update_messages("m", numbered(2, "new")),
    "a client's first list": lambda: protocol.update_messages("first", numbered(2)),
    "a branch": lambda: services.branch("m", "branch", numbered(2)),
    "a branch under a policy": lambda: services.branch("other", "b", numbered(2), policy=WATCHED),
    "a branch of watched ones": lambda: services.branch("m", "b", [], policy=MessageWindow(9)),
    "an import": lambda: services.import_conversation("imported", numbered(2), WATCHED),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_messages_are_counted_before_the_conversation_is_locked(counted_in_transactions, change):
    services.set_default_policy("first", WATCHED)
    services.create("m", WATCHED)
    services.create("other", MessageWindow(9))
    for memory_id in ("m", "other"):
        services.add(memory_id, numbered(12))
        protocol.update_messages(memory_id, [UserMessage("summary"), *numbered(12)[-5:]])
    counted_in_transactions.clear()
    change()
    assert set(counted_in_transactions) == {False}
    for memory_id in Memory.objects.values_list("pk", flat=True):
        assert verify(memory_id) is None


@pytest.mark.django_db(transaction=True)
def test_a_client_whose_estimator_is_gone_has_its_window_counted_before_the_lock(
    counted_in_transactions, settings
):
    ESTIMATORS.register("gone", lambda name: LettersEstimator())
    create_and_add("m", MessageWindow(9, estimator="gone"), numbered(5))
    ESTIMATORS.unregister("gone")
    settings.CHATMEMORY = {"ESTIMATOR": "watched"}
    protocol.update_messages("m", numbered(6))
    assert (conversations.memory("m").policy, set(counted_in_transactions)) == (None, {False})
    assert verify("m") is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="on PostgreSQL a read is a transaction")
def test_an_encoding_is_loaded_before_a_conversation_is_locked(monkeypatch):
    services.create("m", MessageWindow(9, estimator="gpt-4"))
    services.add("m", numbered(1))
    loads = []

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is ranks.load_encoding.__code__:
            loads.append(connection.in_atomic_block)

    monkeypatch.delitem(encodings.LOADED, "cl100k_base")
    sys.setprofile(called)
    try:
        services.add("m", numbered(1, "new"))
    finally:
        sys.setprofile(None)
    assert loads == [False]
    assert texts("m") == ["message 0", "new 0"]


class Meanwhile:
    """Does something in another connection, when conversations or stays are first read."""

    def __init__(self, act: Callable[[], object], table: str = "chatmemory_memory") -> None:
        self._act: Callable[[], object] | None = act
        self._table = table

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if self._act and f"FROM {self._table}" in sql.replace('"', ""):
            act, self._act = self._act, None
            with connected(connection.settings_dict["NAME"]):
                act()
        return result


def test_a_window_that_changed_after_it_was_counted_is_counted_again(committing):
    create_and_add("m", MessageWindow(3), numbered(3))
    add_another = Meanwhile(lambda: services.add("m", numbered(1, "other")), "chatmemory_stay")
    ESTIMATORS.register("letters", lambda name: LettersEstimator())
    with connection.execute_wrapper(add_another):
        services.change("m", policy=MessageWindow(3, estimator="letters"))
    assert [entry.tokens for entry in protocol.get_window("m")] == [9, 9, 7]
    assert verify("m") is None
    ESTIMATORS.unregister("letters")


# Compactions and repairs are planned before the lock: another one writes meanwhile


def with_key(summary: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests', role='admin')}")
    body = {"summary": summary, "keep_last": 1}
    url, key = "/api/v1/memories/m/compact/", {"Idempotency-Key": "a"}
    answer = client.post(url, body, format="json", headers=key)
    assert answer.status_code == 200, answer.content


def add_another() -> None:
    services.add("m", numbered(1, "other"))


@pytest.mark.parametrize(
    "compact", [lambda: services.compact("m", "summary", keep_last=1), lambda: with_key("summary")]
)
def test_a_compaction_is_planned_again_if_another_changed_the_conversation(committing, compact):
    create_and_add("m", MessageWindow(9), numbered(5))
    with connection.execute_wrapper(Meanwhile(add_another, "chatmemory_stay")):
        compact()
    assert texts("m") == ["summary", "other 0"]
    assert verify("m") is None


def test_a_repair_is_planned_again_if_another_changed_the_conversation(committing):
    call = AiMessage(None, [ToolExecutionRequest("1", "f")])
    create_and_add("m", MessageWindow(9), [UserMessage("hi"), call, UserMessage("x")])
    with connection.execute_wrapper(Meanwhile(add_another, "chatmemory_stay")):
        step = services.repair("m", "openai").step
    assert texts("m") == ["hi", "f()", PLACEHOLDER, "x", "other 0"]
    with connection.execute_wrapper(Meanwhile(add_another, "chatmemory_stay")):
        services.undo_repair("m", step)
    assert texts("m") == ["hi", "f()", "x", "other 0", "other 0"]
    assert verify("m") is None


def test_a_compaction_gives_up_where_the_conversation_changes_each_time(committing):
    create_and_add("m", MessageWindow(9), numbered(5))

    def again() -> None:
        add_another()
        meanwhile._act = again

    meanwhile = Meanwhile(again, "chatmemory_stay")
    with connection.execute_wrapper(meanwhile), pytest.raises(VersionConflict):
        services.compact("m", "summary", keep_last=1)
    steps = Step.objects.filter(memory="m")
    assert steps.filter(kind="add").count() >= 5 + PLANNED_AT_MOST
    assert not steps.filter(kind="compact").exists()


def test_a_list_replaces_what_another_changed_before_the_lock(committing):
    create_and_add("m", MessageWindow(3), numbered(3))
    with connection.execute_wrapper(Meanwhile(lambda: services.pin("m", 2))):
        services.set_messages("m", users("message 1", "new"))
    assert texts("m") == ["message 1", "new"]
    assert [entry.pinned for entry in protocol.get_window("m")] == [True, False]
    assert verify("m") is None


def test_a_list_for_an_id_that_another_creates_meanwhile_is_the_second(committing):
    def create() -> None:
        protocol.update_messages("m", numbered(2))

    with connection.execute_wrapper(Meanwhile(create)):
        protocol.update_messages("m", [*numbered(2), UserMessage("third")])
    assert conversations.memory("m").last_step == 2
    assert texts("m") == ["message 0", "message 1", "third"]
    assert verify("m") is None


class DeletedMeanwhile:
    """Creates a conversation before an insert, and deletes it before it is locked."""

    is_done = False

    def __call__(self, execute, sql, params, many, context):
        if self.is_done or not sql.startswith("INSERT INTO chatmemory_memory"):
            return execute(sql, params, many, context)
        self.is_done = True
        services.create("m", MessageWindow(2))
        result = execute(sql, params, many, context)
        Memory.objects.filter(pk="m").delete()
        return result


def test_an_id_that_is_deleted_while_it_is_created_is_stored(db):
    with connection.execute_wrapper(meanwhile := DeletedMeanwhile()):
        services.create("m", MessageWindow(5))
    assert meanwhile.is_done
    assert conversations.memory("m").policy == MessageWindow(5)
    Memory.objects.all().delete()
    with connection.execute_wrapper(meanwhile := DeletedMeanwhile()):
        protocol.update_messages("m", numbered(2))
    assert meanwhile.is_done
    assert texts("m") == ["message 0", "message 1"]


# A page reads one state of the database, whatever is written while it is read.


QUERY = ConversationQuery(at=9, msg=2, room_parameters={"find": "message"}, other=4)


class MadeAnew:
    """Deletes a conversation after some queries, and makes a shorter one with its id."""

    def __init__(self, after: int, of_table: str = "") -> None:
        self.left, self.of_table = after, of_table

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if self.of_table in sql and sql.startswith("SELECT"):
            self.left -= 1
            if self.left == 0:
                with connected(connection.settings_dict["NAME"]):
                    services.delete("m")
                    make(2)
        return result


def make(messages: int) -> None:
    create_and_add("m", MessageWindow(3), numbered(messages))


@pytest.mark.parametrize("after", [1, 7, 12])
def test_a_state_is_read_at_once(committing, after):
    make(12)
    before = conversation_state("m", QUERY)
    with connection.execute_wrapper(MadeAnew(after)):
        assert conversation_state("m", QUERY) == before
    assert conversations.memory("m").said_count == 2


def test_so_is_the_state_of_a_simulation(committing):
    make(12)
    trial = WhatIf((UserMessage("a draft"),), 2)
    before = simulated_state("m", QUERY, trial)
    with connection.execute_wrapper(MadeAnew(14)):
        after = simulated_state("m", QUERY, trial)
    assert after.simulation.changes == before.simulation.changes
    assert after.window == before.window


@pytest.mark.parametrize("url", ["messages/2/", "steps/9/", "history/?at=9"])
def test_so_are_answers_of_the_api(committing, url):
    make(12)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests', role='admin')}")
    url = f"/api/v1/memories/m/{url}"
    before = client.get(url).content
    with connection.execute_wrapper(MadeAnew(1, of_table="chatmemory_me")):
        assert client.get(url).content == before


# A committed change stays, even if its signal or notification fails.


@pytest.mark.django_db(transaction=True)
def test_a_connection_lost_after_the_commit(caplog):
    """Regression test: the caller got an error although the step was committed."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no announcements")
    services.create("m", MessageWindow(3))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (process,) = cursor.fetchone()
    cut = CutAfterCommit(process)
    with connection.execute_wrapper(cut):
        (outcome,) = services.add("m", [UserMessage("hi")])
    assert cut.is_cut
    assert outcome.step == 1
    assert "on_commit" in caplog.text
    connection.close()
    assert conversations.memory("m").last_step == 1


@pytest.mark.django_db(transaction=True)
def test_an_error_after_the_commit_is_logged_also_of_a_call_with_arguments(caplog):
    with database.atomic():
        database.on_commit(int, "no number")
    assert "no number" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_fails(caplog):
    heard = []

    def fail(**_):
        raise RuntimeError("not today")

    def hear(**sent):
        heard.append(sent)

    memory_changed.connect(fail)
    memory_changed.connect(hear)
    try:
        services.create("m", MessageWindow(1))
        with caplog.at_level(logging.INFO, "chatmemory.audit"):
            services.add("m", [UserMessage("a"), UserMessage("b")], actor="ada")
        services.add("m", [])
    finally:
        memory_changed.disconnect(fail)
        memory_changed.disconnect(hear)
    assert conversations.memory("m").last_step == 2
    assert "steps 1 to 2 of 'm' by ada" in caplog.text
    (sent,) = heard
    assert (sent["memory_id"], sent["actor"], sent["fill"]) == ("m", "ada", 1.0)
    assert [(each.step, each.kind) for each in sent["results"]] == [(1, "add"), (2, "add")]
    assert [[new.seq for new in each.arrived] for each in sent["results"]] == [[1], [2]]
    assert [each.said_count for each in sent["results"]] == [1, 1]
    assert [[left.reason for left in each.evicted] for each in sent["results"]] == [
        [],
        ["CAPACITY"],
    ]


class CutAfterCommit:
    """End this connection's backend before the notification is sent."""

    def __init__(self, process: int) -> None:
        self.process, self.is_cut = process, False

    def __call__(self, execute, sql, params, many, context):
        if "pg_notify" in sql and not self.is_cut:
            self.is_cut = True
            with psycopg.connect(**self.address(), autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [self.process])
        return execute(sql, params, many, context)

    def address(self) -> dict:
        names = ("host", "port", "user", "dbname")
        return {
            name: value
            for name, value in connection.get_connection_params().items()
            if name in names
        }
