"""Adds many messages in several short transactions, so that other writers need not wait.

All messages are checked before anything is stored. Until the last transaction, the conversation's
row has the number of stored messages, and other changes raise ImportUnfinished. After an
interruption, `add_rest` adds the messages that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.exceptions import OversizedMessage, WindowTooLarge
from chatmemory.inserted import NewMessage
from chatmemory.ledger.adding import (
    add_all,
    add_copies,
    add_recorded,
    check_client_ids,
    count_all,
    counter,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.conversations import created
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import locked_import
from chatmemory.ledger.validation import (
    check_bounds,
    check_labels,
    check_policy,
    storable_additions,
)
from chatmemory.messages.codec import frame_and_size, stored_json
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.sessions import Session
from chatmemory.models import Memory, Step
from chatmemory.search import INDEXED_AT_ONCE
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import admit
from chatmemory.windows.window import Entry, Window

SLICE = 500  # messages that are stored in about half a second


def import_conversation(
    memory_id: str,
    messages: Sequence[ChatMessage | NewMessage],
    policy: Policy,
    *,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """Create a conversation and add its messages. Returns one result for each message.

    A long conversation is stored in several transactions. Until the last transaction, other changes
    raise ImportUnfinished. Raises the exceptions of `create` and `add` before anything is stored.
    In a long conversation, DuplicateClientId can be raised later.
    """
    labels = check_labels(labels or {})
    return list(import_labelled(memory_id, messages, check_policy(policy), labels, actor))


def import_labelled(
    memory_id: str,
    messages: Sequence[ChatMessage | NewMessage],
    policy: Policy | None,
    labels: dict[str, str],
    actor: str,
    session: Session | None = None,
) -> Iterable[ChangeResult]:
    """Create a conversation with labels, and add its messages. Returns one result for each message.

    With an agent's `session`, the window after each step is the window that the agent had then.
    Without a session, messages are added under the policy. The messages of a long conversation are
    added while the caller iterates over the results.
    """
    new = storable_additions(messages)
    if not is_long(new, new.characters):
        estimator = policy.estimator if policy else configuration().ESTIMATOR
        count_all((each.message for each in new), estimator)
        with created(memory_id, policy, labels, actor, Step.IMPORTED) as recorder:
            return adder(session)(recorder, new)
    check_admitted(new, policy, session)
    with created(memory_id, policy, labels, actor):
        set_stored(memory_id, 0)
    return add_rest(memory_id, new, 0, actor, session)


def check_admitted(
    new: Sequence[NewMessage], policy: Policy | None, session: Session | None
) -> None:
    check_client_ids(new)
    if session:
        check_session(new, session)
    elif policy:
        check_all(new, policy)


def add_rest(
    memory_id: str, new: Sequence[NewMessage], stored: int, actor: str, session: Session | None
) -> Iterator[ChangeResult]:
    yield from add_slices(memory_id, new, stored=stored, actor=actor, session=session)
    set_stored(memory_id, None)


def is_long(new: Sequence[NewMessage], characters: int) -> bool:
    """Return whether the messages are too many, or together too long, for one transaction.
    `characters` is the total length of their JSON.
    """
    return len(new) > SLICE or characters > INDEXED_AT_ONCE


def _slices(new: Sequence[NewMessage], stored: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each slice: the messages for one transaction. The first
    `stored` messages are left out.
    """
    sizes = {n: len(stored_json(new[n].message)) for n in range(stored, len(new))}
    for part in filter(None, database.parts_of(sizes, INDEXED_AT_ONCE)):
        first, end = part[0], part[-1] + 1
        yield from ((start, min(start + SLICE, end)) for start in range(first, end, SLICE))


def check_all(new: Iterable[NewMessage], policy: Policy) -> None:
    """Count the tokens of messages, and check that the policy accepts each of them, before the
    conversation is locked. The message objects remember their counts.

    Raises UnknownEstimator, UnsupportedMessage, OversizedMessage, WindowTooLarge.
    """
    count = counter(policy.estimator)
    window, bytes_held = Window(), 0
    sizes: dict[Entry, int] = {}
    for index, each in enumerate(new):
        arrival = Entry.of(each.message, count(each.message))
        try:
            transition = admit(window, arrival, policy)
            transition.apply_to(window)
            sizes[arrival] = frame_and_size(each.message)[1] if transition.arrivals else 0
            bytes_held += sizes[arrival]
            bytes_held -= sum(sizes.pop(eviction.entry) for eviction in transition.evictions)
            check_bounds(window.totals.count, bytes_held)
        except (OversizedMessage, WindowTooLarge) as error:
            error.index = index
            raise


def check_session(new: Sequence[NewMessage], session: Session) -> None:
    """Count the tokens of an agent's session, and check that its windows can be stored, before the
    conversation is locked. The message objects remember their counts.

    Raises UnknownEstimator, UnsupportedMessage, WindowTooLarge.
    """
    count_all((each.message for each in new), configuration().ESTIMATOR)
    sizes = [frame_and_size(each.message)[1] for each in new]
    after = {compaction.summary: window for compaction, window in session.windows()}
    count = bytes_held = 0
    for position, size in enumerate(sizes):
        count, bytes_held = count + 1, bytes_held + size
        if position in after:
            count, bytes_held = len(after[position]), sum(sizes[place] for place in after[position])
        try:
            check_bounds(count, bytes_held)
        except WindowTooLarge as error:
            error.index = position
            raise


def add_slices(
    memory_id: str,
    new: Sequence[NewMessage],
    *,
    stored: int = 0,
    actor: str = "",
    copied: bool = False,
    session: Session | None = None,
) -> Iterator[ChangeResult]:
    """Add the messages of `new` in several transactions. Yields one result for each added message.

    - `stored`: the number of messages at the beginning of `new` to skip, because they are stored
      already.
    - `copied`: whether the messages are copied from another conversation, for a branch.
    - `session`: an agent's session, whose windows are recorded (see `adder`).

    Afterwards, the caller must call `set_stored` with None, which ends the import. Raises
    ImportUnfinished if another process continues the same import.
    """
    add, note = (add_copies, Step.BRANCHED) if copied else (adder(session), Step.IMPORTED)
    for start, end in database.pausing_for_writers(_slices(new, stored)):
        with database.atomic():
            with locked_import(memory_id, start, actor=actor, note=note) as recorder:
                results = add(recorder, new[start:end])
            set_stored(memory_id, end)
        yield from results


def adder(
    session: Session | None,
) -> Callable[[Recorder, Sequence[NewMessage]], list[ChangeResult]]:
    """Return a function that adds messages through a recorder. The function returns one result for
    each message.

    Without a `session`, messages are added under the conversation's policy. With a session, the
    window after each step is the window that the agent had then.
    """
    if session is None:
        return add_all
    compactions = {each.summary: each for each in session.compactions}
    return partial(add_recorded, compactions=compactions)


def set_stored(memory_id: str, count: int | None) -> None:
    """Store the progress of an import in the conversation's row: the number of messages that are
    stored so far.

    With `count=None`, the import ends, and other writers can change the conversation again.
    """
    Memory.objects.filter(pk=memory_id).update(imported=count)
