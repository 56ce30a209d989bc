"""Matches the messages of a call's list with the messages of a conversation, by their content.

Messages with a unique content are matched first. Then the repeated messages between them are
matched, in order. Of several equal messages, the latest is taken, because a list is mostly the end
of a conversation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from chatmemory import database
from chatmemory.formats.runs import SIZE, digest_of
from chatmemory.ledger.windows import read_message, shown_message
from chatmemory.messages.message import (
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    text_of,
)
from chatmemory.models import Message, Stay
from chatmemory.windows.clearing import STUB
from inspector.rooms.calls.models import CallRun, KnownMessage

AT_ONCE = 500  # messages that are made known together


def key_of_content(message: ChatMessage) -> str:
    """Return a digest of a message's content. Messages that differ only in other details, such as
    the IDs of tool calls, have the same digest.
    """
    if isinstance(message, SystemMessage):
        text = f"system\0{message.text}".encode("utf-8", "surrogatepass")
        return blake2b(text, digest_size=SIZE).hexdigest()
    return digest_of(message).hex()


def make_known(memory_id: str, known_seq: int) -> int:
    """Store the digests of all messages of the history after the seq `known_seq`, except redacted
    messages. Return the seq of the newest message.
    """
    rows = Message.objects.filter(memory_id=memory_id).order_by("seq")
    while some := [*rows.filter(seq__gt=known_seq)[:AT_ONCE]]:
        KnownMessage.objects.bulk_create(
            [
                KnownMessage(
                    memory_id=memory_id, seq=row.seq, digest=key_of_content(read_message(row))
                )
                for row in some
                if row.redacted_step is None
            ],
            ignore_conflicts=True,
        )
        known_seq = some[-1].seq
    return known_seq


def forget_known(memory_id: str, seqs: Iterable[int] | None = None) -> None:
    """Delete the digests of the messages `seqs`, or of all messages if `seqs` is None. If all are
    deleted, `make_known` stores them again when the next model call is matched.
    """
    rows = KnownMessage.objects.filter(memory_id=memory_id)
    if seqs is not None:
        rows.filter(database.in_list("seq", [*seqs])).delete()
        return
    rows.delete()
    CallRun.objects.filter(memory_id=memory_id).update(known_seq=0)


def found_in(memory_id: str, sent: Sequence[ChatMessage]) -> list[tuple[int | None, bool]]:
    """Return a pair for each sent message: a seq, and whether the message is the placeholder of a
    cleared tool result.

    The seq is that of the message in the conversation with the same content. For a placeholder, it
    is the seq of the tool result that was cleared. If there is no such message, the pair is `(None,
    False)`.
    """
    keys = [key_of_content(each) for each in sent]
    rows = KnownMessage.objects.filter(
        database.in_list("digest", sorted(set(keys))), memory_id=memory_id
    )
    seqs: defaultdict[str, list[int]] = defaultdict(list)
    for seq, digest in rows.order_by("seq").values_list("seq", "digest"):
        seqs[digest].append(seq)
    found = matched(keys, seqs)
    stubs = _stubs(memory_id) if any(map(_is_stub, sent)) else {}
    places: list[tuple[int | None, bool]] = []
    for message, seq in zip(sent, found, strict=True):
        is_stub = seq is None and _is_stub(message)
        places.append((stubs.get(_call_of(message)) if is_stub else seq, is_stub))
    return [(seq, is_stub and seq is not None) for seq, is_stub in places]


def matched(keys: Sequence[str], seqs: dict[str, list[int]]) -> list[int | None]:
    """Return for each key of a list the seq of a message with this key. `seqs` maps each key to the
    seqs of its messages, in ascending order.

    Each seq is used once. None stands for a key for which no seq remains.
    """
    times = Counter(keys)
    found: list[int | None] = [
        seqs[key][0] if times[key] == 1 and len(seqs.get(key, ())) == 1 else None for key in keys
    ]
    free = {key: [*each] for key, each in seqs.items()}
    after: int | None = None  # the seq of the next message in the list that is known
    for place in range(len(keys) - 1, -1, -1):
        if found[place] is None and (left := free.get(keys[place])):
            found[place] = left.pop(_latest_before(left, after))
        after = found[place] if found[place] is not None else after
    return found


def _latest_before(left: Sequence[int], after: int | None) -> int:
    """Return the index of the latest of these seqs that is lower than `after`. If none is lower, or
    `after` is None, return the last index.
    """
    end = len(left) if after is None else bisect_left(left, after)
    return (end or len(left)) - 1


def _is_stub(message: ChatMessage) -> bool:
    return isinstance(message, ToolExecutionResultMessage) and text_of(message) == STUB


def _call_of(message: ChatMessage) -> str | None:
    return message.id if isinstance(message, ToolExecutionResultMessage) else None


def _stubs(memory_id: str) -> dict[str | None, int]:
    """Return the seqs of the tool results that were cleared, by the ids of their calls."""
    stays = Stay.objects.filter(memory_id=memory_id, overrides__isnull=False).order_by("n")
    shown = (
        (stay.seq, shown_message(stay.message, stay.overrides))
        for stay in stays.select_related("message")
    )
    return {_call_of(message): seq for seq, message in shown if _is_stub(message)}
