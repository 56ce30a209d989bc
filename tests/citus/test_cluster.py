"""Conversations on the nodes of a Citus cluster: each is on one node, and nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from chatmemory import MessageWindow, UserMessage, search, services
from chatmemory.distribution import distributed_tables, placements
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.branches import branches_of
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message, Step
from chatmemory.reading import conversations, history
from chatmemory.snapshots import one_snapshot

from ..api.test_schema import call_each_operation
from ..connecting import connected_to
from ..conversations import numbered
from ..plans.plans import LARGE, rows_of, sent_by
from .cluster import SHARDS, URL, cluster_database

if not URL:
    reason = "CITUS_DATABASE_URL names no coordinator of a Citus cluster"
    pytest.skip(reason, allow_module_level=True)

USER = {"type": "USER", "contents": [{"type": "TEXT", "text": "once"}]}
SCANS = re.compile(f"Seq Scan on ({'|'.join(LARGE)})_[0-9]+")
WRITES = {
    "add": partial(services.add, "own", [UserMessage("one more")]),
    "set": partial(services.set_messages, "own", [UserMessage("a"), UserMessage("b")]),
    "policy": partial(services.change, "own", policy=MessageWindow(4)),
    "labels": partial(services.change, "own", labels={"team": "support"}),
    "clear": partial(services.clear_messages, "own"),
    "redact": partial(services.redact, "own", 3),
    "verify": partial(verify, "own"),
}
PAGES = (
    "/c/long/",
    "/c/long/?at=300&msg=290&with=200&find=m299",
    "/c/order-7741/?at=40&msg=4",
    "/c/long/settings/",
    "/c/long/compare/?policy=message_window:5&policy=everything&at=300&phrase=m299",
    "/c/long/export/",
)
ANSWERS = ("", "messages/", "messages/?at=300", "messages/290/", "history/", "steps/", "steps/300/")
OVERVIEWS = ("/", "/now/", "/?q=m299", "/?flagged=any", "/lab/")


def plans_of(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """The queries that a call sends, with how Citus answers each."""
    return [
        (sql, "\n".join(line for (line,) in rows_of(f"EXPLAIN (COSTS OFF) {sql}", params)))
        for sql, params in sent_by(call)
    ]


def on_several_shards(call: Callable[[], Any]) -> list[str]:
    """The queries of a call that Citus sends to more than one shard. There must be some to one."""
    counts = {sql: re.findall(r"Task Count: (\d+)", plan) for sql, plan in plans_of(call)}
    assert ["1"] in counts.values()
    return [sql for sql, found in counts.items() if found not in ([], ["1"])]


def sent_to_nodes(call: Callable[[], Any]) -> list[str]:
    """The statements that the coordinator sends to other nodes during a call."""
    heard: list[str] = []
    with connection.cursor() as cursor:
        cursor.execute("SET citus.log_remote_commands = on")
        connection.connection.add_notice_handler(lambda note: heard.append(note.message_primary))
        call()
        cursor.execute("RESET citus.log_remote_commands")
    return heard


def test_each_table_is_distributed_once(cluster):
    lines = cluster.said.splitlines()
    assert lines[0] == "chatmemory_memory: distributed by id"
    assert {line.partition(":")[0] for line in lines} == {each.table for each in placements()}
    assert set(distributed_tables()) == {each.table for each in placements() if each.column}
    again = StringIO()
    call_command("distribute", stdout=again)
    assert again.getvalue() == "all tables are distributed already\n"


def test_a_database_that_knows_no_other_node_is_not_distributed_by_chance(django_db_blocker):
    """Such as one that was dropped and restored, which loses its list of nodes."""
    said = StringIO()
    with (
        django_db_blocker.unblock(),
        cluster_database(knows_nodes=False) as url,
        connected_to(url),
    ):
        call_command("migrate", verbosity=0)
        with pytest.raises(CommandError, match=r"knows no other node.*use --single-node"):
            call_command("distribute")
        assert distributed_tables() == []
        call_command("distribute", single_node=True, stdout=said)
        services.create("here", MessageWindow(3))
        call_command("distribute")
    assert said.getvalue().startswith("chatmemory_memory: distributed by id\n")


def test_nothing_is_left_on_the_coordinator(cluster):
    """Of its own table, Citus shows the rows on the nodes; what erasure could not reach is here."""
    sizes = [rows_of("SELECT pg_relation_size(%s)", [table]) for table in distributed_tables()]
    assert sizes == [[(0,)]] * len(sizes)


def test_every_ledger_matches_its_replay(cluster):
    for memory_id in ("order-7741", "ferry-5120", "classroom", "lisbon-guide", "own"):
        assert verify(memory_id) is None


@pytest.mark.parametrize("name", WRITES)
def test_a_change_asks_one_shard(cluster, name):
    assert on_several_shards(WRITES[name]) == []


def test_common_words_are_known(cluster):
    """The coordinator's own statistics tell of an empty table."""
    with CaptureQueriesContext(connection) as sent:
        assert search.index_of(connection).few("m10", 1) is None
    assert "TABLESAMPLE" in sent[-1]["sql"]  # the index was not asked


