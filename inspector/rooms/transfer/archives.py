"""Imports files in the format `chatmemory`. Rows are stored as they are in the file. If the
conversations get new IDs, some values change; see `import_archive`.

A file can come from anywhere. Therefore each line is checked: its values, its row number, and the
digest of a message or step. Each conversation has one transaction, and is verified before the
commit. A faulty conversation is refused, and the import continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count, groupby
from operator import attrgetter
from typing import IO, NamedTuple

from django.db import DataError, IntegrityError

from chatmemory import database, search
from chatmemory.exceptions import ChatMemoryError, InvalidValue, MemoryExists, UnreadableTranscript
from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.ledger import sql
from chatmemory.ledger.lookup import Bytes
from chatmemory.ledger.lookup import stored as content_of
from chatmemory.ledger.numbers import BOUNDED
from chatmemory.ledger.transaction import audit, check_deleted, notify_followers
from chatmemory.ledger.validation import (
    check_actor,
    check_bounds,
    check_client_id,
    check_id,
    check_labels,
    check_storable_limit,
    storable_messages,
)
from chatmemory.ledger.verification import verify
from chatmemory.ledger.windows import read_message
from chatmemory.messages.codec import load_json
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.messages.texts import printable
from chatmemory.models import AuditEntry, Memory, Step
from chatmemory.patterns import declared_pattern
from chatmemory.search import user_labels
from inspector.rooms.integrity import chain
from inspector.rooms.transfer import lines
from inspector.rooms.transfer.imports import Imported

FORMAT = "chatmemory"
LONGEST = 2**26  # the most bytes of a line
STEPS_AT_ONCE, CHARACTERS_AT_ONCE = 500, 1_000_000  # rows are written

_FIRST_NAME = declared_pattern(rb'\A\s*\{\s*"(\w+)"')


class Line(NamedTuple):
    """A line of a file in the format `chatmemory`.

    - `number`: the line number in the file, from 1.
    - `part`: a number that all lines of one conversation share. The last line of the file has a
      `part` of its own.
    - `kind`: the first name in the JSON object, such as `message`; "" if the line does not begin
      with a name.
    - `content`: the line as bytes, not decoded.
    """

    number: int
    part: int
    kind: str
    content: bytes


def is_archive(file: IO[bytes]) -> bool:
    """Return whether a file begins like the format `chatmemory`. The position in the file must be
    0, and is 0 afterwards.
    """
    found = _FIRST_NAME.match(file.read(100))
    file.seek(0)
    return found is not None and found[1].decode() == FORMAT


def import_archive(file: IO[bytes], prefix: str = "", actor: str = "") -> Iterator[Imported]:
    """Import the conversations of a file, each in one transaction, and yield a result for each.

    The new IDs begin with `prefix`. If there is a prefix, these values change, too:

    - `branched_from` begins with the prefix.
    - The digests are computed again.
    - Audit entries about the deletion of earlier conversations with the same ID are left out.

    A conversation that is stored already is skipped. A conversation is refused if another
    conversation has its ID, or if its lines are incomplete or inconsistent.

    Raises UnreadableTranscript for a file of another kind, and InvalidValue for an invalid actor.
    """
    check_actor(actor)
    _check_begin(file)
    found, others = 0, _lines(file)
    for _, part in database.pausing_for_writers(groupby(others, attrgetter("part"))):
        first = next(part)
        if first.kind == lines.CONVERSATION.name:
            found += 1
            yield _import(first, part, prefix, actor)
            continue
        if first.content.strip() != lines.line({"conversations": found}).encode():
            why = f'expected a conversation, or the last line {{"conversations":{found}}}'
            yield Imported(f"line {first.number}", refused=why)
        elif more := next(others, None):
            yield Imported(
                f"line {more.number}",
                refused="this line comes after the last line of the export: remove it",
            )
        return
    yield Imported(
        "the end of the file",
        refused="the last line is missing, because the file was cut off: export the conversations "
        "again",
    )


def _check_begin(file: IO[bytes]) -> None:
    try:
        value = load_json(file.readline(LONGEST).decode())
    except ValueError as error:
        raise UnreadableTranscript(-1, f"line 1: {error}") from error
    if value != {FORMAT: lines.VERSION}:
        why = (
            f'line 1 must be {{"{FORMAT}":{lines.VERSION}}}, but the file has a different format '
            "or version"
        )
        raise UnreadableTranscript(-1, why)


def _lines(file: IO[bytes]) -> Iterator[Line]:
    part = 0
    for number in count(2):
        content = file.readline(LONGEST)
        if not content:
            return
        found = _FIRST_NAME.match(content)
        kind = found[1].decode(errors="replace") if found else ""
        part += kind in (lines.CONVERSATION.name, "conversations")
        yield Line(number, part, kind, content)


def _decoded(line: Line) -> JsonMap:
    """Return the object of a line. Raises InvalidValue."""
    value = load_json(line.content.decode())
    if not isinstance(value, dict):
        raise InvalidValue("the line must be a JSON object")
    return value


@contextmanager
def _naming(line: Line) -> Iterator[None]:
    """Add the number of a line to errors in the `with` block."""
    try:
        yield
    except (ChatMemoryError, UnicodeDecodeError) as error:
        raise InvalidValue(f"line {line.number}: {error}") from error


def _import(first: Line, others: Iterable[Line], prefix: str, actor: str) -> Imported:
    where = f"line {first.number}"
    try:
        with _naming(first):
            memory = Memory(**lines.CONVERSATION.read(_decoded(first)))
            check_labels(user_labels(memory.labels))
            check_storable_limit(memory.policy)
            where = printable(f"{prefix}{memory.pk}")
            rows = _FileRows(memory, check_id(f"{prefix}{memory.pk}"))
            if same := Memory.objects.filter(pk=memory.pk).first():
                return _exists(same, rows)
        _store(rows, others, first, actor)
    except (DataError, IntegrityError) as error:
        return Imported(where, refused=f"it cannot be stored: {str(error).partition(chr(10))[0]}")
    except ChatMemoryError as error:
        return Imported(where, refused=str(error))
    return Imported(memory.pk, memory.said_count)


def _exists(stored: Memory, rows: _FileRows) -> Imported:
    """Return the result for a conversation that is stored already. It may have changed since its
    import: it has the random salt and the last step of the file.

    Raises MemoryExists for another conversation with this ID.
    """
    memory = rows.memory
    steps = Step.objects.filter(memory=stored, n=memory.last_step, at=memory.updated_at)
    is_same = content_of(stored.first_labels) == memory.first_labels
    if is_same and (not memory.last_step or steps.exists()):
        return Imported(memory.pk, already=True)
    raise MemoryExists(f"a conversation with the id {memory.pk!r} already exists")


def _store(rows: _FileRows, others: Iterable[Line], first: Line, actor: str) -> None:
    """Store a conversation in one transaction. Raises InvalidValue if any line is faulty."""
    memory, last = rows.memory, first
    with database.atomic():
        if not sql.insert_if_new(memory):
            check_deleted(memory.pk)
            raise MemoryExists(f"a conversation with the id {memory.pk!r} already exists")
        for last in others:
            with _naming(last):
                rows.read(last.kind, _decoded(last))
        with _naming(last):
            rows.finish()
        # The row counted its messages before they were inserted
        search.index().repair(memory.pk)
        if found := verify(memory.pk):
            where = f"lines {first.number} to {last.number}"
            raise InvalidValue(f"{where}: {found.row}: {found.what}")
        audit(f"import {memory.pk!r}", action="import", actor=actor, memory_id=memory.pk)
        database.on_commit(notify_followers, memory.pk)


class _FileRows:
    """Checks and stores the rows of a conversation in the order of the lines, in batches.

    If `new_id` is not the ID in the lines, the digests are computed again.
    """

    def __init__(self, memory: Memory, new_id: str) -> None:
        self.memory = memory
        self._old_id, self._head = memory.pk, chain.first_digest(memory)
        if new_id != memory.pk:
            prefix = new_id.removesuffix(memory.pk)
            memory.pk, memory.previous_head = new_id, None
            memory.branched_from = memory.branched_from and f"{prefix}{memory.branched_from}"
        self._new_head = chain.first_digest(memory)
        self._inserted = sql.values_of(memory)
        self._messages: list[InsertedMessage] = []
        self._stays: list[InsertedStay] = []
        self._steps: list[InsertedStep] = []
        self._characters = 0
        self._last = dict.fromkeys(("message", "stay", "step"), 0)
        # What the next step, and steps after it, began and ended
        self._commitments: list[Bytes] = []
        self._begun: list[InsertedStay] = []
        self._ended: dict[int, dict[int, InsertedStay]] = {}
        self._window_size = 0
        self._entries = AuditEntry.objects.filter(memory_id=memory.pk, action="delete")
        self._is_ended = False

    def read(self, kind: str, fields: JsonMap) -> None:
        """Check the next line, and store its row. Raises ChatMemoryError if the line is invalid."""
        if self._is_ended:
            raise InvalidValue(
                "the conversation ended with the previous line, and this line belongs to no "
                "conversation"
            )
        match kind:
            case "message":
                self._read_message(InsertedMessage(self.memory.pk, **lines.MESSAGE.read(fields)))
            case "stay":
                self._read_stay(InsertedStay(self.memory.pk, **lines.STAY.read(fields)))
            case "step":
                self._read_step(InsertedStep(self.memory.pk, **lines.STEP.read(fields)))
            case "audit":
                self._read_audit(AuditEntry(memory_id=self.memory.pk, **lines.AUDIT.read(fields)))
            case "end" if fields == {"end": self._old_id}:
                self._is_ended = True
            case _:
                raise InvalidValue(
                    "expected a message, stay, step, audit entry, or the last line of the "
                    f"conversation {self._old_id!r}"
                )

    def finish(self) -> None:
        """Store the last rows of the conversation. Raises InvalidValue if lines are missing."""
        if not self._is_ended:
            raise InvalidValue(
                f"the last line of the conversation {self._old_id!r} is missing after this line: "
                "export the conversation again"
            )
        if self._head != self.memory.head:
            raise InvalidValue(
                "the head in the first line of the conversation differs from the digest of its "
                "last step: the file was altered"
            )
        self.memory.head = self._new_head
        self._write()

    def _read_message(self, row: InsertedMessage) -> None:
        self._check_next("message", row.seq)
        storable_messages([read_message(row)])
        if row.client_id is not None:
            check_client_id(row.client_id)
        if row.redacted_step is None and not chain.is_commitment(row.commitment, row):
            raise InvalidValue(
                f"message #{row.seq} differs from its digest: the message was altered"
            )
        self._commitments.append(row.commitment)
        self._messages.append(row)
        self._characters += len(row.frame) + len(row.text)

    def _read_stay(self, row: InsertedStay) -> None:
        self._check_next("stay", row.n)
        self._begun.append(row)
        self._window_size += row.size
        if row.left_step is not None:
            self._ended.setdefault(row.left_step, {})[row.n] = row
        self._stays.append(row)

    def _read_step(self, row: InsertedStep) -> None:
        self._check_next("step", row.n)
        stays = self._ended.pop(row.n, {})
        ended = [(n, stays[n].reason or "") for n in sorted(stays)]
        wrote = (self._commitments, self._begun, ended)
        is_renamed = self._new_head != self._head
        self._head = chain.digest_as_sealed(row.digest, self._head, row, *wrote)
        if self._head != row.digest:
            raise InvalidValue(
                f"step {row.n} differs from its digest: the step, or a message or stay that it "
                "wrote, was altered: export the conversation again"
            )
        if is_renamed:
            row.digest = chain.digest_of(self._new_head, row, *wrote)
        self._new_head = row.digest
        self._window_size -= sum(each.size for each in stays.values())
        if row.kind in BOUNDED:
            check_bounds(row.count_after, self._window_size)
        self._commitments, self._begun = [], []
        self._steps.append(row)
        if len(self._steps) >= STEPS_AT_ONCE or self._characters >= CHARACTERS_AT_ONCE:
            self._write()

    def _read_audit(self, row: AuditEntry) -> None:
        """Store an audit entry: of this conversation, or of the deletion of an earlier conversation
        with its ID.
        """
        if row.action == AuditEntry.Action.DELETE:
            if self.memory.pk != self._old_id:
                return
            if row.detail.get("head") != content_of(self.memory.previous_head).hex():
                raise InvalidValue(
                    "this audit entry is about a different deletion: its head is not the "
                    "previous_head of the conversation"
                )
            if self._entries.filter(detail=row.detail).exists():
                return
        row.save(force_insert=True)

    def _check_next(self, name: str, number: int) -> None:
        self._last[name] += 1
        if number != self._last[name]:
            raise InvalidValue(
                f"expected {name} {self._last[name]}, but found {name} {number}: a line is "
                "missing, or the lines are out of order"
            )

    def _write(self) -> None:
        rows: JsonDict = {
            "messages": self._messages,
            "stays": self._stays,
            "steps": self._steps,
        }
        sql.write(self.memory, self._inserted, {}, **rows)
        self._inserted = sql.values_of(self.memory)
        self._messages, self._stays, self._steps, self._characters = [], [], [], 0
