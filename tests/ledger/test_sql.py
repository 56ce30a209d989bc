"""The SQL of an add does the same as the ORM."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from chatmemory import MessageWindow, SystemMessage, UserMessage, services
from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.ledger import sql
from chatmemory.ledger.windows import stays_at
from chatmemory.models import Memory, Message, Stay, Step

pytestmark = [pytest.mark.django_db, pytest.mark.database]

AT = datetime(2026, 5, 4, 3, 2, 1, 123456, UTC)
TABLES = {Message: InsertedMessage, Stay: InsertedStay, Step: InsertedStep}


def columns(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def inserted(row):
    """Return a stored row as one that is to be inserted."""
    kind = TABLES[type(row)]
    return kind(*(getattr(row, field.name) for field in fields(kind)))


def write(memory_id, ended=None, **rows):
    row = Memory.objects.get(pk=memory_id)
    sql.write(row, sql.values_of(row), ended or {}, **rows)


@pytest.fixture
def conversation():
    services.create("m", MessageWindow(2), labels={"team": "é"})
    services.add("m", [UserMessage(text) for text in ("one", "two", "three")])
    return "m"


@pytest.mark.parametrize(("model", "row"), TABLES.items())
def test_inserted_rows_have_the_columns_of_their_models(model, row):
    columns = {field.column for field in model._meta.concrete_fields}
    assert {field.name for field in fields(row)} == columns


def test_what_is_read_of_stays_are_columns_of_the_models():
    """The last six are columns of the message and of the conversation."""
    of_stay = {field.column for field in Stay._meta.concrete_fields}
    assert set(sql.STAY) <= of_stay
    assert sql.WindowMessage._fields[:-6] == sql.STAY


@pytest.mark.parametrize("model", TABLES)
@pytest.mark.parametrize("copies", [1, 2, sql.COPIED])
def test_inserted_rows_equal_rows_of_the_orm(model, copies, conversation):
    row = model.objects.filter(memory=conversation).order_by("pk").last()
    number = "seq" if model is Message else "n"
    rows = [
        replace(inserted(row), **{number: 100 + n, "memory_id": conversation})
        for n in range(copies)
    ]
    write(conversation, **{f"{model.__name__.lower()}s": rows})
    stored = model.objects.filter(memory=conversation, **{f"{number}__gte": 100})
    assert [columns(each) for each in stored.order_by(number)] == [
        columns(row) | {number: 100 + n} for n in range(copies)
    ]


def test_times_of_any_zone_are_stored(conversation):
    row = inserted(Message.objects.filter(memory=conversation).first())
    east = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    rows = [replace(row, seq=100, said_at=east), replace(row, seq=101, said_at=AT)]
    write(conversation, messages=rows)
    stored = Message.objects.filter(memory=conversation, seq__gte=100)
    assert set(stored.values_list("said_at", flat=True)) == {AT}
    assert stored.filter(said_at=AT).count() == 2


def test_a_row_is_inserted_only_if_its_key_is_new(conversation):
    row = Memory.objects.get(pk=conversation)
    row.last_seq = 99
    assert not sql.insert_if_new(row)
    assert Memory.objects.get(pk=conversation).last_seq == 3
    row.pk = "other"
    assert sql.insert_if_new(row)
    assert columns(Memory.objects.get(pk="other")) == columns(row)


@pytest.mark.parametrize("lock", [False, True])
def test_a_conversation_is_read_as_by_the_orm(lock, conversation):
    Memory.objects.filter(pk=conversation).update(imported=7)
    row = sql.read_memory(conversation, lock)
    assert columns(row) == columns(Memory.objects.get(pk=conversation))
    assert (row._state.adding, row._state.db) == (False, "default")
    row.refresh_from_db()
    Memory.objects.filter(pk=conversation).update(deleted_at=AT)
    assert sql.read_memory(conversation, lock) is None
    assert sql.read_memory("other", lock) is None


def test_a_step_is_read_as_by_the_orm(conversation):
    assert columns(sql.read_step(conversation, 2)) == columns(
        Step.objects.get(memory=conversation, n=2)
    )
    assert sql.read_step(conversation, 9) is None


def test_a_changed_row_is_written_as_by_the_orm(conversation):
    row = Memory.objects.get(pk=conversation)
    before = sql.values_of(row)
    row.labels, row.policy_options, row.deleted_at = {"a": "b"}, {"c": [1, None, "d"]}, None
    row.updated_at, row.head, row.imported, row.policy_kind = AT, b"\x00\xff", 7, None
    sql.write(row, before, {})
    by_statement = columns(Memory.objects.get(pk=conversation))
    row.save()
    assert by_statement == columns(Memory.objects.get(pk=conversation))
    assert by_statement["updated_at"] == AT
    assert by_statement["labels"] == {"a": "b"}


def test_a_row_that_was_read_is_written_where_it_differs(conversation):
    row = sql.read_memory(conversation)
    before = sql.values_of(row)
    row.last_seq, row.updated_at, row.labels = 9, AT, {"team": "b"}
    Memory.objects.filter(pk=conversation).update(last_stay=7)
    with CaptureQueriesContext(connection) as queries:
        sql.write(row, before, {})
    (update,) = [each["sql"] for each in queries if each["sql"].startswith("UPDATE")]
    assert set(re.findall(r"(\w+) = ", update)) == {"last_seq", "updated_at", "labels", "id"}
    stored = Memory.objects.get(pk=conversation)
    assert (stored.last_seq, stored.last_stay, stored.updated_at) == (9, 7, AT)
    assert stored.labels == {"team": "b"}


def test_only_the_named_stays_end(conversation):
    write(conversation, {2: (9, "CLEARED"), 3: (8, "SET")})
    ended = Stay.objects.filter(memory=conversation).order_by("n")
    assert list(ended.values_list("n", "left_step", "reason")) == [
        (1, 3, "CAPACITY"),
        (2, 9, "CLEARED"),
        (3, 8, "SET"),
    ]


def test_the_window_is_read_as_by_the_orm(conversation):
    stays = Stay.objects.filter(memory=conversation, left_step=None).order_by("rank")
    assert sql.first_stays(conversation) == list(stays.values_list(*sql.STAY))
    rows = stays.annotate(
        frame=F("message__frame"),
        text=F("message__text"),
        attributes=F("message__attributes"),
        redacted_step=F("message__redacted_step"),
        estimator=F("memory__policy_estimator"),
    )
    expected = list(rows.values_list(*sql.WindowMessage._fields))
    assert [tuple(row) for row in sql.window_messages(conversation)] == expected
    Memory.objects.filter(pk=conversation).update(deleted_at=AT)
    assert sql.window_messages(conversation) == []


def test_the_window_after_each_step_is_read_as_by_the_orm(conversation):
    """Also system messages and pins, which are older than the bounds of the window."""
    services.change(conversation, policy=MessageWindow(3))
    services.pin(conversation, 2)
    services.add(conversation, [SystemMessage("be brief"), UserMessage("four")])
    services.add(conversation, [UserMessage("five"), UserMessage("six")])
    newest = Step.objects.filter(memory=conversation).latest("n")
    assert {row[1] for row in sql.window_stays(conversation, sql.STAY, newest)} == {2, 4, 7}
    for step in Step.objects.filter(memory=conversation):
        stays = list(stays_at(step).values_list(*sql.STAY))
        assert sql.window_stays(conversation, sql.STAY, step) == stays
        messages = sql.window_messages(conversation, step)
        assert [row[: len(sql.STAY)] for row in messages] == stays
