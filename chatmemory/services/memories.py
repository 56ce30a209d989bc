"""Every write, one transaction each. What they return says what happened to the window.

Locking: the conversation's row on PostgreSQL, the database's one writer on SQLite (BEGIN IMMEDIATE,
by the connection's `transaction_mode`). Tokens are counted before the lock is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from django.db import connection, transaction
from django.utils import timezone

from chatmemory.conf import configuration
from chatmemory.core.codec import message_to_json
from chatmemory.core.estimators import count_tokens, estimator_for, family_named, is_known
from chatmemory.core.exceptions import (
    DuplicateClientId,
    MemoryExists,
    MemoryNotFound,
    MessageNotFound,
    PolicyRequired,
    StepNotFound,
    VersionConflict,
)
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy, load_of
from chatmemory.core.store import Decide
from chatmemory.core.transitions import Transition, admit, clear, refill, visible
from chatmemory.core.window import Entry, Totals
from chatmemory.ledger.recorder import ChangeResult as ChangeResult
from chatmemory.ledger.recorder import Ledger
from chatmemory.ledger.recorder import NewMessage as NewMessage
from chatmemory.ledger.stored_window import nothing_yet, read_message, stays_at
from chatmemory.models import AuditEntry, Memory, Message, Step
from chatmemory.services import audit
from chatmemory.services.validation import (
    ID_LENGTH,
    check_client_id,
    check_id,
    check_labels,
    check_policy,
)
from chatmemory.signals import Recorded, memory_changed

CHANNEL = "chatmemory"

Sayable = ChatMessage | NewMessage


@dataclass(frozen=True)
class Remaining:
    """A message that would be in the window."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int


@dataclass(frozen=True)
class Simulation:
    """What would happen: one outcome per message, and the window that would remain, in order.

    Seqs beyond the newest message of the step it began from are those of the drafts.
    """

    changes: tuple[ChangeResult, ...]
    remaining: tuple[Remaining, ...]
    policy: Policy

    @property
    def totals(self) -> Totals:
        return Totals(len(self.remaining), sum(each.tokens for each in self.remaining))


