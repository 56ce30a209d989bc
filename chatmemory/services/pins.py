"""Services that pin messages, so that the policy lets them stay, and unpin them."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.core.compaction import is_summary
from chatmemory.core.eviction import group_of
from chatmemory.core.exceptions import MessageNotFound, NotPinnable, PolicyRequired
from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import hidden_by_limit
from chatmemory.core.window import total
from chatmemory.ledger.adding import required_policy
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.windows import StayEntry, read_message, stay_entries
from chatmemory.models import Memory, Message
from chatmemory.services.transaction import locked
from chatmemory.services.validation import check_whole_number


def pin(
    memory_id: str, seq: int, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """Pin a message that is in memory, with what belongs to it: a tool call and its results.

    It then leaves only if memory is cleared, or set to a list without it. Return None if it is
    pinned already. Raises InvalidValue, MemoryNotFound, MessageNotFound, NotPinnable,
    PolicyRequired (the client decides this window), VersionConflict.
    """
    check_whole_number(seq, "seq")
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _change(recorder, seq, pinned=True)


def unpin(
    memory_id: str, seq: int, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """Let a pinned message leave again when there is no room. Return None if it is not pinned.

    Raises InvalidValue, MemoryNotFound, MessageNotFound, NotPinnable (it is not in memory, or a
    summary, which stays until another one covers it), VersionConflict.
    """
    check_whole_number(seq, "seq")
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _change(recorder, seq, pinned=False)


def _change(recorder: Recorder, seq: int, pinned: bool) -> ChangeResult | None:
    memory = recorder.memory
    if pinned:
        _check_limited(memory)
    entries = list(stay_entries(recorder.window))
    position = next((i for i, entry in enumerate(entries) if entry.seq == seq), None)
    if position is None:
        if not Message.objects.filter(memory=memory, seq=seq).exists():
            raise MessageNotFound(f"{memory.pk!r} has no message #{seq}")
        raise NotPinnable(f"#{seq} is not in memory: only a message that the model sees can stay")
    group = group_of(entries, position)
    if all(entry.pinned is pinned for entry in group):
        return None
    if pinned:
        _check_pinnable(recorder, group, entries)
    else:
        _check_no_summary(memory, seq)
    return recorder.pin(entries[position], pinned)


def _check_no_summary(memory: Memory, seq: int) -> None:
    """Raise NotPinnable for a summary: without its pin the next add could lose it."""
    row = Message.objects.get(memory=memory, seq=seq)
    if row.origin == Message.Origin.SYNTHETIC and is_summary(read_message(row)):
        raise NotPinnable(
            f"#{seq} is a summary: it stays until another summary covers it. Compact it, too"
        )


def _check_limited(memory: Memory) -> None:
    """Raise PolicyRequired for a window from which no policy evicts for want of room."""
    policy = required_policy(memory.pk, memory.policy, "set a policy before pinning")
    if policy.meters_only:
        raise PolicyRequired(
            f"the policy of {memory.pk!r} only measures its window and evicts nothing: set one "
            "that trims it before pinning"
        )


def _check_pinnable(
    recorder: Recorder, group: Sequence[StayEntry], window: Sequence[StayEntry]
) -> None:
    """Raise NotPinnable for a message whose pin would do nothing, or harm."""
    first = group[0]
    hidden = {each.entry for each in hidden_by_limit(window, total(window), recorder.policy)}
    if not hidden.isdisjoint(group):
        raise NotPinnable(
            f"#{first.seq} is hidden by a lowered limit: only what the model sees can stay"
        )
    if first.type is MessageType.SYSTEM:
        raise NotPinnable(
            f"#{first.seq} is a system message: it stays until another takes its place"
        )
    if first.seq == recorder.memory.waiting_call:
        raise NotPinnable(f"#{first.seq} is a tool call that awaits results: add them first")
