"""What the verification of a conversation checks of pinned messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory.core.eviction import Reason
from chatmemory.core.transitions import Transition, pin
from chatmemory.core.window import Entry, Window
from chatmemory.ledger.contradictions import Contradicted, expect, stay_name
from chatmemory.ledger.entries import StayEntry, stay_entries
from chatmemory.ledger.reading import EndedStay
from chatmemory.models import Step

PINNING = (Step.Kind.PIN, Step.Kind.UNPIN)


def pinned_again(step: Step, window: Window, begun: Sequence[StayEntry]) -> Transition:
    """Return the transition of a step that pins or unpins, with the stays that it began.

    They must be of the same messages, at the same ranks. Raises Contradicted.
    """
    entry = next((each for each in stay_entries(window) if each.seq == step.seq), None)
    if entry is None:
        raise Contradicted(step, f"pins #{step.seq}, which was not in the window")
    transition = pin(window, entry, step.policy, step.kind == Step.Kind.PIN)
    before = list(stay_entries(eviction.entry for eviction in transition.evictions))
    expected = [(each.seq, each.rank, step.kind == Step.Kind.PIN) for each in before]
    found = [(each.seq, each.rank, each.pinned) for each in begun]
    expect(step, "what it pins or unpins", found, expected)
    numbers = {each.seq: each for each in begun}
    numbered: dict[Entry, Entry] = {
        each: numbers[each.seq] for each in stay_entries(transition.arrivals) if each.seq in numbers
    }
    return transition.with_entries(numbered)


def check_pins(window: Window, begun: Sequence[StayEntry], ended: Iterable[EndedStay]) -> None:
    """Check that a step of another kind pins and unpins nothing. Raises Contradicted."""
    if not begun:
        return
    moved = {stay.n for stay in ended if stay.reason == Reason.MOVED}
    before = stay_entries(window) if moved else iter(())
    pinned = {entry.seq for entry in before if entry.n in moved and entry.pinned}
    for entry in begun:
        name = stay_name(entry.n, entry.seq)
        expect(name, "pinned", entry.pinned, entry.seq in pinned)
