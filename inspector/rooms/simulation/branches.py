"""Branches: new conversations that start as copies of another conversation at a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory import database
from chatmemory.columns import values_of
from chatmemory.exceptions import ChatMemoryError, ImportUnfinished, MemoryExists
from chatmemory.inserted import NewMessage
from chatmemory.ledger.adding import (
    add_all,
    change_policy,
    count_all,
    counted_entries,
    required_policy,
)
from chatmemory.ledger.branches import source_of
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.conversations import create
from chatmemory.ledger.erasure import delete
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.messages import new_messages
from chatmemory.ledger.overrides import overridden
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.slices import SLICE, add_slices, is_long
from chatmemory.ledger.transaction import locked_import
from chatmemory.ledger.validation import check_policy, storable_additions
from chatmemory.ledger.windows import shown_message, stays_at
from chatmemory.messages.codec import stored_json
from chatmemory.messages.estimators import family_named, remember_tokens
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.recall.index import index_of
from chatmemory.windows.policies import Oversized, Policy, TokenWindow
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import refill
from chatmemory.windows.window import Entry


@dataclass(frozen=True)
class _Copied:
    """What a branch copies: the history at a step, the stays of the window, and the messages of
    these stays.
    """

    history: Sequence[NewMessage]
    window: Sequence[Stay]
    messages: Sequence[ChatMessage]

    @classmethod
    def at(cls, step: Step, policy: Policy) -> _Copied:
        """Read the history and the window at a step. `policy` decides how redacted texts were
        counted.

        A message that is in history and in the window is the same object in both.
        """
        window = list(stays_at(step).select_related("message"))
        history = _history(step, window, policy)
        numbers = {seq: n for n, seq in enumerate(history, 1)}
        messages = [
            history[stay.seq].message
            if stay.seq in history and stay.overrides is None
            else _renumbered(_copy(stay.message, stay.tokens, policy, stay.overrides), numbers)
            for stay in window
        ]
        return cls(list(history.values()), window, messages)

    def count(self, first: Policy, in_force: Policy) -> None:
        """Count the tokens of history and window under `first`, the policy at the step. Count the
        window also under `in_force`, the branch's later policy.
        """
        count_all((each.message for each in self.history), first.estimator)
        count_all(self.messages, first.estimator)
        count_all(self.messages, in_force.estimator)


def branch(
    memory_id: str,
    new_id: str,
    messages: Iterable[ChatMessage],
    *,
    at: int | None = None,
    policy: Policy | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """Create a conversation as a copy of another conversation (the source), and add `messages`.
    Return one result for each added message.

    The copy has the history and the window that the source had at step `at`, by default the newest
    step. Without `policy`, the copy gets the source's policy at this step.

    The source is not changed. In the new conversation, the column `branched_from` has the source's
    ID, and the label `from` has the step, such as "step 7".

    A long history is added in several transactions. Until the last transaction, other changes of
    the new conversation raise ImportUnfinished. After an interruption, repeat the same call to
    continue. Raises the exceptions of `simulation.simulate` and `create`.
    """
    new = storable_additions(messages)
    source = find_memory(memory_id)
    step = find_step(source, source.last_step if at is None else at)
    advice = "give the new conversation a policy"
    in_force = check_policy(
        policy or step.policy or required_policy(source.pk, source.policy, advice)
    )
    first = _admitting(check_policy(step.policy or in_force))
    copied = _Copied.at(step, first)
    copied.count(first, in_force)
    new = new_messages(new_id, messages, in_force)
    label = {"from": f"step {step.n}"}
    with database.atomic():
        stored = _begin(source.pk, new_id, first, label, actor)
        characters = sum(len(stored_json(each.message)) for each in copied.history)
        if not is_long(copied.history, characters) and len(copied.window) <= SLICE:
            _copy_history(new_id, copied, 0, actor)
            return _end_branch(new_id, copied, new, in_force, actor)
    try:
        _copy_history(new_id, copied, stored, actor)
        return _end_branch(new_id, copied, new, in_force, actor)
    except ImportUnfinished:  # another process continues it
        raise
    except ChatMemoryError:
        delete(new_id, actor=actor)
        raise


def _history(step: Step, window: Iterable[Stay], policy: Policy) -> dict[int, NewMessage]:
    """Return the history at a step by seq, for counting under a policy."""
    messages = Message.objects.filter(memory=step.memory_id, origin=Message.Origin.SAID)
    rows = messages.filter(seq__lte=step.last_seq).order_by("seq")
    tokens = {stay.seq: stay.tokens for stay in window}
    return {
        row.seq: NewMessage(
            _copy(row, tokens.get(row.seq, row.tokens), policy),
            said_at=row.said_at,
            columns=values_of(Message, row),
        )
        for row in rows
    }


def _copy(row: Message, tokens: int, policy: Policy, overrides: str | None = None) -> ChatMessage:
    """Return a copy of a message. For a redacted message, the copy keeps the token count of the
    original text.
    """
    message = shown_message(row, overrides)
    if is_redacted(message):
        remember_tokens(message, family_named(policy.estimator), tokens)
    return message


def _renumbered(message: ChatMessage, numbers: Mapping[int, int]) -> ChatMessage:
    """Return an index with its messages' numbers in the branch. Return any other message
    unchanged.
    """
    index = index_of(message)
    return message if index is None or not index.rows else index.renumbered(numbers).message()


def _copy_history(new_id: str, copied: _Copied, stored: int, actor: str) -> None:
    for _ in add_slices(new_id, copied.history, stored=stored, actor=actor, copied=True):
        pass


def _begin(source_id: str, new_id: str, policy: Policy, labels: dict[str, str], actor: str) -> int:
    """Create a branch. If an interrupted call has created it, return how many messages of the
    history are stored; else 0.

    Raises MemoryExists for another conversation with this ID.
    """
    try:
        create(new_id, policy, labels, actor)
    except MemoryExists:
        begun = Memory.objects.filter(pk=new_id, branched_from=source_id).first()
        if begun is None or begun.imported is None or source_of(begun) is None:
            raise
        if (begun.labels, begun.policy) != (labels, policy):
            raise
        return int(begun.imported)
    Memory.objects.filter(pk=new_id).update(branched_from=source_id, imported=0)
    return 0


def _admitting(policy: Policy) -> Policy:
    """Return a policy that accepts each message of the history, and has no index. An index would
    take the numbers of messages.
    """
    if isinstance(policy, TokenWindow) and policy.indexed_terms:
        policy = replace(policy, index_terms=0)
    return replace(policy, oversized=Oversized.EVICT) if policy.rejects_oversized else policy


def _end_branch(
    new_id: str, copied: _Copied, new: Sequence[NewMessage], policy: Policy, actor: str
) -> list[ChangeResult]:
    """Finish a branch whose history is complete: give it the window of its source, and add the new
    messages. Other changes are then allowed.

    Raises ImportUnfinished if another process finished the branch meanwhile.
    """
    stored = len(copied.history)
    with locked_import(new_id, stored, actor=actor, note=Step.BRANCHED) as recorder:
        own = recorder.window
        # Rows that are not written yet could not be read later. In a branch, seqs have no gaps
        own.refill(
            replace(
                entry, message=overridden(copied.history[entry.seq - 1].message, entry.overrides)
            )
            for entry in own
        )
        arrivals = counted_entries(recorder.memory, copied.messages)
        _make_room(recorder, arrivals)
        recorder.record(refill(own, arrivals, recorder.policy))
        _pin(recorder, copied.window)
        change_policy(recorder, policy)
        recorder.memory.imported = None
        results = add_all(recorder, new)
    # If nothing has changed, nothing has been written either.
    Memory.objects.filter(pk=new_id, imported=stored).update(imported=None)
    return results


def _make_room(recorder: Recorder, window: Sequence[Entry]) -> None:
    """Raise the limit until the copied window fits. It can exceed the limit: a lowered limit evicts
    only at the next add, and an index can have more tokens in the branch.
    """
    policy = recorder.policy
    if not can_decide(policy):
        return
    needed = policy.load(policy.total(window))
    if needed > policy.limit:
        change_policy(recorder, replace(policy, limit=needed))


def _pin(recorder: Recorder, window: Sequence[Stay]) -> None:
    """Pin the messages that are pinned in the source."""
    for position in [position for position, stay in enumerate(window) if stay.pinned]:
        entry = list(recorder.window)[position]
        if not entry.pinned:
            recorder.pin(entry, pinned=True)
