"""The rows of a conversation can be on one node of a cluster, as the database has them."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import AutoField

from chatmemory.distribution import Placement, placements
from chatmemory.rooms import rooms

CONFIGS = [apps.get_app_config("chatmemory"), *rooms()]
MODELS = {model._meta.db_table: model for config in CONFIGS for model in config.get_models()}
DISTRIBUTED = [each for each in placements() if each.column]
ROOM_ROWS = {
    model.__name__
    for room in rooms()
    for model in room.get_models()
    if any(field.column == "memory_id" for field in model._meta.local_concrete_fields)
}
pytestmark = pytest.mark.django_db


def test_each_table_has_its_place():
    placed = {each.table: each.column for each in placements()}
    assert {MODELS[table].__name__: column for table, column in placed.items()} == {
        "Memory": "id",
        **dict.fromkeys(("Message", "Stay", "Step"), "memory_id"),
        **dict.fromkeys(ROOM_ROWS, "memory_id"),
        **dict.fromkeys(("IdempotentAnswer", "AuditEntry"), None),
    }
    others = {MODELS[table].__name__ for table in MODELS.keys() - placed}
    names = {"ApiToken", "DefaultPolicy", "DroppedCalls", "MutedCause", "ProvidersInUse"}
    names.add("KeptFigures")
    assert others == {*names, "ToolDefinition"}


@pytest.mark.parametrize("placement", DISTRIBUTED, ids=lambda each: each.table)
def test_what_is_unique_or_referred_to_is_within_a_conversation(placement):
    """Citus can check a key only where it holds the column by which the table is distributed."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, placement.table)
    keys = {name: each for name, each in found.items() if each["unique"] or each["primary_key"]}
    referring = {name: each for name, each in found.items() if each["foreign_key"]}
    assert keys
    for name, each in (keys | referring).items():
        assert placement.column in each["columns"], name
    for name, each in referring.items():
        table, column = each["foreign_key"]
        assert Placement(table, column) in DISTRIBUTED, name


@pytest.mark.parametrize("placement", DISTRIBUTED, ids=lambda each: each.table)
def test_rows_of_a_conversation_are_numbered_by_itself(placement):
    """A sequence would be one of all nodes."""
    fields = MODELS[placement.table]._meta.local_concrete_fields
    assert not [field.name for field in fields if isinstance(field, AutoField)]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="shards are tables of PostgreSQL")
def test_no_trigger_writes_to_another_table():
    with connection.cursor() as cursor:
        cursor.execute("""SELECT tgrelid::regclass::text, tgname FROM pg_trigger
            WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'chatmemory_%'""")
        assert cursor.fetchall() == []
