"""Adding messages to a conversation one by one, for real or for trying."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chatmemory.core.codec import message_to_json
from chatmemory.core.exceptions import DuplicateClientId, PolicyRequired
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import admit
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import counted_entries
from chatmemory.ledger.recorder import Recorder
from chatmemory.models import Memory, Message

Known = Mapping[str, tuple[int, str]]


def add_all(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Admit one message after the other under the conversation's policy; one result each.

    A message whose client id the conversation knows, with the same content, changes nothing.
    Raises PolicyRequired, PolicyUnavailable, DuplicateClientId.
    """
    policy = required_policy(recorder.memory)
    known = dict(_known(recorder.memory, messages))
    results = []
    for each in messages:
        seq = _duplicate(each, known)
        if seq is not None:
            results.append(recorder.duplicate(seq))
            continue
        (arrival,) = counted_entries(recorder.memory, [each.message])
        result = recorder.record(admit(recorder.window, arrival, policy), each)
        results.append(result)
        if each.client_id is not None and result.seq is not None:
            known[each.client_id] = result.seq, message_to_json(each.message)
    return results


def required_policy(memory: Memory) -> Policy:
    """The conversation's policy. Raises PolicyRequired where the client decides the window."""
    policy = memory.policy
    if policy is None:
        raise PolicyRequired(
            f"the client decides the window of {memory.pk!r}: set a policy before adding to it"
        )
    return policy


def _known(memory: Memory, messages: Iterable[NewMessage]) -> Known:
    """Seq and payload of the messages whose client ids are sent now."""
    client_ids = [each.client_id for each in messages if each.client_id is not None]
    if not client_ids:
        return {}
    rows = Message.objects.filter(memory=memory, client_id__in=client_ids)
    return {row.client_id: (row.seq, row.payload) for row in rows if row.client_id is not None}


def _duplicate(message: NewMessage, known: Known) -> int | None:
    """The seq of a message that is there already. Raises DuplicateClientId if it says otherwise."""
    if message.client_id is None or message.client_id not in known:
        return None
    seq, payload = known[message.client_id]
    if payload != message_to_json(message.message):
        raise DuplicateClientId(f"client id {message.client_id!r} names another message already")
    return seq
