"""Services that add, replace and clear the messages of a window, and pin or unpin messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory import database
from chatmemory.exceptions import MessageNotFound, NotPinnable, PolicyRequired
from chatmemory.inserted import NewMessage
from chatmemory.ledger.adding import (
    Recount,
    add_all,
    change_policy,
    count_ahead,
    count_all,
    counted_ahead,
    counted_entries,
    is_counted_quickly,
    required_policy,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import Planned, locked, planned
from chatmemory.ledger.validation import (
    Storable,
    check_id,
    check_policy,
    check_whole_number,
    storable_additions,
    storable_messages,
)
from chatmemory.ledger.windows import read_message, shown_message
from chatmemory.lint.linter import waiting_call
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.models import Memory, Message
from chatmemory.recall.index import is_index
from chatmemory.windows.compaction import is_summary
from chatmemory.windows.eviction import Reason, group_of
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import clear, hidden_from_reads, refill
from chatmemory.windows.window import Entry


def add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> list[ChangeResult]:
    """Add messages to a conversation in one transaction, each as a step. Returns one result for
    each message.

    A message is not added again if its client id is already stored with the same content. Its
    result has the seq of the stored message, and no step.

    Raises MemoryNotFound, PolicyRequired (the client decides this window), PolicyUnavailable,
    EstimatorUnavailable, VersionConflict, DuplicateClientId, InvalidValue, MessageTooLarge,
    UnstorableText.
    """
    new = new_messages(memory_id, messages)
    with locked(memory_id, actor=actor, expected_version=expected_version, counts=True) as recorder:
        return add_all(recorder, new)


def new_messages(
    memory_id: str, messages: Iterable[ChatMessage | NewMessage], policy: Policy | None = None
) -> Storable[NewMessage]:
    """Check messages, and return each as a `NewMessage` for `add_all`. Their tokens are counted
    now, unless counting is so fast that `add_all` can count them under the lock.

    `policy` is the new policy, if the policy changes before the add; else None. Raises
    InvalidValue, MessageTooLarge, UnstorableText, UnknownEstimator.
    """
    new = storable_additions(messages)
    sent = [item.message for item in new]
    check_id(memory_id)
    if policy is not None:
        count_all(sent, policy.estimator)
    elif not is_counted_quickly(sent):
        count_ahead(memory_id, sent)
    return new


def change_and_add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    policy: Policy | None,
    actor: str = "",
) -> list[ChangeResult]:
    """Change the policy and add messages, in one transaction. With `policy=None`, the policy stays
    the same.

    Raises the exceptions of `add`.
    """
    policy = check_policy(policy)
    new = new_messages(memory_id, messages, policy)
    recount = None if policy is None else Recount.ahead(memory_id, policy.estimator)
    with locked(memory_id, actor=actor, counts=policy is None) as recorder:
        if policy is not None:
            change_policy(recorder, policy, recount)
        return add_all(recorder, new)


def set_messages(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Replace the messages of the window by a list. Then the policy trims the window. Raises the
    exceptions of `add`.
    """
    return plan_list(memory_id, messages, actor=actor, expected_version=expected_version).write()


