"""Contradictions: stored rows that differ from what the ledger gives when it is replayed. A
verification finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError, ProgrammingError

from chatmemory.exceptions import CorruptRow, MemoryNotFound
from chatmemory.models import Memory, Message, Stay, Step


@dataclass(frozen=True)
class Contradiction:
    """A stored row that contradicts the ledger: `row` names the row, and `what` says how it
    differs.
    """

    memory_id: str
    row: str
    what: str

    def __str__(self) -> str:
        return f"{self.memory_id!r}: {self.row}: {self.what}"


class Contradicted(Exception):
    """Raised for a row that contradicts the ledger. `what` says how the row differs.

    The argument `row` is the row or its name. The attribute `row` is always the name, such as `step
    7`.
    """

    def __init__(self, row: object, what: str) -> None:
        self.row, self.what = _name(row), what
        super().__init__(what)


class LedgerCheck:
    """Checks the rows of a conversation during a verification, in the order of the ledger.

    Rooms override the methods, which raise Contradicted for a wrong row. By default, every row is
    accepted.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def message(self, row: Message) -> None:
        """Check a message. Called when the step that stored the message is verified."""

    def stay(self, row: Stay) -> None:
        """Check a stay. Called when the step that began the stay is verified."""

    def step(self, step: Step, ended: Sequence[tuple[int, str]]) -> None:
        """Check a step. Called after the step's new messages and new stays are checked.

        `ended` has a pair for each stay that ended with the step: the number `n` of the stay, and
        the reason why the message left. The pairs are sorted by `n`.
        """

    def end(self) -> None:
        """Check what concerns the whole conversation, such as its newest digest. Called after the
        last step.
        """


def expect(row: object, what: str, found: object, expected: object) -> None:
    """Raise Contradicted if a value of a row differs from the expected value. `what` names the
    value.
    """
    if found != expected:
        raise Contradicted(
            row, f"{what} is {found!r}, but the replay of the steps gives {expected!r}"
        )


def expect_any(row: object, what: str, found: object, expected: Sequence[object]) -> None:
    """Raise Contradicted unless a value of a row is among the expected values. `what` names the
    value.

    `expected` has the value that this version of the library computes, then the values that earlier
    versions computed.
    """
    if found not in expected:
        expect(row, what, found, expected[0])


@contextmanager
def naming(row: object) -> Iterator[None]:
    """Turn an error in the block into Contradicted with this `row`, because an altered row may
    cause any error.

    Contradicted, MemoryNotFound and outages of the database are raised unchanged.
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
    """Return whether an error comes from the database or the operating system, such as a lost
    connection or a missing table.

    False for an error that an altered row causes, such as a text in SQLite that is not UTF-8.
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
