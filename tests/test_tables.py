"""Rows that are read by plain SQL are those of the ORM."""

from __future__ import annotations

import pytest
from django.db.models import Model

from chatmemory import AiMessage, MessageWindow, UserMessage, database, services
from chatmemory.ledger.sql import frames_by_seq, messages_by_seq
from chatmemory.models import Memory, Message, Step
from chatmemory.rooms import keepers
from chatmemory.tables import Table

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def conversation():
    services.create("m", MessageWindow(2), labels={"team": "é"})
    services.add("m", [UserMessage("one"), AiMessage("two"), UserMessage("three")])
    services.keep("m")
    return "m"


def columns(row: Model) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.parametrize("model", [Memory, Message, Step])
def test_rows_equal_those_of_the_orm(conversation, model):
    stored = [columns(row) for row in model.objects.order_by("pk")]
    condition = f"1 = 1 ORDER BY {', '.join(field.column for field in model._meta.pk_fields)}"
    assert [columns(row) for row in Table(model).read_all(condition, {})] == stored
    assert [row._asdict() for row in Table(model).read_rows(condition, {})] == stored


def test_a_condition_selects_sorts_and_limits(conversation):
    values = {"id": conversation, "size": 2}
    found = Table(Message).read_all("memory_id = %(id)s ORDER BY seq DESC LIMIT %(size)s", values)
    assert [row.text for row in found] == ["three", "two"]
    assert Table(Message).read_all("memory_id = %(id)s", {"id": "other"}) == []


def test_columns_that_are_left_out_are_read_on_access(conversation, django_assert_num_queries):
    table = Table(Message, only=("memory_id", "seq", "frame"))
    with django_assert_num_queries(2):
        (row,) = table.read_all("memory_id = %(id)s AND seq = 3", {"id": conversation})
        assert row.text == "three"
    (row,) = table.read_rows("memory_id = %(id)s AND seq = 3", {"id": conversation})
    assert row._fields == ("memory_id", "seq", "frame")


def test_a_keeper_has_the_row_of_its_version_only(conversation):
    memory = Memory.objects.get(pk=conversation)
    for keeper in keepers():
        assert columns(keeper.row(memory)) == columns(keeper.model.objects.get(memory=memory))
        keeper.model.objects.update(version="another")
        assert keeper.row(memory) is None


def test_messages_are_read_by_seq(conversation):
    rows = {row.seq: row for row in messages_by_seq(conversation, [3, 1, 7])}
    assert {seq: row.text for seq, row in rows.items()} == {1: "one", 3: "three"}
    assert frames_by_seq(conversation, iter([1, 3])) == {n: rows[n].frame for n in rows}
    assert messages_by_seq(conversation, []) == []
    assert database.list_parameter(()) in ([], "[]")
