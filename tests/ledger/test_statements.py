"""Compiled statements do what the ORM does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db.models import QuerySet

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.ledger import statements
from chatmemory.ledger.statements import Compiled
from chatmemory.models import Memory, Message, Stay, Step

pytestmark = [pytest.mark.django_db, pytest.mark.database]

AT = datetime(2026, 5, 4, 3, 2, 1, 123456, UTC)


def columns(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.fixture
def conversation():
    services.create("m", MessageWindow(2), labels={"team": "é"})
    services.add("m", [UserMessage(text) for text in ("one", "two", "three")])
    return "m"


@pytest.mark.parametrize("model", [Message, Stay, Step])
def test_inserted_rows_are_those_of_the_orm(model, conversation):
    row = model.objects.filter(memory=conversation).order_by("pk").last()
    written = columns(row)
    for insert in (model.objects.bulk_create, statements.insert):
        model.objects.filter(pk=row.pk).delete()
        insert([row])
        assert columns(model.objects.get(pk=row.pk)) == written


def test_a_changed_row_is_written_as_by_the_orm(conversation):
    row = Memory.objects.get(pk=conversation)
    row.labels, row.policy_options, row.deleted_at = {"a": "b"}, {"c": [1, None, "d"]}, None
    row.updated_at, row.head, row.imported, row.policy_kind = AT, b"\x00\xff", 7, None
    statements.update(row)
    by_statement = columns(Memory.objects.get(pk=conversation))
    row.save()
    assert by_statement == columns(Memory.objects.get(pk=conversation))
    assert by_statement["updated_at"] == AT
    assert by_statement["labels"] == {"a": "b"}


def test_only_the_named_stays_end(conversation):
    statements.end_stays(conversation, {2: (9, "CLEARED"), 3: (8, "SET")})
    ended = Stay.objects.filter(memory=conversation).order_by("n")
    assert list(ended.values_list("n", "left_step", "reason")) == [
        (1, 3, "CAPACITY"),
        (2, 9, "CLEARED"),
        (3, 8, "SET"),
    ]


def stays_behind(memory_id: str, n: int) -> QuerySet[Stay]:
    return Stay.objects.filter(memory=memory_id, n__gt=n, left_step=None).order_by("n")


def numbers_behind(memory_id: str, n: int) -> QuerySet[Stay]:
    return stays_behind(memory_id, n).values_list("n", "memory__created_at", named=True)


@pytest.mark.parametrize("build", [stays_behind, numbers_behind])
def test_a_compiled_query_gives_the_rows_of_its_query_set(build, conversation):
    compiled = Compiled(build)
    for arguments in ((conversation, 0), (conversation, 2), (conversation, 3), ("other", 0)):
        expected = list(build(*arguments))
        assert compiled(*arguments) == expected
        assert [type(row).__name__ for row in compiled(*arguments)] == [
            type(row).__name__ for row in expected
        ]


def test_an_instance_knows_its_database(conversation):
    (row,) = Compiled(stays_behind)(conversation, 2)
    assert row._state.db == "default"
    assert not row._state.adding