def create(
    memory_id: str,
    policy: Policy | None,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> Memory:
    """A new, empty conversation; creating is no step. Raises MemoryExists, InvalidValue."""
    memory = _unsaved(check_id(memory_id))
    memory.policy = check_policy(policy)
    memory.window_load = load_of(memory.policy, Totals())
    memory.labels = check_labels(labels or {})
    with transaction.atomic():
        created = Memory.objects.bulk_create([memory], ignore_conflicts=True)
        stored: Memory = Memory.objects.select_for_update().get(pk=memory_id)
        if stored.created_at != created[0].created_at or stored.last_step:
            raise MemoryExists(f"a conversation with the id {memory_id!r} exists already")
        audit.log(f"create {memory_id!r}", action="create", actor=actor, memory_id=memory_id)
    return stored


def add(
    memory_id: str,
    messages: Iterable[Sayable],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> list[ChangeResult]:
    """Add messages one by one, each a step of its own; all are stored or none.

    A message whose client id is known already, with the same content, is answered with its seq and
    no step.
    Raises MemoryNotFound, PolicyRequired (the client decides this window), VersionConflict,
    DuplicateClientId, UnstorableText, UnknownEstimator.
    """
    said = [each if isinstance(each, NewMessage) else NewMessage(each) for each in messages]
    _count_ahead(memory_id, [each.message for each in said])
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        return admit_all(ledger, said)


def change_and_add(
    memory_id: str, messages: Iterable[Sayable], *, policy: Policy | None, actor: str = ""
) -> list[ChangeResult]:
    """Change the policy, if one is given, and add, in one transaction. Raises as both do."""
    with transaction.atomic():
        if policy is not None:
            change(memory_id, policy=policy, actor=actor)
        return add(memory_id, messages, actor=actor)


def set_messages(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Replace the window; the policy trims what exceeds it. Raises as `add` does."""
    _count_ahead(memory_id, messages)
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        policy = _required(ledger.memory)
        arrivals = ledger.weighed(_entries(ledger.memory, messages))
        return ledger.keep(refill(ledger.window, arrivals, policy))


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Empty the window; the history stays. Raises MemoryNotFound, VersionConflict."""
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        return ledger.keep(clear(ledger.window, ledger.memory.policy))


def change(
    memory_id: str,
    *,
    policy: Policy | None = None,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
    expected_version: int | None = None,
) -> Memory:
    """Change the policy, the labels or both; each real change is a step.

    A lower limit evicts nothing by itself: messages beyond it leave at the next add, and a higher
    limit before that brings them back (LangChain4j trims what it reads).
    """
    check_policy(policy)
    new_labels = None if labels is None else check_labels(labels)
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        if policy is not None:
            _recount(ledger, policy)
            ledger.adopt(policy)
        if new_labels is not None:
            ledger.label(new_labels)
        return ledger.memory


def label(memory_ids: Iterable[str], name: str, value: str, actor: str = "") -> None:
    """Put a label on some conversations, beside those they have; on all or, in error, on none.

    Raises MemoryNotFound, InvalidValue.
    """
    with transaction.atomic():
        for memory_id in memory_ids:
            with _locked(memory_id, actor=actor) as ledger:
                ledger.label(check_labels({**ledger.memory.labels, name: value}))


def delete(memory_id: str, *, actor: str = "", expected_version: int | None = None) -> None:
    """Erase a conversation with its whole history: explicit, separate, irreversible.

    An audit entry stays. Raises MemoryNotFound, VersionConflict.
    """
    check_id(memory_id)
    with transaction.atomic():
        memory = _lock(memory_id, expected_version)
        detail = {"steps": memory.last_step, "messages": memory.last_seq}
        _note_erasure(AuditEntry.Action.DELETE, memory_id, actor, detail)
        memory.delete()
        transaction.on_commit(forget_log, robust=True)


def redact(
    memory_id: str, seq: int, *, actor: str = "", expected_version: int | None = None
) -> Step | None:
    """Take a message's words away from history, window and search; its shape stays, as a tombstone
    with who and when.

    None where it was redacted before. Raises MemoryNotFound, MessageNotFound, VersionConflict.
    """
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        row = Message.objects.filter(memory=ledger.memory, seq=seq).first()
        if row is None:
            raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
        step = ledger.redact(row)
        if step is not None:
            _note_erasure(AuditEntry.Action.REDACT, memory_id, actor, {"seq": seq, "step": step.n})
            transaction.on_commit(forget_log, robust=True)
        return step


def transact(memory_id: str, decide: Decide, *, actor: str = "") -> Transition:
    """Lock, let `decide` look at the window, store what it decided with its policy.

    An unknown id is created. If `decide` raises, nothing is stored.
    """
    with _locked(memory_id, actor=actor, create=True) as ledger:
        transition = decide(ledger.window)
        ledger.keep(transition)
    return transition


def update_window(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """The bare store protocol: the client hands over the whole list, nothing is trimmed.

    An unknown id is created with no policy. Raises InvalidValue for a bad id, UnstorableText,
    VersionConflict.
    """
    _count_ahead(memory_id, messages)
    with _locked(memory_id, actor=actor, create=True, expected_version=expected_version) as ledger:
        _ensure_countable(ledger)
        arrivals = _entries(ledger.memory, messages)
        return ledger.replace(refill(ledger.window, arrivals, None), by_client=True)


def delete_window(memory_id: str, *, actor: str = "", expected_version: int | None = None) -> None:
    """The bare store protocol's delete: clears the window of a known id, else does nothing.

    Raises VersionConflict, and MemoryNotFound where a version is expected of an unknown id.
    """
    try:
        clear_messages(memory_id, actor=actor, expected_version=expected_version)
    except MemoryNotFound:
        if expected_version is not None:
            raise


def import_conversation(
    memory_id: str,
    messages: Sequence[Sayable],
    policy: Policy,
    *,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """Create a conversation and say everything in it, one step per message, in one transaction.

    Raises MemoryExists and whatever `create` and `add` raise; then nothing is stored.
    """
    with transaction.atomic():
        create(memory_id, policy, labels, actor)
        return add(memory_id, messages, actor=actor)


def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
) -> Simulation:
    """What adding would do, now or after step `at`, under this policy or another; nothing is saved.

    Raises MemoryNotFound, StepNotFound, PolicyRequired (neither the step nor the call has a
    policy).
    """
    memory = _get(memory_id)
    ledger = Ledger(memory, at=_step(memory, at) if at is not None else None)
    if policy is not None:
        _recount(ledger, check_policy(policy) or policy)
        ledger.adopt(policy)
    in_force = _required(ledger.memory)
    outcomes = admit_all(ledger, [NewMessage(message) for message in messages])
    remaining = tuple(
        Remaining(ledger.seq(entry), entry.type, entry.has_calls, entry.tokens)
        for entry in visible(ledger.window, in_force)
    )
    return Simulation(tuple(outcomes), remaining, in_force)


def branch(
    memory_id: str,
    new_id: str,
    messages: Iterable[ChatMessage],
    *,
    at: int | None = None,
    policy: Policy | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """A new conversation with what was said by step `at` and that window, then `messages`.

    The old one is left as it is; the new one carries its id and the step as a label. Raises what
    `simulate` and `create` raise.
    """
    source = _get(memory_id)
    step = _step(source, source.last_step if at is None else at)
    in_force = policy or step.policy or _required(source)
    said = Message.objects.filter(
        memory=source, seq__lte=step.last_seq, origin=Message.Origin.SAID
    ).order_by("seq")
    window = [read_message(stay.message) for stay in stays_at(step).select_related("message")]
    with transaction.atomic():
        import_conversation(
            new_id,
            [NewMessage(read_message(row), said_at=row.said_at) for row in said],
            step.policy or in_force,
            labels={"from": f"{memory_id} step {step.n}"[:ID_LENGTH]},
            actor=actor,
        )
        set_messages(new_id, window, actor=actor)
        return change_and_add(new_id, messages, policy=in_force, actor=actor)


def admit_all(ledger: Ledger, said: Sequence[NewMessage]) -> list[ChangeResult]:
    """Admit one message after the other under the conversation's policy.

    Retries (client ids that the conversation knows, with the same content) change nothing.
    """
    policy = _required(ledger.memory)
    known = _known(ledger.memory, said)
    outcomes = []
    for each in said:
        seq = _said_before(each, known)
        if seq is not None:
            outcomes.append(ledger.again(seq))
            continue
        (arrival,) = _entries(ledger.memory, [each.message])
        outcome = ledger.keep(admit(ledger.window, arrival, policy), each)
        outcomes.append(outcome)
        if each.client_id is not None and outcome.seq is not None:
            known[each.client_id] = outcome.seq, message_to_json(each.message)
    return outcomes


# What is noted


def _note_steps(done: Recorded) -> None:
    if done.steps:
        first, last = done.steps[0][0], done.steps[-1][0]
        audit.log(
            f"steps {first} to {last} of {done.memory_id!r}",
            action=",".join(sorted({kind for _, kind in done.steps})),
            actor=done.actor,
            memory_id=done.memory_id,
            first_step=first,
            last_step=last,
        )


def _note_erasure(action: str, memory_id: str, actor: str, detail: dict[str, int]) -> None:
    AuditEntry.objects.create(
        at=timezone.now(), actor=actor, action=action, memory_id=memory_id, detail=detail
    )
    words = f"{action} {memory_id!r}"
    audit.log(words, action=action, actor=actor, memory_id=memory_id, **detail)


def forget_log() -> None:
    """SQLite's write-ahead log holds what was overwritten, until it is written back and emptied.

    While others read it cannot be; the next time may do better, see `manage.py compact`.
    """
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# Locking


@contextmanager
def _locked(
    memory_id: str,
    *,
    actor: str,
    create: bool = False,
    expected_version: int | None = None,
) -> Iterator[Ledger]:
    """The conversation, locked until the block ends; what the block recorded is then written."""
    check_id(memory_id)
    with transaction.atomic():
        if create:
            Memory.objects.bulk_create([_unsaved(memory_id)], ignore_conflicts=True)
        ledger = Ledger(_lock(memory_id, expected_version), actor)
        yield ledger
        if ledger.flush():
            done = ledger.recorded
            _note_steps(done)
            tell = partial(memory_changed.send_robust, Memory, recorded=done)
            transaction.on_commit(tell, robust=True)
            # The change is made: that nobody could be told of it is logged, not raised.
            transaction.on_commit(lambda: _announce(memory_id), robust=True)


def _lock(memory_id: str, expected_version: int | None) -> Memory:
    """Until the transaction ends. Raises MemoryNotFound, VersionConflict."""
    memory: Memory | None = Memory.objects.select_for_update().filter(pk=memory_id).first()
    if memory is None:
        raise _not_found(memory_id)
    if expected_version is not None and memory.version != expected_version:
        raise VersionConflict(memory_id, memory.version, expected_version)
    return memory


def _announce(memory_id: str) -> None:
    """Wake the followers (see `live`). After the commit: inside it, NOTIFY would serialise
    commits.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, memory_id])


def _unsaved(memory_id: str) -> Memory:
    now = timezone.now()
    return Memory(
        id=memory_id,
        policy_estimator=configuration().ESTIMATOR,
        created_at=now,
        updated_at=now,
    )


def _get(memory_id: str) -> Memory:
    memory: Memory | None = Memory.objects.filter(pk=check_id(memory_id)).first()
    if memory is None:
        raise _not_found(memory_id)
    return memory


def _not_found(memory_id: str) -> MemoryNotFound:
    return MemoryNotFound(f"no conversation has the id {memory_id!r}")


def _step(memory: Memory, n: int) -> Step:
    """A step of a conversation; 0 is before the first. Raises StepNotFound."""
    if n == 0:
        return nothing_yet(memory)
    step: Step | None = Step.objects.filter(memory=memory, n=n).first()
    if step is None:
        raise StepNotFound(f"{memory.pk!r} has steps 0 to {memory.last_step}, and no step {n}")
    return step


def _required(memory: Memory) -> Policy:
    policy = memory.policy
    if policy is None:
        raise PolicyRequired(
            f"the client decides the window of {memory.pk!r}: set a policy before adding to it"
        )
    return policy


# Counting


def _counter(estimator_name: str) -> Callable[[ChatMessage], int]:
    estimator = estimator_for(estimator_name)
    return lambda message: count_tokens(estimator, message)


def _entries(memory: Memory, messages: Iterable[ChatMessage]) -> list[Entry]:
    """Entries counted by the conversation's estimator; counts made ahead of the lock are reused."""
    count = _counter(memory.policy_estimator)
    return [Entry.of(message, count(message)) for message in messages]


def _count_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> None:
    """Tokenise outside the lock. Should the policy change in between, `_entries` counts again."""
    names = Memory.objects.filter(pk=check_id(memory_id)).values_list("policy_estimator", flat=True)
    name = names.first()
    count = _counter(name if name and is_known(name) else configuration().ESTIMATOR)
    for message in messages:
        count(message)


def _ensure_countable(ledger: Ledger) -> None:
    """A list from the client is kept even where a custom estimator, and so the policy, is unknown.

    The client decides from then on; a memory with that estimator puts its policy back in force.
    """
    name, ours = ledger.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        ledger.window.count_with(family_named(ours), _counter(ours))
        ledger.adopt(None, estimator=ours, note=f"{name} cannot count here")


def _recount(ledger: Ledger, policy: Policy) -> None:
    ledger.window.count_with(family_named(policy.estimator), _counter(policy.estimator))


def _known(memory: Memory, said: Iterable[NewMessage]) -> dict[str, tuple[int, str]]:
    """Seq and payload of the messages whose client ids are sent now."""
    client_ids = [each.client_id for each in said if each.client_id is not None]
    for client_id in client_ids:
        check_client_id(client_id)
    if not client_ids:
        return {}
    rows = Message.objects.filter(memory=memory, client_id__in=client_ids)
    return {row.client_id: (row.seq, row.payload) for row in rows if row.client_id is not None}


def _said_before(said: NewMessage, known: Mapping[str, tuple[int, str]]) -> int | None:
    """The seq of a retried message. Raises DuplicateClientId if the content is another."""
    if said.client_id is None or said.client_id not in known:
        return None
    seq, payload = known[said.client_id]
    if payload != message_to_json(said.message):
        raise DuplicateClientId(f"client id {said.client_id!r} names another message already")
    return seq
