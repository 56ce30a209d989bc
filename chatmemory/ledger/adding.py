"""Adds messages to a conversation, stored or in a simulation, and counts their tokens.

Counting can be slow, so messages are counted before the conversation is locked. Each message object
remembers its count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from chatmemory.conf import configuration
from chatmemory.exceptions import (
    DuplicateClientId,
    EstimatorUnavailable,
    MemoryNotFound,
    MessageTooLarge,
    NoRoomBesidePins,
    OversizedMessage,
    PolicyRequired,
    UnknownEstimator,
    WindowTooLarge,
)
from chatmemory.inserted import NewMessage
from chatmemory.ledger import sql
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder, is_unchanged
from chatmemory.ledger.windows import stored_window
from chatmemory.messages.codec import message_to_json, without_attributes
from chatmemory.messages.estimators import (
    ESTIMATORS,
    count_tokens,
    estimator_for,
    family_named,
    is_known,
)
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.messages.sessions import Compaction
from chatmemory.messages.texts import printable
from chatmemory.models import Memory, Message
from chatmemory.recall.facts import Words
from chatmemory.recall.summary_plan import SummaryPlan
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.compaction import compact, summary_message
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Transition, admit, append, clear
from chatmemory.windows.window import Entry, Window

SHORT = 2_000  # characters
NOTE = 255  # characters of a step's note


class _StoredMessage(NamedTuple):
    """A stored message with a client id; `payload`, without attributes, is None where it was
    redacted.
    """

    seq: int
    type: str
    payload: str | None


def add_all(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Add messages under the conversation's policy. Returns one result per message.

    A message with a known client id and the same content changes nothing, even if its attributes
    differ. A redacted message has no content left, so only its type is compared. Raises
    PolicyRequired, PolicyUnavailable, EstimatorUnavailable and DuplicateClientId. OversizedMessage,
    NoRoomBesidePins and WindowTooLarge name the index of the message.
    """
    policy = required_policy(recorder.memory.id, recorder.policy)
    known = _stored_messages(recorder.memory, messages)
    results = []
    arrivals = counted_entries(recorder.memory, [new.message for new in messages])
    for index, (new, arrival) in enumerate(zip(messages, arrivals, strict=True)):
        seq = _duplicate(new, known)
        if seq is not None:
            results.append(recorder.duplicate(seq))
            continue
        try:
            if policy.whole_results:
                clear_results(recorder, arrival, policy)
            transition = admitted(recorder, arrival, policy)
            result = recorder.record(transition, new)
        except (OversizedMessage, NoRoomBesidePins, WindowTooLarge) as error:
            error.index = index
            raise
        results.append(result)
        if new.client_id is not None and result.seq is not None:
            payload = without_attributes(message_to_json(new.message))
            known[new.client_id] = _StoredMessage(result.seq, new.message.type, payload)
    return results


def admitted(recorder: Recorder, arrival: Entry, policy: Policy) -> Transition:
    """Return the transition that adds a message.

    If pinned messages and the index message leave no room, the index message (the list of evicted
    terms) is evicted first.
    """
    try:
        return admit(recorder.window, arrival, policy)
    except NoRoomBesidePins:
        if not recorder.give_way():
            raise
        return admit(recorder.window, arrival, policy)


def clear_results(recorder: Recorder, arrival: Entry, policy: Policy) -> None:
    """Replace old tool results by placeholders if the window has no room for a new message
    otherwise. The replacement is a step of its own.
    """
    estimator = estimator_for(policy.estimator)
    count = partial(count_tokens, estimator)
    recorder.record(clear_for(recorder.window, arrival, policy, count))


