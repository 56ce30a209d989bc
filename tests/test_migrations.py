"""Databases of every earlier state, with conversations, can be migrated and verified."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations import RunPython
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message
from chatmemory.services import protocol

APP = "chatmemory"


def migrate(name: str, told: Callable[..., None] | None = None) -> None:
    executor = MigrationExecutor(connection, told)
    executor.migrate([(APP, name)])


def states() -> list[str]:
    graph = MigrationExecutor(connection).loader.graph
    (newest,) = graph.leaf_nodes(APP)
    return [name for app, name in graph.forwards_plan(newest) if app == APP]


def say_everything() -> None:
    call = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
    result = ToolExecutionResultMessage("1", "find", "found")
    services.create("answered", MessageWindow(4), {"env": "test"})
    services.add("answered", [SystemMessage("Be brief."), UserMessage("hi"), call, result])
    services.add("answered", [UserMessage("thanks"), AiMessage("welcome")])
    services.create("dangling", MessageWindow(4))
    services.add("dangling", [UserMessage("hi"), call, UserMessage("hello?")])
    services.create("waiting", MessageWindow(4))
    services.add("waiting", [UserMessage("hi"), call])
    services.create("first", TokenWindow(500, always_keep_system_message_first=True))
    services.add("first", [UserMessage("hi"), SystemMessage("Be brief."), UserMessage("secret")])
    services.redact("first", 3)
    protocol.update_messages("bare", [UserMessage("a needle"), UserMessage("b")])
    services.create("large", TokenWindow(20))
    services.add("large", [UserMessage("word " * 60), UserMessage("hi")])


def content() -> str:
    """All tables and rows of SQLite as text, except when which migration ran."""
    own = ('INSERT INTO "django_migrations"', 'INSERT INTO "sqlite_sequence"')
    dump = connection.connection.iterdump()
    return "\n".join(line for line in dump if not line.startswith(own))


def assert_all_is_there() -> None:
    assert all(verify(row.pk) is None for row in Memory.objects.all())
    assert queries.memory("dangling").is_dangling
    assert not queries.memory("waiting").is_dangling
    assert Memory.objects.get(pk="waiting").waiting_call == 2
    assert [row.pk for row in Memory.objects.containing("needle")] == ["bare"]
    assert queries.message("first", 3).redacted.n == 4
    assert queries.memory("first").policy.always_keep_system_message_first
    assert queries.memory("large").is_oversized


@pytest.mark.django_db(transaction=True)
def test_every_earlier_state_is_migrated(images):
    """Migrate the rows back, one state after the other, and from each of them forward again.

    On SQLite, a way forward ends where it meets an earlier one, which has gone on with these rows.
    """
    newest = states()[-1]
    can_restore = connection.vendor == "sqlite"
    seen = set()

    def stop_where_seen(action: str, migration: object = None, *_: object) -> None:
        if action == "apply_success" and can_restore:
            if (state := (str(migration), content())) in seen:
                raise StopIteration
            seen.add(state)

    say_everything()
    try:
        for name in reversed(states()[:-1]):
            migrate(name)
            if can_restore:
                images.take("earlier")
            with suppress(StopIteration):
                migrate(newest, stop_where_seen)
                assert_all_is_there()
            if can_restore:
                images.restore("earlier")
    finally:
        migrate(newest)
    services.add("waiting", [UserMessage("still there?")])
    assert queries.memory("waiting").is_dangling


def test_routers_are_told_of_which_model_the_rows_are():
    """Those that decide by model would otherwise change rows of a database without our tables."""
    models = {model._meta.model_name for model in apps.get_app_config(APP).get_models()}
    migrations = MigrationLoader(None).disk_migrations
    told = {
        operation.hints.get("model_name")
        for (app, _), migration in migrations.items()
        for operation in migration.operations
        if app == APP and isinstance(operation, RunPython)
    }
    assert told
    assert told <= models


@pytest.mark.django_db(transaction=True)
def test_flags_of_earlier_versions_are_made_anew():
    """A message was not flagged as oversized if the system message left it no room."""
    services.create("crowded", TokenWindow(30))
    services.add("crowded", [SystemMessage("word " * 60), UserMessage("a small question")])
    Memory.objects.update(oversized_step=None)
    try:
        migrate("0014_deletions_and_imports")
    finally:
        migrate(states()[-1])
    assert queries.memory("crowded").is_oversized
    assert verify("crowded") is None
    assert verify("crowded") is None


@pytest.mark.django_db(transaction=True)
def test_earlier_versions_have_the_whole_json_of_messages():
    """Also those of a conversation with more than are read at once."""
    say_everything()
    services.create("long", MessageWindow(4))
    services.add("long", [UserMessage(f"it's message {n} \N{SLOTH}") for n in range(1_001)])
    written = {row.pk: row.payload for row in Message.objects.all()}
    try:
        migrate("0024_figures_have_a_time")
        with connection.cursor() as cursor:
            cursor.execute("SELECT memory_id, seq, payload FROM chatmemory_message")
            assert {(memory_id, seq): payload for memory_id, seq, payload in cursor} == written
    finally:
        migrate(states()[-1])
    assert queries.said("long")[-1] == UserMessage("it's message 1000 \N{SLOTH}")
    assert verify("long") is None
