"""Whatever was changed, any altered, removed or copied row is named.

That any changes verify without a contradiction, tests/test_diagnosis.py shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Field, ForeignKey, Model
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    TurnWindow,
    UserMessage,
    services,
)
from chatmemory.exceptions import ChatMemoryError
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import with_attributes
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading import windows
from chatmemory.stores.database import DjangoChatMemoryStore

from ..properties import examples

pytestmark = pytest.mark.database

OUT_OF_REACH = {"id", "branched_from", "imported"}  # the last one may be true by chance
OTHER_THAN_NULL = {
    "BigIntegerField": 1,
    "BinaryField": b"x",
    "CharField": "x",
    "DateTimeField": datetime(2026, 1, 1, tzinfo=UTC),
    "TextField": "x",
}
NUMBERS = {Step: "n", Stay: "n", Message: "seq"}

words = st.sampled_from(["a", "b", "a longer sentence that costs a few tokens more"])
attributes = st.sampled_from([{}, {"a": 1}, {"a": 2, "b": "\N{SLOTH}"}])
messages = st.one_of(
    st.builds(UserMessage, words),
    st.builds(SystemMessage, words, attributes),
    st.builds(AiMessage, words, attributes=attributes),
    st.builds(lambda call: AiMessage(None, (ToolExecutionRequest(call, "find", "{}"),)), words),
    st.builds(lambda call: ToolExecutionResultMessage(call, "find", "found"), words),
    st.builds(lambda call: ToolExecutionResultMessage(call, "find", "found it " * 12), words),
    st.just(CustomMessage({"a": 1})),
)
lists = st.lists(messages, max_size=6)
options = {
    "low_water": st.sampled_from([0.5, 1]),
    "snap_to_user": st.booleans(),
    "free_system": st.booleans(),
}
estimators = st.sampled_from(["gpt-4o", "gpt-4"])
policies = st.one_of(
    st.builds(TurnWindow, st.integers(2, 3), estimator=estimators, **options),
    st.builds(MessageWindow, st.integers(2, 6), estimator=estimators, **options),
    st.builds(TokenWindow, st.integers(4, 7), estimator=estimators),  # for half of it, too small
    st.builds(TokenWindow, st.integers(8, 60), estimator=estimators, **options),
    st.builds(TokenWindow, st.integers(60, 120), clear_tool_results=st.integers(1, 2)),
)
places = st.integers(0, 5)
changes = st.one_of(
    st.tuples(st.just("add"), lists),
    st.tuples(st.just("set"), lists),
    st.tuples(st.just("client's list"), lists),
    st.tuples(st.just("reorder"), st.lists(places, max_size=6, unique=True)),
    st.tuples(st.just("policy"), policies),
    st.tuples(st.just("labels"), st.sampled_from(["red", "blue"])),
    st.tuples(st.sampled_from(["pin", "unpin", "redact", "clear", "make anew"]), places),
    st.tuples(st.sampled_from(["compact", "summarize"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["attributes by a client", "attributes"]), attributes),
)


def change(kind: str, value: Any) -> None:
    """Make a change of the conversation, if it is possible."""
    window = windows.window("m")
    seqs = [row.seq for row in window.rows]
    match kind:
        case "add":
            services.add("m", value, actor="ada")
        case "set":
            services.set_messages("m", value)
        case "client's list":
            protocol.update_messages("m", [*window.messages, *value])
        case "reorder":
            protocol.update_messages("m", [window.messages[n] for n in value if n < len(seqs)])
        case "policy":
            services.change("m", policy=value)
        case "labels":
            services.change("m", labels={"team": value})
        case "clear":
            services.clear_messages("m")
        case "compact":
            services.compact("m", "They said a.", keep_last=value)
        case "summarize":
            memory = MessageWindowChatMemory("m", max_messages=4, store=DjangoChatMemoryStore())
            memory.compact("They said b.", keep_last=value)
        case "attributes by a client" | "attributes":
            said = [m for m in window.messages if not isinstance(m, CustomMessage)]
            changed = [with_attributes(each, value) for each in said]
            is_list = kind == "attributes"
            (services.set_messages if is_list else protocol.update_messages)("m", changed)
        case "make anew":
            services.delete("m")
            create()
        case _ if value < len(seqs):
            {"pin": services.pin, "unpin": services.unpin, "redact": services.redact}[kind](
                "m", seqs[value]
            )


def create() -> None:
    services.create("m", MessageWindow(4), {"team": "red"})
    services.add("m", [UserMessage("hello")])  # the policy before any step is out of reach


def make(made: list[tuple[str, Any]]) -> None:
    create()
    for kind, value in made:
        try:
            change(kind, value)
        except ChatMemoryError:
            continue  # a policy that rejects it, or a memory too full of pins


def altered(field: Field[Any, Any], value: Any) -> Any:
    """Return another value for a column."""
    match value:
        case None:
            return OTHER_THAN_NULL[field.get_internal_type()]
        case bool():
            return not value
        case int():
            return value + 1_000
        case str():
            return f"{value}x"
        case datetime():
            return value + timedelta(microseconds=1)
        case dict():
            return value | {"another": "x"}
    return bytes(value) + b"x"


def columns(model: type[Model]) -> list[Field[Any, Any]]:
    return [each for each in model._meta.concrete_fields if not isinstance(each, ForeignKey)]


@contextmanager
def undone() -> Iterator[None]:
    """Roll back the writes of the block."""
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


def rows_of(model: type[Model]) -> Any:
    return model.objects.filter(**{"pk" if model is Memory else "memory": "m"})


@examples(30)
@given(st.lists(changes, max_size=8), st.data())
def test_any_altered_column_is_named(db, made, data):
    with undone():
        make(made)
        for model in (Memory, Step, Message, Stay):
            rows = list(rows_of(model).order_by("pk"))
            fields = [each for each in columns(model) if each.name not in OUT_OF_REACH]
            for row in data.draw(st.lists(st.sampled_from(rows), max_size=2)) if rows else ():
                field = data.draw(st.sampled_from(fields))
                value = altered(field, getattr(row, field.attname))
                with undone():
                    rows_of(model).filter(pk=row.pk).update(**{field.attname: value})
                    assert verify("m") is not None, (row, field.name, value)


@examples(15)
@given(st.lists(changes, max_size=8), st.data())
def test_any_removed_or_copied_row_is_named(db, made, data):
    with undone():
        make(made)
        for model, number in NUMBERS.items():
            rows = list(rows_of(model).order_by("pk"))
            row, at = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from([-1, 1, 2]))
            with undone():
                rows_of(model).filter(pk=row.pk).delete()
                assert verify("m") is not None, row
            with undone():
                values = {each.attname: getattr(row, each.attname) for each in columns(model)}
                values[number] = at if at < 1 else len(rows) + at
                model.objects.create(memory_id="m", **values)
                assert verify("m") is not None, (row, at)