def add_copies(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Copy messages from the history of another conversation, the source, into this conversation.

    An add ignores a system message that is equal to the current one. If the source has such a
    message, its memory was cleared or replaced before that message. So this memory is cleared, and
    the message is added again.
    """
    results = []
    for message in messages:
        (result,) = add_all(recorder, [message])
        if result.step is None:
            recorder.record(clear(recorder.window, recorder.policy))
            (result,) = add_all(recorder, [message])
        results.append(result)
    return results


def add_recorded(
    recorder: Recorder, messages: Sequence[NewMessage], compactions: Mapping[int, Compaction]
) -> list[ChangeResult]:
    """Add messages of an agent's session, with the windows that the agent saw. Returns one result
    per message.

    `compactions` maps the position of each summary in the session to its compaction. The message at
    position p gets the seq p + 1.
    """
    results = []
    arrivals = counted_entries(recorder.memory, [new.message for new in messages])
    for new, arrival in zip(messages, arrivals, strict=True):
        compaction = compactions.get(recorder.memory.last_seq)
        if compaction is None:
            transition, note = append(recorder.window, arrival), ""
        else:
            transition = _compacted(recorder.window, compaction, arrival)
            note = printable(compaction.trigger or "")[:NOTE]
        results.append(recorder.record(transition, new, by_client=True, note=note))
    return results


def _compacted(window: Window, compaction: Compaction, summary: Entry) -> Transition:
    entries = window.with_messages()
    after = compaction.after([entry.seq - 1 for entry in entries])
    covered = [entry for entry in entries if entry.seq - 1 not in after]
    return compact(Window(entries), covered, summary, None, after.index(compaction.summary))


def summarized(recorder: Recorder, summary: str, plan: SummaryPlan, words: Words) -> Transition:
    """Return the transition that puts a summary with this text into the recorder's window.

    Raises MessageNotFound, InvalidMessage, MessageTooLarge, NotCompactable.
    """
    entries = recorder.window.with_messages()

    def entry_of(message: ChatMessage) -> Entry:
        _check_length(text_of(message))
        return counted_entries(recorder.memory, [message])[0]

    return plan.transition(
        Window(entries),
        summary,
        entry_of,
        recorder.policy,
        numbers=[entry.seq for entry in entries],
        words=words,
    )


def _check_length(summary: str) -> None:
    """Raise MessageTooLarge for a summary that its terms make longer than any text may be."""
    most = configuration().TEXT_CHARACTERS
    if len(summary) > most:
        raise MessageTooLarge(
            f"the summary has {len(summary):,} characters with its terms, and at most {most:,} are "
            'stored: write a shorter one, or raise CHATMEMORY["TEXT_CHARACTERS"]'
        )


def appended_count(transition: Transition, summary: str, terms: Sequence[str]) -> int:
    """Return how many of the `terms` are appended to the stored summary.

    `summary` is the text without terms, and `transition` the compaction with the stored summary.
    Terms are appended in order as long as there is room.
    """
    arrival = transition.evictions[0].because
    assert arrival is not None
    assert arrival.message is not None
    length = len(text_of(arrival.message))
    counts = range(len(terms) + 1)
    return bisect_left(
        counts, length, key=lambda count: len(text_of(summary_message(summary, terms[:count])))
    )


def required_policy(
    memory_id: str, policy: Policy | None, advice: str = "set a policy before adding to it"
) -> Policy:
    """Return the policy of a conversation. Raises PolicyRequired if there is none, because then the
    client decides what is in the window.

    `advice` is the last part of the error text.
    """
    if policy is None:
        raise PolicyRequired(f"the client decides the window of {memory_id!r}: {advice}")
    return policy


def _stored_messages(memory: Memory, messages: Iterable[NewMessage]) -> dict[str, _StoredMessage]:
    """Return the stored messages with the client ids of `messages`."""
    client_ids = [new.client_id for new in messages if new.client_id is not None]
    if not client_ids:
        return {}
    rows = Message.objects.filter(memory=memory, client_id__in=client_ids)
    return {
        row.client_id: _StoredMessage(
            row.seq,
            row.type,
            without_attributes(row.payload) if row.redacted_step is None else None,
        )
        for row in rows
        if row.client_id is not None
    }


def _duplicate(message: NewMessage, known: Mapping[str, _StoredMessage]) -> int | None:
    """Return the seq of a message that is already stored, or None.

    Raises DuplicateClientId if the client id names a message with other content.
    """
    if message.client_id is None or message.client_id not in known:
        return None
    stored = known[message.client_id]
    if stored.type != message.message.type or (
        stored.payload is not None
        and stored.payload != without_attributes(message_to_json(message.message))
    ):
        raise DuplicateClientId(
            f"the client id {message.client_id!r} already names a message with different "
            "content: give each message its own client id"
        )
    return stored.seq


# Counting


def counter(estimator_name: str) -> Callable[[ChatMessage], int]:
    """Return a function that counts a message's tokens. Raises UnknownEstimator."""
    estimator = estimator_for(estimator_name)
    return lambda message: count_tokens(estimator, message)


def count_all(messages: Iterable[ChatMessage], estimator_name: str) -> None:
    """Count the tokens of messages before the conversation is locked. Each message object remembers
    its count.

    Raises UnknownEstimator, UnsupportedMessage.
    """
    count = counter(estimator_name)
    for message in messages:
        count(message)


def counted_entries(memory: Memory, messages: Iterable[ChatMessage]) -> list[Entry]:
    """Return the messages as window entries with token counts by the conversation's estimator.
    Counts that `count_ahead` made are reused.

    Raises EstimatorUnavailable.
    """
    try:
        count = counter(memory.policy_estimator)
    except UnknownEstimator as error:
        raise EstimatorUnavailable(memory.id, memory.policy_estimator) from error
    return [Entry.of(message, count(message)) for message in messages]


def count_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> str | None:
    """Count the tokens of messages before the conversation is locked, because counting is slow.
    Each message object remembers its count.

    If the policy's estimator changes before the lock is taken, the messages are counted again.
    Returns the name of the conversation's estimator; None for an unknown id.
    """
    name, _ = counted_ahead(memory_id, messages)
    return name


def counted_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> tuple[str | None, int]:
    """Count the tokens of messages as `count_ahead` does.

    Returns the name of the conversation's estimator and the number of messages in its window; None
    and 0 for an unknown id.
    """
    name, count = sql.estimator_and_count(memory_id) or (None, 0)
    count_all(messages, name if name and is_known(name) else configuration().ESTIMATOR)
    return name, count


def is_counted_quickly(messages: Iterable[ChatMessage]) -> bool:
    """Return whether counting these messages takes less time than a query for the conversation's
    estimator.

    This is so for short texts, unless the project has installed estimators of its own.
    """
    return not ESTIMATORS and sum(len(text_of(each)) for each in messages) <= SHORT


@dataclass(frozen=True)
class Recount:
    """The messages of a window, counted by a new estimator before the conversation is locked.

    `entries` are the entries of the window; their message objects remember the new counts. `memory`
    is the conversation's row at that time.
    """

    memory: Memory
    entries: Sequence[Entry]

    @classmethod
    def ahead(cls, memory_id: str, estimator_name: str) -> Recount | None:
        """Count a conversation's window by this estimator and return the counted window.

        Returns None if the conversation's estimator is of the same family, so that the stored
        counts stay valid. Returns None if there is no such conversation, too.
        """
        try:
            with one_snapshot():
                memory = find_memory(memory_id)
                if family_named(estimator_name) == family_named(memory.policy_estimator):
                    return None
                recount = cls(memory, stored_window(memory).with_messages())
        except MemoryNotFound:
            return None
        count_all(filter(None, (entry.message for entry in recount.entries)), estimator_name)
        return recount

    def put_into(self, recorder: Recorder) -> None:
        """Put the counted messages into the recorder's window, unless the conversation has changed
        since they were counted.
        """
        if is_unchanged(recorder.memory, self.memory):
            recorder.window.refill(self.entries)


def change_policy(recorder: Recorder, policy: Policy, recount: Recount | None = None) -> None:
    """Put a policy in force, and count the window by the estimator of the policy."""
    if recount is not None:
        recount.put_into(recorder)
    recorder.window.count_with(family_named(policy.estimator), counter(policy.estimator))
    recorder.set_policy(policy)


def ensure_countable(recorder: Recorder, recount: Recount | None = None) -> None:
    """Remove the policy if its estimator is not installed: from then on, the client decides what is
    in the window.

    So a client's list can be stored, and the default estimator counts its tokens. When a memory
    object that has the missing estimator is used again, the policy of this object is put in force.
    """
    name, default = recorder.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        if recount is not None:
            recount.put_into(recorder)
        recorder.window.count_with(family_named(default), counter(default))
        recorder.set_policy(None, estimator=default, note=f"the estimator {name} is not installed")
