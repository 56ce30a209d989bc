"""Databases of every earlier state, with conversations, can be migrated and verified."""

from __future__ import annotations

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
from chatmemory.models import Memory
from chatmemory.services import protocol

APP = "chatmemory"


def migrate(name: str) -> None:
    executor = MigrationExecutor(connection)
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


@pytest.mark.django_db(transaction=True)
def test_every_earlier_state_is_migrated():
    """Migrate the rows back to each earlier state, then forward again."""
    newest = states()[-1]
    say_everything()
    for name in reversed(states()[:-1]):
        try:
            migrate(name)
        finally:
            migrate(newest)
        assert all(verify(row.pk) is None for row in Memory.objects.all()), name
        assert queries.memory("dangling").is_dangling
        assert not queries.memory("waiting").is_dangling
        assert Memory.objects.get(pk="waiting").waiting_call == 2
        assert [row.pk for row in Memory.objects.containing("needle")] == ["bare"]
        assert queries.message("first", 3).redacted.n == 4
        assert queries.memory("first").policy.always_keep_system_message_first
        assert queries.memory("large").is_oversized
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