def test_deleting_a_conversation_that_is_no_branch_queries_one_shard(cluster):
    services.create("brief", MessageWindow(3))
    assert on_several_shards(partial(services.delete, "brief")) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_a_conversation_asks_one_shard(browser, path):
    assert on_several_shards(lambda: browser.get(path)) == []


@pytest.mark.parametrize("path", ANSWERS)
def test_an_answer_about_a_conversation_asks_one_shard(client_of_api, path):
    url = f"/api/v1/memories/long/{path}"
    assert on_several_shards(lambda: client_of_api.get(url)) == []


@pytest.mark.parametrize("path", OVERVIEWS)
def test_no_list_of_conversations_reads_all_messages(browser, path):
    plans = plans_of(lambda: browser.get(path))
    assert [sql for sql, plan in plans if SCANS.search(plan)] == []


def test_each_operation_of_the_api_is_carried_out(client_of_api):
    services.delete("order-7741")
    call_each_operation(client_of_api)


def test_a_conversation_is_saved_found_and_deleted(browser):
    services.branch("own", "saved", [], at=5)
    assert branches_of(["own"]) == ["saved"]
    assert verify("saved") is None
    assert b"saved" in browser.get("/?q=number+4").content
    services.delete("saved")
    with pytest.raises(MemoryNotFound):
        conversations.memory("saved")
    assert not Message.objects.filter(memory="saved").exists()
    assert AuditEntry.objects.filter(memory_id="saved").exists()


def test_compacting_reaches_the_nodes(cluster):
    commands = sent_to_nodes(lambda: call_command("vacuum", stdout=StringIO()))
    vacuumed = re.findall(r"VACUUM \S*chatmemory_message_[0-9]+", " ".join(commands))
    assert len(vacuumed) == SHARDS


def test_a_long_one_is_deleted_in_slices(cluster, monkeypatch):
    monkeypatch.setattr("chatmemory.ledger.erasure.AT_ONCE", 20)
    monkeypatch.setattr("chatmemory.ledger.erasure.SLICE", 5)
    services.import_conversation("gone", [UserMessage("gone")] * 12, MessageWindow(3))
    services.delete("gone")
    assert not Memory.with_deleted.filter(pk="gone").exists()
    assert not Step.objects.filter(memory="gone").exists()


def test_what_is_on_the_coordinator_is_committed_with_the_conversation(cluster):
    """A crash between two commits would lose the audit entry, or the answer to be repeated."""
    commands = sent_to_nodes(lambda: services.redact("own", 5))
    assert [command for command in commands if "PREPARE TRANSACTION" in command]


def test_a_repeated_request_is_carried_out_once(client_of_api):
    url, body = "/api/v1/memories/own/messages/", {"messages": [USER]}
    answers = [client_of_api.post(url, body, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert answers[0].data == answers[1].data
    assert answers[1]["Idempotency-Replayed"] == "true"


def test_a_snapshot_sees_no_later_change(cluster):
    with one_snapshot():
        before = conversations.memory("own")
        with connected_to(cluster.url):
            services.add("own", [UserMessage("meanwhile")])
        assert conversations.memory("own") == before
    assert conversations.memory("own").said_count == before.said_count + 1


def test_a_writer_does_not_wait_for_ever(cluster):
    """`lock_timeout` of a connection applies to the coordinator, but rows are locked on nodes."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    call_command("distribute", stdout=StringIO())
    with connected_to(cluster.url), services.atomic():
        list(Memory.objects.select_for_update().filter(pk="own"))
        with connected_to(cluster.url):
            rows_of("SELECT set_config('statement_timeout', '5s', false)", [])
            with pytest.raises(OperationalError, match="lock timeout"):
                services.add("own", [UserMessage("waiting")])


def test_long_lists_are_copied_to_the_nodes(client_of_api):
    """Psycopg sends COPY; Citus passes it on to the node of each row."""
    said = numbered(2_500)
    commands = sent_to_nodes(
        lambda: services.import_conversation("imported", said, MessageWindow(700))
    )
    assert [each for each in commands if re.search(r"COPY \S*chatmemory_message_[0-9]+", each)]
    lists = [[USER | {"name": f"{n + first}"} for n in range(1_000)] for first in (0, 500)]
    for messages in lists:
        answer = client_of_api.put("/api/v1/store/put/", messages)
        assert answer.status_code == 204, answer.data
    assert history.all_messages("imported") == said
    assert conversations.memory("put").said_count == 1_500
    output = StringIO()
    call_command("verify_memories", "imported", "put", stdout=output)
    assert "2 conversations" in output.getvalue()
