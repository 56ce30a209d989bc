"""What the verification of a conversation checks of pinned messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chatmemory.core.eviction import Eviction, Reason, group_of
from chatmemory.core.messages import MessageType
from chatmemory.core.window import Window
from chatmemory.ledger.contradictions import Contradicted, expect, stay_name
from chatmemory.ledger.reading import EndedStay
from chatmemory.ledger.windows import StayEntry, stay_entries
from chatmemory.models import Step

PINNING = (Step.Kind.PIN, Step.Kind.UNPIN)


def moved_by_pin(step: Step, window: Window, begun: Sequence[StayEntry]) -> list[Eviction]:
    """Return what a step that pins or unpins puts into its place anew.

    The stays that it began must be of the same messages, at the same ranks. Raises Contradicted.
    """
    near = _near(window, step.seq)
    seqs = [entry.seq for entry in near]
    if step.seq not in seqs:
        raise Contradicted(step, f"pins #{step.seq}, which was not in the window")
    chosen = group_of(near, seqs.index(step.seq))
    expected = [(each.seq, each.rank, step.kind == Step.Kind.PIN) for each in chosen]
    found = [(each.seq, each.rank, each.pinned) for each in begun]
    expect(step, "what it pins or unpins", found, expected)
    return [Eviction(each, Reason.MOVED) for each in chosen]


def _near(window: Window, seq: int | None) -> list[StayEntry]:
    """Return a message with the tool results around it, and what these are behind."""
    near: list[StayEntry] = []
    for entry in stay_entries(window):
        if entry.type is not MessageType.TOOL_EXECUTION_RESULT:
            if any(each.seq == seq for each in near):
                break
            near.clear()
        near.append(entry)
    return near


def check_pins(window: Window, begun: Sequence[StayEntry], ended: Mapping[int, EndedStay]) -> None:
    """Check that a step of another kind pins and unpins nothing. Raises Contradicted."""
    moved = {stay.n for stay in ended.values() if stay.reason == Reason.MOVED} if begun else set()
    before = (entry for entry in stay_entries(window) if entry.pinned) if moved else ()
    pinned = {entry.seq for entry in before if entry.n in moved}
    for entry in begun:
        name = stay_name(entry.n, entry.seq)
        expect(name, "pinned", entry.pinned, entry.seq in pinned)
