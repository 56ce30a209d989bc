"""Looks up conversations and steps, and raises chatmemory's own errors if they do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.db.models import BinaryField, CharField, Func
from django.db.models.functions import Cast

from chatmemory import database
from chatmemory.exceptions import MemoryNotFound, StepNotFound
from chatmemory.ledger.sql import read_memory, read_step
from chatmemory.ledger.windows import step_zero
from chatmemory.managers import MemoryQuerySet
from chatmemory.messages.ids import storable_id
from chatmemory.models import Memory, Step
from chatmemory.tables import SqlRow


def find_memory(memory_id: str) -> Memory:
    """Return the row of a conversation. Raises MemoryNotFound for an unknown id.

    Raises InvalidValue if the id is not a string, and UnstorableText if no database can store it.
    """
    if memory := read_memory(storable_id(memory_id)):
        return memory
    raise MemoryNotFound(f"no conversation has the id {memory_id!r}")


Bytes = bytes | memoryview  # the types that databases return


def stored(value: Bytes | None) -> bytes:
    """Return the content of a column of bytes; b"" for NULL. Raises TypeError for a number, which
    somebody may have written into the column.
    """
    return b"" if value is None else bytes(memoryview(value))


class StoredId(NamedTuple):
    """The id of a conversation, as text that can be shown.

    `is_readable` is False if the database does not have the id as UTF-8 text. In `text`, bytes that
    are not UTF-8 are escaped.
    """

    text: str
    is_readable: bool = True


def stored_ids(rows: MemoryQuerySet, *columns: str) -> Iterator[SqlRow]:
    """Yield a row for each conversation, ordered by id: the StoredId, followed by the values of
    `columns`.

    An id that is not UTF-8 would make a whole query of SQLite fail, so ids are read as bytes.
    """
    if database.connection().vendor != "sqlite":
        for memory_id, *values in rows.order_by("id").values_list("id", *columns):
            yield StoredId(memory_id), *values
        return
    as_stored = Cast("id", BinaryField()), Func("id", function="typeof", output_field=CharField())
    for content, type, *values in rows.order_by("id").values_list(*as_stored, *columns):
        yield _stored_id(content, type), *values


def _stored_id(content: bytes, type: str) -> StoredId:
    try:
        return StoredId(content.decode(), is_readable=type == "text")
    except UnicodeDecodeError:
        return StoredId(content.decode(errors="backslashreplace"), is_readable=False)


def find_step(memory: Memory, n: int) -> Step:
    """Return step `n` of a conversation. Step 0 stands for the state before the first step. Raises
    StepNotFound.
    """
    if n == 0:
        return step_zero(memory)
    step = read_step(memory.pk, n) if 0 < n <= memory.last_step else None
    if step is None:
        raise no_step(memory, n, first=0)
    return step


def no_step(memory: Memory, n: int, first: int) -> StepNotFound:
    """Return the error for a missing step `n`. Its text says which steps exist, such as "only steps
    1 to 7".

    `first` is the lowest number that the caller accepts, 0 or 1.
    """
    last = memory.last_step
    if last < first:
        return StepNotFound(
            f"the conversation {memory.pk!r} has no step {n}, because nothing has changed it yet"
        )
    only = f"step {last}" if last == first else f"steps {first} to {last}"
    return StepNotFound(f"the conversation {memory.pk!r} has no step {n}, only {only}")
