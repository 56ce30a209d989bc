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
from chatmemory.core.exceptions import (
    DuplicateClientId,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    PolicyRequired,
    UnstorableText,
    VersionConflict,
)
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.store import Decide
from chatmemory.core.tokens import count_tokens, estimator_for, family_named, is_known
from chatmemory.core.windows import (
    Entry,
    Totals,
    Transition,
    admit,
    clear,
    refill,
    total,
    visible,
)
from chatmemory.ledger import Ledger
from chatmemory.ledger import Outcome as Outcome
from chatmemory.ledger import Said as Said
from chatmemory.models import Memory, Message

ID_LENGTH = 255
CHANNEL = "chatmemory"
LIMIT_MAX = 2**63 - 1
LABELS_MAX = 64

Sayable = ChatMessage | Said


@dataclass(frozen=True)
class Simulation:
    """What would happen: one outcome per message, and the window that would remain.

    `seqs` are its messages in order; those beyond the conversation's newest are the drafts.
    """

    outcomes: tuple[Outcome, ...]
    totals: Totals
    seqs: tuple[int, ...]
    policy: Policy


def create(
    memory_id: str,
    policy: Policy | None,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> Memory:
    """A new, empty conversation; creating is no step. Raises MemoryExists, InvalidValue."""
    memory = _unsaved(check_id(memory_id))
    memory.policy = check_policy(policy)
    memory.labels = check_labels(labels or {})
    with transaction.atomic():
        created = Memory.objects.bulk_create([memory], ignore_conflicts=True)
        stored: Memory = Memory.objects.select_for_update().get(pk=memory_id)
        if stored.created_at != created[0].created_at or stored.steps:
            raise MemoryExists(f"a conversation with the id {memory_id!r} exists already")
    return stored


def add(
    memory_id: str,
    messages: Iterable[Sayable],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> list[Outcome]:
    """Add messages one by one, each a step of its own; all are stored or none.

    A message whose client id is known already, with the same content, is answered with its seq and
    no step.
    Raises MemoryNotFound, PolicyRequired (the client decides this window), VersionConflict,
    DuplicateClientId, UnstorableText, UnknownEstimator.
    """
    said = [each if isinstance(each, Said) else Said(each) for each in messages]
    _count_ahead(memory_id, [each.message for each in said])
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        return admit_all(ledger, said)


def change_and_add(
    memory_id: str, messages: Iterable[Sayable], *, policy: Policy | None, actor: str = ""
) -> list[Outcome]:
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
) -> Outcome:
    """Replace the window; the policy trims what exceeds it. Raises as `add` does."""
    _count_ahead(memory_id, messages)
    with _locked(memory_id, actor=actor, expected_version=expected_version) as ledger:
        policy = _required(ledger.memory)
        return ledger.keep(refill(ledger.window, _entries(ledger.memory, messages), policy))


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> Outcome:
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


def delete(memory_id: str) -> None:
    """Erase a conversation with its whole history: explicit, separate, irreversible."""
    check_id(memory_id)
    with transaction.atomic():
        Memory.objects.select_for_update().filter(pk=memory_id).first()
        deleted, _ = Memory.objects.filter(pk=memory_id).delete()
    if not deleted:
        raise _not_found(memory_id)


def transact(memory_id: str, decide: Decide, *, actor: str = "") -> Transition:
    """Lock, let `decide` look at the window, store what it decided with its policy.

    An unknown id is created. If `decide` raises, nothing is stored.
    """
    with _locked(memory_id, actor=actor, create=True) as ledger:
        transition = decide(ledger.window)
        ledger.keep(transition)
    return transition


def update_window(memory_id: str, messages: Sequence[ChatMessage], *, actor: str = "") -> Outcome:
    """The bare store protocol: the client hands over the whole list, nothing is trimmed.

    An unknown id is created with no policy. Raises InvalidValue for a bad id, UnstorableText.
    """
    _count_ahead(memory_id, messages)
    with _locked(memory_id, actor=actor, create=True) as ledger:
        _ensure_countable(ledger)
        arrivals = _entries(ledger.memory, messages)
        return ledger.replace(refill(ledger.window, arrivals, None), by_client=True)


def delete_window(memory_id: str, *, actor: str = "") -> None:
    """The bare store protocol's delete: clears the window of a known id, else does nothing."""
    try:
        clear_messages(memory_id, actor=actor)
    except MemoryNotFound:
        return


def import_conversation(
    memory_id: str,
    messages: Sequence[Sayable],
    policy: Policy,
    *,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> list[Outcome]:
    """Create a conversation and say everything in it, one step per message, in one transaction.

    Raises MemoryExists and whatever `create` and `add` raise; then nothing is stored.
    """
    with transaction.atomic():
        create(memory_id, policy, labels, actor)
        return add(memory_id, messages, actor=actor)


def simulate(
    memory_id: str, messages: Iterable[ChatMessage], policy: Policy | None = None
) -> Simulation:
    """What adding would do, under this policy or another; nothing is saved.

    Raises MemoryNotFound, PolicyRequired (neither the conversation nor the call has a policy).
    """
    ledger = Ledger(_get(memory_id))
    if policy is not None:
        _recount(ledger, check_policy(policy) or policy)
        ledger.adopt(policy)
    in_force = _required(ledger.memory)
    outcomes = admit_all(ledger, [Said(message) for message in messages])
    remaining = visible(ledger.window, in_force)
    seqs = tuple(ledger.seq(entry) for entry in remaining)
    return Simulation(tuple(outcomes), total(remaining), seqs, in_force)


def admit_all(ledger: Ledger, said: Sequence[Said]) -> list[Outcome]:
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


# Checks


def check_id(memory_id: object) -> str:
    """Any non-empty string up to 255 characters that a database can hold. Raises InvalidValue."""
    if not isinstance(memory_id, str) or not 0 < len(memory_id) <= ID_LENGTH:
        raise InvalidValue(f"a memory id is a string of 1 to {ID_LENGTH} characters")
    check_text(memory_id, "a memory id")
    return memory_id


def check_text(text: str, what: str) -> None:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise UnstorableText(f"{what} cannot hold NUL or lone surrogates")


def check_policy(policy: Policy | None) -> Policy | None:
    if policy is not None:
        if policy.limit > LIMIT_MAX:
            raise InvalidValue(f"{policy.limit_name} must be at most {LIMIT_MAX}")
        estimator_for(policy.estimator)
    return policy


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(labels, Mapping) or len(labels) > LABELS_MAX:
        raise InvalidValue(f"labels are an object of up to {LABELS_MAX} names and strings")
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue(f"label {name!r} must be a string, but is: {value!r}")
        if not 0 < len(name) <= ID_LENGTH or len(value) > ID_LENGTH:
            raise InvalidValue(f"label {name!r} is empty or longer than {ID_LENGTH} characters")
        check_text(name + value, "a label")
    return dict(labels)


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
        memory = Memory.objects.select_for_update().filter(pk=memory_id).first()
        if memory is None:
            raise _not_found(memory_id)
        if expected_version is not None and memory.version != expected_version:
            raise VersionConflict(
                f"{memory_id!r} is at version {memory.version}, not {expected_version}: "
                "read it again and repeat the change"
            )
        ledger = Ledger(memory, actor)
        yield ledger
        if ledger.flush():
            # The change is made: that nobody could be told of it is logged, not raised.
            transaction.on_commit(partial(_announce, memory_id), robust=True)


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


def _known(memory: Memory, said: Iterable[Said]) -> dict[str, tuple[int, str]]:
    """Seq and payload of the messages whose client ids are sent now."""
    client_ids = [each.client_id for each in said if each.client_id is not None]
    if not client_ids:
        return {}
    rows = Message.objects.filter(memory=memory, client_id__in=client_ids)
    return {row.client_id: (row.seq, row.payload) for row in rows if row.client_id is not None}


def _said_before(said: Said, known: Mapping[str, tuple[int, str]]) -> int | None:
    """The seq of a retried message. Raises DuplicateClientId if the content is another."""
    if said.client_id is None or said.client_id not in known:
        return None
    seq, payload = known[said.client_id]
    if payload != message_to_json(said.message):
        raise DuplicateClientId(f"client id {said.client_id!r} names another message already")
    return seq
