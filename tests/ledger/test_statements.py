"""Compiled statements do what the ORM does."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.db.models import QuerySet

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.ledger import statements
from chatmemory.ledger.new_rows import new_row
from chatmemory.ledger.statements import Compiled
from chatmemory.ledger.writes import execute
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
    for insert in (
        model.objects.bulk_create,
        lambda rows: execute([statements.insertion(rows)]),
    ):
        model.objects.filter(pk=row.pk).delete()
        insert([row])
        assert columns(model.objects.get(pk=row.pk)) == written


def test_rows_that_are_inserted_together_keep_their_own_values(conversation):
    rows = list(Message.objects.filter(memory=conversation).order_by("seq"))
    rows[1].said_at = AT
    Message.objects.filter(memory=conversation).delete()
    execute([statements.insertion(rows)])
    stored = Message.objects.filter(memory=conversation).order_by("seq")
    assert [columns(row) for row in stored] == [columns(row) for row in rows]


def test_a_row_is_inserted_only_if_its_key_is_new(conversation):
    row = Memory.objects.get(pk=conversation)
    row.last_seq = 99
    execute([statements.insertion_if_new(row)])
    assert Memory.objects.get(pk=conversation).last_seq == 3
    row.pk = "other"
    execute([statements.insertion_if_new(row)])
    assert columns(Memory.objects.get(pk="other")) == columns(row)


def test_a_new_row_has_what_djangos_constructor_gives_it():
    values = {"memory_id": "m", "n": 1, "seq": 2, "has_calls": False, "pinned": True}
    assert columns(new_row(Stay, **values)) == columns(Stay(**values)) | {
        "rank": None,
        "tokens": None,
        "type": None,
    }


def test_a_changed_row_is_written_as_by_the_orm(conversation):
    row = Memory.objects.get(pk=conversation)
    row.labels, row.policy_options, row.deleted_at = {"a": "b"}, {"c": [1, None, "d"]}, None
    row.updated_at, row.head, row.imported, row.policy_kind = AT, b"\x00\xff", 7, None
    execute([statements.change(row)])
    by_statement = columns(Memory.objects.get(pk=conversation))
    row.save()
    assert by_statement == columns(Memory.objects.get(pk=conversation))
    assert by_statement["updated_at"] == AT
    assert by_statement["labels"] == {"a": "b"}


def conversation_named(memory_id: str) -> QuerySet[Memory]:
    return Memory.objects.filter(pk=memory_id)


def test_a_row_that_was_read_is_written_where_it_differs(conversation):
    (row,) = Compiled(conversation_named)(conversation)
    assert not statements.change(row).values
    row.last_seq, row.updated_at, row.labels = 9, AT, {"team": "b"}
    Memory.objects.filter(pk=conversation).update(last_stay=7)
    write = statements.change(row)
    assert {"last_seq", "updated_at", "labels"} == set(
        re.findall(r'"(\w+)" = %s[, ]', write.sql)
    ) - {"id"}
    execute([write])
    stored = Memory.objects.get(pk=conversation)
    assert (stored.last_seq, stored.last_stay, stored.updated_at) == (9, 7, AT)
    assert stored.labels == {"team": "b"}


def test_only_the_named_stays_end(conversation):
    execute([statements.endings(conversation, {2: (9, "CLEARED"), 3: (8, "SET")})])
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
