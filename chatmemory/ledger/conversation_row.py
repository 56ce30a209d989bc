"""Checks of a conversation's own row, of what neither its steps nor their digests hold."""

from __future__ import annotations

from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.stored_policies import can_decide, load_of
from chatmemory.core.window import Totals
from chatmemory.ledger.contradictions import Contradicted, expect
from chatmemory.models import Memory, Step

ALWAYS_INSTALLED = (MessageWindow, TokenWindow)


def check_load(memory: Memory, window: Totals) -> None:
    """Compare the load. It is null after a step that was taken while the policy's kind was not
    installed.
    """
    load, policy = memory.window_load, memory.policy
    is_known = load is not None or type(policy) in ALWAYS_INSTALLED
    if policy is None or (can_decide(policy) and is_known):
        expect(memory, "window_load", load, load_of(policy, window))


def check_activity(memory: Memory) -> None:
    """Compare the time of the last activity with that of the last step, which digests cover."""
    last = Step.objects.filter(memory=memory, n=memory.last_step).values_list("at", flat=True)
    for at in last:
        expect(memory, "updated_at", memory.updated_at, at)


def check_imported(memory: Memory, said: Totals) -> None:
    """Check what an unfinished import says: until its end nothing but its adds are steps, and
    those of its messages that are ignored are none. Where a branch was to be made, copies may need
    a cleared memory (see `adding.add_copies`).
    """
    imported = memory.imported
    if imported is None:
        return
    clears = Step.objects.filter(memory=memory, kind=Step.Kind.CLEAR).count()
    steps = memory.last_step - clears
    if not steps == said.count <= imported:
        what = f"its import has stored {imported}, but {steps} steps were taken"
        raise Contradicted(memory, what)
