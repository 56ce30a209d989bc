"""Adding messages to a conversation one by one, both for real and in a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from chatmemory.core.codec import message_to_json
from chatmemory.core.exceptions import (
    DuplicateClientId,
    NoRoomBesidePins,
    OversizedMessage,
    PolicyRequired,
    WindowTooLarge,
)
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import admit, clear
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import counted_entries
from chatmemory.ledger.recorder import Recorder
from chatmemory.models import Memory, Message


class _Known(NamedTuple):
    """A stored message with a client id; `payload` is None where it was redacted."""

    seq: int
    type: str
    payload: str | None


def add_all(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Add messages under the conversation's policy; return one result per message.

    A message with a known client id and the same content changes nothing; of a message that was
    redacted only the type can be compared. Raises PolicyRequired, PolicyUnavailable,
    EstimatorUnavailable, DuplicateClientId, and OversizedMessage, NoRoomBesidePins and
    WindowTooLarge with the index of the message.
    """
    policy = required_policy(recorder.memory.pk, recorder.policy)
    known = _known(recorder.memory, messages)
    results = []
    arrivals = counted_entries(recorder.memory, [new.message for new in messages])
    for index, (new, arrival) in enumerate(zip(messages, arrivals, strict=True)):
        seq = _duplicate(new, known)
        if seq is not None:
            results.append(recorder.duplicate(seq))
            continue
        try:
            transition = admit(recorder.window, arrival, policy)
            result = recorder.record(transition, new)
        except (OversizedMessage, NoRoomBesidePins, WindowTooLarge) as error:
            error.index = index
            raise
        results.append(result)
        if new.client_id is not None and result.seq is not None:
            payload = message_to_json(new.message)
            known[new.client_id] = _Known(result.seq, new.message.type, payload)
    return results


def add_copies(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Add messages of another conversation's history, so that this one has each of them.

    One that equals the system message in force would be ignored. Over there memory was cleared or
    set before, and here it is cleared.
    """
    results = []
    for message in messages:
        (result,) = add_all(recorder, [message])
        if result.step is None:
            recorder.record(clear(recorder.window, recorder.policy))
            (result,) = add_all(recorder, [message])
        results.append(result)
    return results


def required_policy(
    memory_id: str, policy: Policy | None, advice: str = "set a policy before adding to it"
) -> Policy:
    """Return a conversation's policy. Raises PolicyRequired if the client decides the window."""
    if policy is None:
        raise PolicyRequired(f"the client decides the window of {memory_id!r}: {advice}")
    return policy


def _known(memory: Memory, messages: Iterable[NewMessage]) -> dict[str, _Known]:
    """Return the stored messages with the client ids of `messages`."""
    client_ids = [new.client_id for new in messages if new.client_id is not None]
    if not client_ids:
        return {}
    rows = Message.objects.filter(memory=memory, client_id__in=client_ids)
    return {
        row.client_id: _Known(row.seq, row.type, row.payload if row.redacted_step is None else None)
        for row in rows
        if row.client_id is not None
    }


def _duplicate(message: NewMessage, known: Mapping[str, _Known]) -> int | None:
    """Return the seq of a message that is already stored, or None.

    Raises DuplicateClientId if the client id names a message with other content.
    """
    if message.client_id is None or message.client_id not in known:
        return None
    stored = known[message.client_id]
    if stored.type != message.message.type or (
        stored.payload is not None and stored.payload != message_to_json(message.message)
    ):
        raise DuplicateClientId(f"client id {message.client_id!r} already names another message")
    return stored.seq
