"""Stores the messages of a model call apart from the ledger. This is done if something other than
calls decides the memory of the conversation, such as a policy with a limit or a client.

Such a call changes nothing in the history and the memory. The row of the call has a list of
references to its messages (see `places`). Messages that are not in history are stored as
`CallMessage` rows, once for all calls of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.ledger.adding import counter
from chatmemory.ledger.redaction import redacted
from chatmemory.ledger.validation import storable_messages
from chatmemory.ledger.windows import read_message
from chatmemory.messages.codec import (
    attributes_beside,
    frame_of,
    message_to_json,
    strings_of,
)
from chatmemory.messages.estimators import is_known
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.models import Memory, Message, Step
from chatmemory.reading.windows import MessageView
from chatmemory.search import has
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import stub_of
from chatmemory.windows.window import Entry
from inspector.rooms.calls.comparing import Place
from inspector.rooms.calls.matching import found_in, make_known
from inspector.rooms.calls.models import CallMessage, CallRun, ModelCall
from inspector.rooms.calls.places import Reference, decoded


class ListedMessage(NamedTuple):
    """A message in the list of a model call. `seq` is its number in the conversation, or None if
    the conversation does not have the message.

    `is_stub` means that the call sent a placeholder instead of the text of a tool result.
    """

    message: ChatMessage
    tokens: int
    seq: int | None = None
    is_stub: bool = False

    @property
    def digest(self) -> str:
        beside = attributes_beside(self.message) or ""
        return sha256(f"{message_to_json(self.message)}\0{beside}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class ListBeside:
    """The messages that a model call sent, matched with the history by their content. They are to
    be stored outside the ledger.

    - `at` is the newest step of the conversation when the messages were matched.
    - `known_seq` is the seq up to which digests of the history's messages are stored. Later
      messages were not matched.
    """

    memory_id: str
    at: int
    known_seq: int
    messages: Sequence[ListedMessage]

    @property
    def sent(self) -> list[ChatMessage]:
        """The messages that the call sent, in the order of its list."""
        return [each.message for each in self.messages]

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.messages)

    def places(self, references: Iterable[Reference]) -> list[Place]:
        """Return the messages of the list with their tokens, for a comparison with another call.
        `references` is the result of `keep`.
        """
        pairs = zip(references, self.messages, strict=True)
        return [Place(one.seq, each.tokens, one.overrides) for one, each in pairs]

    @property
    def is_outdated(self) -> bool:
        """Whether a message of the conversation was redacted after step `at`. The list may then
        still have the redacted text.
        """
        later = Step.objects.filter(memory_id=self.memory_id, n__gt=self.at)
        return later.filter(kind=Step.Kind.REDACT).exists()

    @cached_property
    def _digests(self) -> dict[int, str]:
        return {n: each.digest for n, each in enumerate(self.messages) if each.seq is None}

    def keep(self, run: CallRun) -> list[Reference]:
        """Store the messages that the conversation does not have, and return references to all
        messages of the list. The caller holds the lock of the conversation.
        """
        digests = sorted(set(self._digests.values()))
        rows = CallMessage.objects.filter(memory_id=self.memory_id)
        known = dict(
            rows.filter(database.in_list("digest", digests)).values_list("digest", "n")
            if digests
            else ()
        )
        new: list[CallMessage] = []
        for place, digest in self._digests.items():
            if digest not in known:
                run.own_messages += 1
                known[digest] = run.own_messages
                new.append(_row(self.memory_id, run.own_messages, digest, self.messages[place]))
        CallMessage.objects.bulk_create(new)
        return [
            Reference(-known[self._digests[n]])
            if each.seq is None
            else Reference(each.seq, each.tokens if each.is_stub else None)
            for n, each in enumerate(self.messages)
        ]


def _row(memory_id: str, n: int, digest: str, listed: ListedMessage) -> CallMessage:
    message = listed.message
    return CallMessage(
        memory_id=memory_id,
        n=n,
        digest=digest,
        text=text_of(message),
        frame=frame_of(message),
        attributes=attributes_beside(message),
        tokens=listed.tokens,
    )


def list_beside(memory_id: str, sent: Sequence[ChatMessage], run: CallRun | None) -> ListBeside:
    """Match the list of a model call with the messages of a conversation, without a lock.

    `run` is the conversation's row about its calls, or None before its first call. Raises
    MemoryNotFound, and the exceptions of `storable_messages` for messages that cannot be stored.
    """
    sent = storable_messages(sent)
    known_seq = make_known(memory_id, run.known_seq if run else 0)
    with one_snapshot():
        memory = Memory.objects.get(pk=memory_id)
        found = found_in(memory_id, sent)
        rows = _messages(memory_id, [seq for seq, _ in found if seq is not None])
    name = memory.policy_estimator
    count = counter(name if is_known(name) else configuration().ESTIMATOR)

    def listed(message: ChatMessage, seq: int | None, is_stub: bool) -> ListedMessage:
        if seq is None:
            return ListedMessage(message, count(message))
        stored = read_message(rows[seq])
        if is_stub:
            stored = stub_of(stored)
            return ListedMessage(stored, count(stored), seq, is_stub=True)
        return ListedMessage(stored, rows[seq].tokens, seq)

    messages = [
        listed(message, seq, is_stub) for message, (seq, is_stub) in zip(sent, found, strict=True)
    ]
    return ListBeside(memory_id, memory.last_step, known_seq, messages)


def _messages(memory_id: str, seqs: Sequence[int]) -> dict[int, Message]:
    rows = Message.objects.filter(database.in_list("seq", seqs), memory_id=memory_id)
    return {row.seq: row for row in rows}


# Reading


def places_of(call: ModelCall) -> list[Place]:
    """Return the messages of a call whose list is stored in `ModelCall.places`, with their tokens,
    for a comparison with another call. The texts of the messages are not read.
    """
    references = decoded(call.places)
    tokens = _tokens(call.memory_id, references)
    return [
        Place(
            each.seq,
            tokens.get(each.seq, 0) if each.stub_tokens is None else each.stub_tokens,
            each.overrides,
        )
        for each in references
    ]


def _tokens(memory_id: str, references: Iterable[Reference]) -> Mapping[int, int]:
    said, own = _divided(references)
    rows = Message.objects.filter(database.in_list("seq", said), memory_id=memory_id)
    kept = CallMessage.objects.filter(database.in_list("n", own), memory_id=memory_id)
    found = dict(rows.values_list("seq", "tokens"))
    return found | {-n: tokens for n, tokens in kept.values_list("n", "tokens")}


def _divided(references: Iterable[Reference]) -> tuple[list[int], list[int]]:
    """Return the seqs of referenced messages of the conversation, and the numbers of all other
    referenced messages.
    """
    seqs = {each.seq for each in references}
    return sorted(seq for seq in seqs if seq > 0), sorted(-seq for seq in seqs if seq < 0)


def views_of(call: ModelCall) -> list[MessageView]:
    """Return the messages of a call whose list is stored in `ModelCall.places`. A message that only
    model calls sent has a seq below 0.
    """
    references = decoded(call.places)
    said, own = _divided(references)
    kept = CallMessage.objects.filter(database.in_list("n", own), memory_id=call.memory_id)
    rows = {**_messages(call.memory_id, said), **{row.seq: row for row in kept}}
    return [_view(rows[each.seq], each) for each in references if each.seq in rows]


def _view(row: Message | CallMessage, reference: Reference) -> MessageView:
    message, tokens = read_message(row), row.tokens
    if reference.stub_tokens is not None:
        message, tokens = stub_of(message), reference.stub_tokens
    view = MessageView.of(Entry.of(message, tokens), policy=None)
    return view._replace(seq=reference.seq, text=text_of(message), read=message)


# Searching


class Mentions(NamedTuple):
    """The result of a search for a phrase in messages that model calls sent and that are not in
    history.

    - `number` is the number of messages with the phrase.
    - `call` is the newest call that sent such a message; None if no recent call did.
    """

    number: int
    call: ModelCall | None


def mentions_of(memory_id: str, phrase: str, newest: Iterable[ModelCall]) -> Mentions:
    """Search all messages that calls of a conversation sent and that are not in history. Return how
    many of these messages contain a phrase, and the newest call that sent such a message.

    `newest` are the recent calls of the conversation, newest first. The returned call is None if no
    call in `newest` sent a message with the phrase.
    """
    rows = CallMessage.objects.filter(has(phrase), memory_id=memory_id)
    found = {-n for n in rows.values_list("n", flat=True)}
    with_it = (call for call in newest if any(each.seq in found for each in decoded(call.places)))
    return Mentions(len(found), next(with_it, None) if found else None)


# Erasing


def redact_own(memory_id: str, holds: Callable[[str], bool], gone: Collection[int]) -> set[int]:
    """Redact messages that model calls sent and that are not in history. Return the seqs of the
    redacted messages, which are below 0.

    A message is redacted if `holds` returns True for one of its texts, or if its seq is in `gone`.
    """
    redacted_ones = set()
    for row in CallMessage.objects.filter(memory_id=memory_id).exclude(digest=""):
        message = read_message(row)
        if row.seq in gone or any(holds(text) for _, text in strings_of(message)):
            tombstone = redacted(message, row.n)
            row.text, row.frame, row.attributes = text_of(tombstone), frame_of(tombstone), None
            row.digest = ""
            row.save(update_fields=["text", "frame", "attributes", "digest"])
            redacted_ones.add(row.seq)
    return redacted_ones


def forget_unsent(memory_id: str) -> None:
    """Delete messages that only model calls sent, if no stored call refers to them any more."""
    calls = ModelCall.objects.filter(memory_id=memory_id).exclude(places="")
    sent = {
        -each.seq
        for places in calls.values_list("places", flat=True).iterator()
        for each in decoded(places)
        if each.seq < 0
    }
    rows = CallMessage.objects.filter(memory_id=memory_id)
    unsent = {*rows.values_list("n", flat=True)} - sent
    rows.filter(database.in_list("n", sorted(unsent))).delete()
