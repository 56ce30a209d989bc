"""Look-ups of conversations and steps that raise chatmemory's own errors."""

from __future__ import annotations

from chatmemory.core.exceptions import MemoryNotFound, StepNotFound
from chatmemory.core.ids import string_id
from chatmemory.ledger.stored_window import step_zero
from chatmemory.models import Memory, Step


def find_memory(memory_id: str) -> Memory:
    """Return the row of a conversation. Raises MemoryNotFound, InvalidValue for no string."""
    row: Memory | None = Memory.objects.filter(pk=string_id(memory_id)).first()
    if row is None:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    return row


def find_step(memory: Memory, n: int) -> Step:
    """Return a step of a conversation; step 0 is before the first. Raises StepNotFound."""
    if n == 0:
        return step_zero(memory)
    step: Step | None = Step.objects.filter(memory=memory, n=n).first()
    if step is None:
        raise StepNotFound(f"{memory.pk!r} has no step {n}, only steps 0 to {memory.last_step}")
    return step
