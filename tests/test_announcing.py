"""A committed change stays, even if its signal or notification fails."""

from __future__ import annotations

import logging

import psycopg
import pytest
from django.db import connection

from chatmemory import UserMessage, queries, services
from chatmemory.core.policies import MessageWindow
from chatmemory.signals import memory_changed


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
    assert queries.memory("m").last_step == 1


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
    assert queries.memory("m").last_step == 2
    assert "steps 1 to 2 of 'm' by ada" in caplog.text
    (sent,) = heard
    assert (sent["memory_id"], sent["actor"], sent["fill"]) == ("m", "ada", 1.0)
    assert [(each.step, each.kind) for each in sent["results"]] == [(1, "add"), (2, "add")]
    assert [[new.seq for new in each.arrived if new.was_said] for each in sent["results"]] == [
        [1],
        [2],
    ]
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
