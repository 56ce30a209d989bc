"""Contradictions: differences between stored rows and the rows that a replay expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError, ProgrammingError

from chatmemory.exceptions import CorruptRow, MemoryNotFound
from chatmemory.models import Memory, Message, Stay, Step


@dataclass(frozen=True)
class Contradiction:
    """A stored row that differs from the replay."""

    memory_id: str
    row: str
    what: str

    def __str__(self) -> str:
        return f"{self.memory_id!r}: {self.row}: {self.what}"


class Contradicted(Exception):
    """A row differs. `row` is a row of a model, or a name."""

    def __init__(self, row: object, what: str) -> None:
        self.row, self.what = _name(row), what
        super().__init__(what)


class LedgerCheck:
    """A check of each row during the replay of a conversation, in the order of its ledger.

    Its methods raise Contradicted for a wrong row.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def message(self, row: Message) -> None:
        """Check a message during the replay of the step that stored this message."""

    def stay(self, row: Stay) -> None:
        """Check a stay during the replay of the step that began this stay."""

    def step(self, step: Step, ended: Sequence[tuple[int, str]]) -> None:
        """Check a step, after its messages and the stays that began with the step.

        `ended` has the number and the reason of each stay that ended with the step, by number.
        """

    def end(self) -> None:
        """Check the totals after the last step, once everything else is verified."""


def expect(row: object, what: str, found: object, expected: object) -> None:
    """Raise Contradicted if a column of a row differs from the replay."""
    if found != expected:
        raise Contradicted(row, f"{what} is {found!r}, the replay has {expected!r}")


def expect_any(row: object, what: str, found: object, expected: Sequence[object]) -> None:
    """Raise Contradicted if the value of a column is not among the values of any version. The value
    of the current version comes first.
    """
    if found not in expected:
        expect(row, what, found, expected[0])


@contextmanager
def naming(row: object) -> Iterator[None]:
    """Raise Contradicted for every error in the block: any value of the row may be altered.

    An outage of the database says nothing about the row, and is raised unchanged.
    """
    try:
        yield
    except (Contradicted, MemoryNotFound):
        raise
    except CorruptRow as error:
        raise Contradicted(row, str(error)) from error
    except Exception as error:
        if is_outage(error):
            raise
        raise Contradicted(row, f"cannot be read: {error or type(error).__name__}") from error


def is_outage(error: Exception) -> bool:
    """Return whether the database cannot answer any query, or the machine has no memory for the
    rows.
    """
    unasked = (OperationalError, InterfaceError, ProgrammingError, OSError)
    is_unasked = isinstance(error, unasked)
    # SQLite's driver has no specific error for text that is not UTF-8
    return is_unasked and "Could not decode" not in str(error)


def stay_name(n: int, seq: int) -> str:
    return f"stay {n} of message #{seq}"


def _name(row: object) -> str:
    match row:
        case Message():
            return f"message #{row.seq}"
        case Stay():
            return stay_name(row.n, row.seq)
        case Step():
            return f"step {row.n}"
        case Memory():
            return "the conversation's counters"
    return str(row)
