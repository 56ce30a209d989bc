"""Adds messages to a conversation or to a simulation, and counts their tokens.

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
    """A stored message with a client id. `payload` is its JSON without attributes, or None if the
    message was redacted.
    """

    seq: int
    type: str
    payload: str | None


def add_all(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Add messages under the conversation's policy. Return one result for each message.

    A message whose client id is already stored is not added again. Its content must equal the
    stored content. Attributes and redacted content are not compared.

    Raises PolicyRequired, PolicyUnavailable, EstimatorUnavailable and DuplicateClientId. Raises
    OversizedMessage, NoRoomBesidePins and WindowTooLarge, whose `index` is the index of the message
    in `messages`.
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
            known[new.client_id] = _stored_message(result.seq, new)
    return results


def admitted(recorder: Recorder, arrival: Entry, policy: Policy) -> Transition:
    """Return the transition that adds a message.

    If the message has no room beside the pinned messages and the index, the index is evicted first,
    as a separate step.
    """
    try:
        return admit(recorder.window, arrival, policy)
    except NoRoomBesidePins:
        if not recorder.give_way():
            raise
        return admit(recorder.window, arrival, policy)


def clear_results(recorder: Recorder, arrival: Entry, policy: Policy) -> None:
    """Replace old tool results by placeholders, as a separate step, if the window has no room for
    the new message.
    """
    estimator = estimator_for(policy.estimator)
    count = partial(count_tokens, estimator)
    recorder.record(clear_for(recorder.window, arrival, policy, count))


def add_copies(recorder: Recorder, messages: Sequence[NewMessage]) -> list[ChangeResult]:
    """Copy messages from the history of another conversation into this conversation. Return one
    result for each message.

    An add ignores a system message that equals the current system message. To copy such a message,
    too, memory is cleared first, in a separate step.
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
    """Add the messages of a coding agent's session, one step each. Returns one result for each
    message.

    No policy trims the window. A message that is a summary replaces other messages, as in the
    agent's own compaction. `compactions` maps the index of each summary in the session to its
    compaction. The message at index i of the session gets the seq i + 1.
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
    """Return the transition that replaces messages of the recorder's window by this summary.

    `plan` says which messages are replaced, and how many exact terms may be appended to the
    summary. `words` are the project's additions to the rules for exact terms.

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
    """Raise MessageTooLarge for a summary that is too long with its appended terms."""
    most = configuration().TEXT_CHARACTERS
    if len(summary) > most:
        raise MessageTooLarge(
            f"the summary has {len(summary):,} characters with its terms, and at most {most:,} are "
            'stored: write a shorter one, or raise CHATMEMORY["TEXT_CHARACTERS"]'
        )


def appended_count(transition: Transition, summary: str, terms: Sequence[str]) -> int:
    """Return how many of the `terms`, from the first on, were appended to the summary that
    `transition` adds.

    `summary` is the text of the summary without the terms.
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
    """Return `policy`, the policy of a conversation. Raises PolicyRequired if the policy is None,
    which means that the client decides the window.

    `advice` is the end of the error's text.
    """
    if policy is None:
        raise PolicyRequired(f"the client decides the window of {memory_id!r}: {advice}")
    return policy


def _stored_messages(memory: Memory, messages: Iterable[NewMessage]) -> dict[str, _StoredMessage]:
    """Return the stored messages with the client ids of `messages`, by client id."""
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


def check_client_ids(messages: Iterable[NewMessage]) -> None:
    """Check that messages with the same client id have the same content. Called before an import in
    several transactions, so that the import fails before anything is stored.

    Raises DuplicateClientId.
    """
    by_client_id: dict[str, list[NewMessage]] = {}
    for each in messages:
        if each.client_id is not None:
            by_client_id.setdefault(each.client_id, []).append(each)
    for client_id, (first, *others) in by_client_id.items():
        if others:
            known = {client_id: _stored_message(0, first)}
            for other in others:
                _duplicate(other, known)


def _stored_message(seq: int, new: NewMessage) -> _StoredMessage:
    return _StoredMessage(seq, new.message.type, without_attributes(message_to_json(new.message)))


def _duplicate(message: NewMessage, known: Mapping[str, _StoredMessage]) -> int | None:
    """Return the seq of the stored message with the same client id; None if there is none.

    Raises DuplicateClientId if the stored message has other content.
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
    """Return the messages as entries of a window, with their tokens by the conversation's
    estimator. A message that was counted by `count_ahead` is not counted again.

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

    Returns the name of the conversation's estimator, or None for an unknown id. If the estimator
    changes before the lock is taken, the messages are counted again.
    """
    name, _ = counted_ahead(memory_id, messages)
    return name


def counted_ahead(memory_id: str, messages: Iterable[ChatMessage]) -> tuple[str | None, int]:
    """Count the tokens of messages as `count_ahead` does. Returns the name of the conversation's
    estimator, and the number of messages in its window.

    Returns `(None, 0)` for an unknown id.
    """
    name, count = sql.estimator_and_count(memory_id) or (None, 0)
    count_all(messages, name if name and is_known(name) else configuration().ESTIMATOR)
    return name, count


def is_counted_quickly(messages: Iterable[ChatMessage]) -> bool:
    """Return whether counting these messages is faster than reading the name of the conversation's
    estimator from the database.

    True if all texts together have at most `SHORT` characters, and no other estimators than
    OpenAI's are installed.
    """
    return not ESTIMATORS and sum(len(text_of(each)) for each in messages) <= SHORT


@dataclass(frozen=True)
class Recount:
    """A window whose messages were counted by a new estimator, before the conversation is locked.

    The message objects of `entries` remember the new counts. `memory` is the conversation's row,
    read together with the entries.
    """

    memory: Memory
    entries: Sequence[Entry]

    @classmethod
    def ahead(cls, memory_id: str, estimator_name: str) -> Recount | None:
        """Return the window of a conversation, counted by the estimator `estimator_name`. None for
        an unknown id.

        Also None if this estimator and the conversation's estimator are of one family. Estimators
        of one family count alike, so the stored counts stay valid.
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
        """Put the counted messages into the recorder's window. Does nothing if the conversation has
        changed since they were counted.
        """
        if is_unchanged(recorder.memory, self.memory):
            recorder.window.refill(self.entries)


def change_policy(recorder: Recorder, policy: Policy, recount: Recount | None = None) -> None:
    """Put a policy in force. The window is counted by the policy's estimator, unless `recount`
    already has these counts.
    """
    if recount is not None:
        recount.put_into(recorder)
    recorder.window.count_with(family_named(policy.estimator), counter(policy.estimator))
    recorder.set_policy(policy)


def ensure_countable(recorder: Recorder, recount: Recount | None = None) -> None:
    """Remove the conversation's policy, as a step, if the conversation's estimator is not
    installed. From then on, the client decides the window, and the default estimator counts the
    tokens.

    `recount` is the window, already counted by the default estimator. Without `recount`, the window
    is counted here.
    """
    name, default = recorder.memory.policy_estimator, configuration().ESTIMATOR
    if not is_known(name):
        if recount is not None:
            recount.put_into(recorder)
        recorder.window.count_with(family_named(default), counter(default))
        recorder.set_policy(None, estimator=default, note=f"the estimator {name} is not installed")
