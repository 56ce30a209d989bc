"""Writes the messages of a model call to the ledger: the messages of the request, and the answer.

This is done only if model calls decide the memory of the conversation (see `calls_decide`).
Otherwise, the call is stored without changing the conversation (see `beside`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from operator import is_
from typing import NamedTuple

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError
from chatmemory.formats.runs import digest_of
from chatmemory.ledger.adding import counted_entries
from chatmemory.ledger.client_list import remember_payload
from chatmemory.ledger.protocol import by_client, replace_window
from chatmemory.ledger.recorder import Recorder, is_unchanged
from chatmemory.ledger.validation import storable_messages
from chatmemory.messages.message import AiMessage, ChatMessage, SystemMessage
from chatmemory.models import Memory, Step
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry
from inspector.rooms.calls.comparing import Place
from inspector.rooms.calls.models import CallRun
from inspector.rooms.calls.newest import Newest, same_beginning
from inspector.rooms.calls.rows import keep_last_step, run_of

# Steps by which nobody decides about a memory
_HARMLESS = (Step.Kind.LABELS, Step.Kind.POLICY, Step.Kind.REDACT)


class OthersDecide(ChatMemoryError):
    """Raised if model calls do not decide the memory of the conversation (see `calls_decide`)."""


def has_recorded(memory_id: str) -> bool:
    """Return whether this process has recently recorded a call of a conversation in the ledger, and
    still caches the conversation's window.
    """
    return memory_id in _WINDOWS


def calls_decide(memory: Memory | None, run: CallRun | None) -> bool:
    """Return whether model calls decide the memory of a conversation. True for a new conversation
    (`memory` is None).

    In an existing conversation, calls decide only if all of this is true:

    - Calls began the conversation.
    - No policy limits its memory.
    - Only calls have changed the memory since the last recorded call (see `is_joined`).

    `run` is the conversation's row about its calls, or None.
    """
    if memory is None:
        return True
    if run is None or not run.is_own:
        return False
    if can_decide(memory.policy) and not memory.policy.meters_only:
        return False
    return memory.last_step == run.last_step or not is_joined(run)


def is_joined(run: CallRun) -> bool:
    """Return whether the memory of a conversation was changed after its last recorded call, by
    something other than a call. New labels, a new policy and redactions do not count.
    """
    later = Step.objects.filter(memory_id=run.memory_id, n__gt=run.last_step)
    return later.exclude(kind__in=_HARMLESS).exists()


class RecordedCall(NamedTuple):
    """The result of writing the messages of a call to the ledger. `step` is None if they were not
    written.

    - `step`: the window after this step is the request.
    - `answer_step`: the window after this step also has the answer. None without an answer.
    - `request` and `answer`: the window's entries for the messages of the request and the answer.
    - `places`: a `Place` for each message of the request, for comparisons with other prompts.
    - `continues`: this process recorded the previous call of the conversation, and nobody has
      changed the conversation since then.
    """

    step: int | None = None
    answer_step: int | None = None
    request: Sequence[Entry] = ()
    answer: Sequence[Entry] = ()
    places: Sequence[Place] = ()
    continues: bool = False


NOT_RECORDED = RecordedCall()


class _KnownWindow(NamedTuple):
    """The window of a conversation after its newest call, as this process has recorded it."""

    memory: Memory
    entries: Sequence[Entry]
    places: Sequence[Place]

    def put_into(self, recorder: Recorder) -> bool:
        """Put the cached window into a recorder. Return False if the stored window has changed
        since.
        """
        if not is_unchanged(recorder.memory, self.memory):
            return False
        recorder.window.refill(self.entries)
        return True

    @property
    def messages(self) -> list[ChatMessage | None]:
        return [each.message for each in self.entries]

    def keep(self) -> None:
        """Cache the window in this process. Called once the window is stored."""
        kept = self._replace(memory=copy(self.memory))
        _WINDOWS.put(self.memory.pk, kept, self.memory.window_size)


_WINDOWS: Newest[str, _KnownWindow] = Newest()


def content_digest(message: ChatMessage) -> bytes:
    """Return a digest of the content of a message. The digest is cached on the message."""
    found: bytes = message.__dict__.get("_digest") or digest_of(message)
    message.__dict__["_digest"] = found
    return found


def contents(messages: Iterable[ChatMessage]) -> list[bytes]:
    """Return digests of the contents of all messages except system messages."""
    return [content_digest(each) for each in messages if not isinstance(each, SystemMessage)]


def record_call(
    memory_id: str,
    request: Sequence[ChatMessage],
    answer: Sequence[ChatMessage],
    *,
    actor: str = "",
    prefix: str = "",
) -> RecordedCall:
    """Replace memory with the messages of a request, as `update_messages` does, and add the answer.
    Raises OthersDecide, and the exceptions of `update_messages`.

    If the request repeats a stored answer in a slightly different form, memory keeps the stored
    answer. `prefix` is the beginning of all conversation IDs that the sender's API token can reach.
    The prefix is stored, but not checked here.
    """
    request, answer = storable_messages(request), storable_messages(answer)
    window = _WINDOWS.get(memory_id)
    same = same_beginning(window.messages, request) if window else 0  # counted already
    windows: list[_KnownWindow] = []

    def change(recorder: Recorder) -> RecordedCall:
        memory = None if recorder.is_new else recorder.memory
        before = window if window is not None and window.put_into(recorder) else None
        if before is None:
            _check_decision(memory_id, memory)
        known = [each.message for each in recorder.window.with_messages() if each.message]
        sent = _with_known_answers(request, known, same if before else 0)
        is_longer = _replace(recorder, known, sent)
        step, size = recorder.memory.last_step, recorder.window.totals.count
        for entry in counted_entries(recorder.memory, answer):
            recorder.append(entry)
        entries = recorder.window.with_messages()
        places = _places(entries, before.places if before and is_longer else ())
        windows.append(_KnownWindow(recorder.memory, entries, places))
        answer_step = recorder.memory.last_step if answer else None
        return RecordedCall(
            step, answer_step, entries[:size], entries[size:], places[:size], before is not None
        )

    with database.atomic():
        recorded = by_client(memory_id, [*request[same:], *answer], change, actor).write()
        last_step = recorded.answer_step or recorded.step or 0
        keep_last_step(memory_id, prefix, last_step)
    windows[-1].keep()
    return recorded


def _check_decision(memory_id: str, memory: Memory | None) -> None:
    """Raise OthersDecide if calls do not decide the memory of a conversation."""
    with database.cursor() as cursor:
        run = run_of(memory_id, cursor)
    if not calls_decide(memory, run):
        raise OthersDecide(
            f"the conversation {memory_id!r} already exists, and recorded calls do not decide its "
            "memory: record the calls under another id"
        )


def _places(entries: Sequence[Entry], known: Sequence[Place]) -> list[Place]:
    """Return the places of entries. `known` are the places of the first entries."""
    new = entries[len(known) :]
    for each in new:
        if each.message is not None:
            remember_payload(each.message)  # the next list is compared with it
    return [*known, *(Place(each.seq, each.tokens, each.overrides) for each in new)]


def _replace(
    recorder: Recorder, known: Sequence[ChatMessage], messages: Sequence[ChatMessage]
) -> bool:
    """Record the list of a call as the new window. Return whether it only continues the old list.

    The usual case is faster: if all old messages are followed by at most one new message, only this
    message is added. A new system message is not added in this way, because an add would replace
    the old system message.
    """
    new = messages[len(known) :]
    is_longer = len(known) <= len(messages) <= len(known) + 1 and all(map(is_, known, messages))
    is_longer = is_longer and not any(isinstance(each, SystemMessage) for each in new)
    if is_longer:
        for entry in counted_entries(recorder.memory, new):
            recorder.append(entry)
    else:
        replace_window(recorder, messages)
    return is_longer


def _with_known_answers(
    messages: Sequence[ChatMessage], known: Sequence[ChatMessage], same: int
) -> list[ChatMessage]:
    """Return messages in which each answer that differs from a stored answer only in form is
    replaced by the stored answer.

    The stored answer at the same index is taken while both lists have equal contents, and then the
    latest stored answer. The first `same` messages of both lists are equal.
    """
    found = [*messages[:same]]
    for message, stored in zip(messages[same:], known[same:], strict=False):
        if content_digest(message) != content_digest(stored):
            break
        found.append(stored if isinstance(message, AiMessage) else message)
    rest = messages[len(found) :]
    if not any(isinstance(each, AiMessage) for each in rest):
        return [*found, *rest]
    answers = {content_digest(each): each for each in known if isinstance(each, AiMessage)}
    return [*found, *(answers.get(content_digest(each), each) for each in rest)]
