"""Finds the clearing of a tool result: the step that replaced its text by a placeholder in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.overrides import text_of_stub
from chatmemory.messages.message import TYPES
from chatmemory.models import Stay, Step
from chatmemory.reading.rows import MessageDetail
from chatmemory.reading.steps import step
from chatmemory.windows.eviction import IN_PLACE, Reason
from chatmemory.windows.window import Entry


@dataclass(frozen=True)
class Clearing:
    """The clearing of a tool result: the `change` that replaced its text by a placeholder in
    memory.

    - `stub`: the text of the placeholder, or None if the placeholder's text was erased.
    - `arrival`: the message that the next step added, as its seq and its entry. The clearing made
      room for this message. None if the next step is no add.
    """

    change: ChangeResult
    stub: str | None
    arrival: tuple[int, Entry] | None = None


def find_clearing(row: MessageDetail, at: int) -> Clearing | None:
    """Return the clearing of the tool result `row`, made at step `at` or before. None if at step
    `at` the tool result is not in memory, or is in memory with its full text.
    """
    n = _cleared_at(row, at)
    if n is None:
        return None
    stubs = Stay.objects.filter(memory_id=row.memory_id, seq=row.seq, entered_step=n)
    overrides = stubs.values_list("overrides", flat=True).first()
    stub = text_of_stub(overrides, row.text)
    return Clearing(step(row.memory_id, n).change, stub, _arrival(row, n + 1))


def _cleared_at(row: MessageDetail, at: int) -> int | None:
    """Return the step that cleared a tool result which is in memory at step `at`. None if the
    result is not in memory, or not cleared.
    """
    if not row.is_in_window(at):
        return None
    cleared = None
    for stay in row.stays:
        if stay.left_step is not None and stay.left_step <= at:
            if stay.reason not in IN_PLACE:
                cleared = None
            elif stay.reason is Reason.STUBBED:
                cleared = stay.left_step
    return cleared


def _arrival(row: MessageDetail, n: int) -> tuple[int, Entry] | None:
    """Return the message that step `n` added, as its seq and its entry. None if the step is no
    add.
    """
    adds = Step.objects.filter(memory_id=row.memory_id, n=n, kind=Step.Kind.ADD)
    last = adds.values_list("last_stay", flat=True).first()
    stay = last and Stay.objects.filter(memory_id=row.memory_id, n=last).first()
    if not stay:
        return None
    return stay.seq, Entry(TYPES[stay.type], stay.has_calls, stay.tokens, key=stay.seq)