def plan_list(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> Planned[ChangeResult]:
    """Prepare the replacement of the window without locking the conversation. The method `write` of
    the result stores the replacement.

    Takes the arguments of `set_messages`, and raises its exceptions.
    """
    check_id(memory_id)
    messages = storable_messages(messages)
    estimator, count = counted_ahead(memory_id, messages)

    def change(recorder: Recorder) -> ChangeResult:
        advice = "set a policy before replacing its messages"
        policy = required_policy(memory_id, recorder.policy, advice)
        arrivals = counted_entries(recorder.memory, messages)
        return recorder.record(refill(recorder.window, arrivals, policy))

    many = 0 if estimator is None else count + len(messages)
    return planned(memory_id, change, actor=actor, messages=many, expected_version=expected_version)


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Remove all messages from the window. The history keeps them. Raises MemoryNotFound,
    VersionConflict.
    """
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return recorder.record(clear(recorder.window, recorder.policy))


# Pins


def pin(
    memory_id: str, seq: int, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """Pin a message that is in memory. A tool call and its results are pinned together. Returns
    None if the message is already pinned.

    A pinned message leaves only if memory is cleared, or set to a list without the message. Raises
    InvalidValue, MemoryNotFound, MessageNotFound, NotPinnable, PolicyRequired (the client decides
    this window), VersionConflict.
    """
    check_whole_number(seq, "seq")
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _set_pinned(recorder, seq, pinned=True)


def unpin(
    memory_id: str, seq: int, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult | None:
    """Unpin a message, so that it can be evicted again. Returns None if the message is not pinned.

    Raises NotPinnable for a message that is not in memory, for a summary and for an index. Raises
    InvalidValue, MemoryNotFound, MessageNotFound, VersionConflict.
    """
    check_whole_number(seq, "seq")
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return _set_pinned(recorder, seq, pinned=False)


def _set_pinned(recorder: Recorder, seq: int, pinned: bool) -> ChangeResult | None:
    memory = recorder.memory
    if pinned:
        _check_limited(memory)
    policy, window = recorder.policy, recorder.window
    entries = window.with_tool_messages() if policy and policy.recovers else list(window)
    position = next((i for i, entry in enumerate(entries) if entry.seq == seq), None)
    if position is None:
        if not Message.objects.filter(memory=memory, seq=seq).exists():
            raise MessageNotFound(f"the conversation {memory.pk!r} has no message #{seq}")
        raise NotPinnable(
            f"message #{seq} is not in memory, and only a message that the model sees can be pinned"
        )
    group = group_of(entries, position)
    if all(entry.pinned is pinned for entry in group):
        return None
    if pinned:
        _check_pinnable(recorder, group, entries)
    else:
        _check_no_summary(memory, entries[position])
    return recorder.pin(entries[position], pinned)


def _check_no_summary(memory: Memory, entry: Entry) -> None:
    """Raise NotPinnable for a summary. Without its pin, the next add could evict the summary."""
    row = Message.objects.get(memory=memory, seq=entry.seq)
    shown = shown_message(row, entry.overrides)
    if row.origin == Message.Origin.SYNTHETIC and is_index(shown):
        raise NotPinnable(
            f"message #{entry.seq} is an index, which cannot be unpinned: it stays until a new "
            "index replaces it"
        )
    if row.origin == Message.Origin.SYNTHETIC and is_summary(shown):
        raise NotPinnable(
            f"message #{entry.seq} is a summary, which cannot be unpinned: it stays until a new "
            "summary replaces it. Compact the summary instead"
        )


def _check_limited(memory: Memory) -> None:
    """Raise PolicyRequired if no policy evicts messages from this window."""
    policy = required_policy(memory.pk, memory.policy, "set a policy before pinning")
    if policy.meters_only:
        raise PolicyRequired(
            f"the policy of {memory.pk!r} only measures memory and evicts nothing: "
            "set a policy with a limit before pinning"
        )


def _check_pinnable(recorder: Recorder, group: Sequence[Entry], window: Sequence[Entry]) -> None:
    """Raise NotPinnable for a message that cannot be pinned, such as a tool call that awaits
    results.
    """
    first = group[0]
    hidden = {each.entry: each.reason for each in hidden_from_reads(window, recorder.policy)}
    if reasons := {hidden[entry] for entry in group if entry in hidden}:
        by = "a lowered limit"
        if Reason.INTERRUPTED in reasons:
            by = "the policy, as its tool call was not answered completely"
        raise NotPinnable(
            f"message #{first.seq} is hidden by {by}, and only a message that the model sees can "
            "be pinned"
        )
    if first.type is MessageType.SYSTEM:
        raise NotPinnable(
            f"message #{first.seq} is a system message, which needs no pin: it stays until a new "
            "system message replaces it"
        )
    if first.has_calls and _is_waiting(recorder.memory, window[window.index(first) :]):
        raise NotPinnable(
            f"message #{first.seq} is a tool call that waits for its results: add the results first"
        )


def _is_waiting(memory: Memory, end: Sequence[Entry]) -> bool:
    """Return whether `end`, the end of a window, begins with a tool call that awaits results."""
    silent = (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)
    if any(entry.type not in silent for entry in end[1:]):
        return False
    rows = Message.objects.filter(
        database.in_list("seq", (each.seq for each in end)), memory=memory
    )
    messages = {row.seq: read_message(row) for row in rows}
    return waiting_call([messages[each.seq] for each in end]) is not None
