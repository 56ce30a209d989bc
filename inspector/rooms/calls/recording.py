"""The steps of a call in the ledger: the list that a program sent, and the answer to it.

Calls decide the memory of a conversation only if they began it, and nobody else has written to it
since. A call in any other conversation changes nothing of it (see `beside`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError
from chatmemory.formats.runs import digest_of
from chatmemory.ledger.adding import counted_entries
from chatmemory.ledger.protocol import by_client, replace_window
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.validation import storable_messages
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.models import Memory, Step
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry
from inspector.rooms.calls.models import CallRun

# Steps by which nobody decides about a memory
_HARMLESS = (Step.Kind.LABELS, Step.Kind.POLICY, Step.Kind.REDACT)


class OthersDecide(ChatMemoryError):
    """Somebody else decides the memory of the conversation."""


def calls_decide(memory: Memory | None, run: CallRun | None) -> bool:
    """Return whether calls decide the memory of a conversation: they began it, no policy limits it,
    and nobody else has written to it since. `memory` is None if it is new.
    """
    if memory is None:
        return True
    if run is None or not run.is_own:
        return False
    if can_decide(memory.policy) and not memory.policy.meters_only:
        return False
    return memory.last_step == run.last_step or not is_joined(run)


def is_joined(run: CallRun) -> bool:
    """Return whether somebody else has written to a conversation after its calls."""
    later = Step.objects.filter(memory_id=run.memory_id, n__gt=run.last_step)
    return later.exclude(kind__in=_HARMLESS).exists()


def run_of(memory_id: str) -> CallRun | None:
    found: CallRun | None = CallRun.objects.filter(memory_id=memory_id).first()
    return found


class RecordedCall(NamedTuple):
    """The steps of a call: its request is the window after `step`, and the window after
    `answer_step` has the answer, too.
    """

    step: int | None = None
    answer_step: int | None = None
    request: Sequence[Entry] = ()
    answer: Sequence[Entry] = ()


NOT_RECORDED = RecordedCall()


def record_call(
    memory_id: str,
    request: Sequence[ChatMessage],
    answer: Sequence[ChatMessage],
    *,
    actor: str = "",
    prefix: str = "",
) -> RecordedCall:
    """Replace the window by the request of a call, as `update_messages` does, and add the answer.
    Raises OthersDecide, and the exceptions of `update_messages`.

    An earlier answer that comes back in another spelling counts as the stored one. `prefix` is that
    of the token that sent the call.
    """
    request, answer = storable_messages(request), storable_messages(answer)

    def change(recorder: Recorder) -> RecordedCall:
        memory = None if recorder.is_new else recorder.memory
        if not calls_decide(memory, run_of(memory_id)):
            raise OthersDecide(f"calls do not decide the memory of {memory_id!r}")
        known = [each.message for each in recorder.window.with_messages() if each.message]
        replace_window(recorder, _with_known_answers(request, known))
        step, size = recorder.memory.last_step, recorder.window.totals.count
        for entry in counted_entries(recorder.memory, answer):
            recorder.append(entry)
        entries = recorder.window.with_messages()
        answer_step = recorder.memory.last_step if answer else None
        return RecordedCall(step, answer_step, entries[:size], entries[size:])

    with database.atomic():
        recorded = by_client(memory_id, [*request, *answer], change, actor).write()
        last_step = recorded.answer_step or recorded.step or 0
        if not CallRun.objects.filter(memory_id=memory_id).update(last_step=last_step):
            CallRun.objects.create(memory_id=memory_id, prefix=prefix, last_step=last_step)
    return recorded


def _with_known_answers(
    messages: Iterable[ChatMessage], known: Iterable[ChatMessage]
) -> list[ChatMessage]:
    """Return messages in which each answer in another spelling is replaced by the stored one."""
    answers = {digest_of(each): each for each in known if isinstance(each, AiMessage)}

    def as_known(message: ChatMessage) -> ChatMessage:
        if not isinstance(message, AiMessage) or not answers:
            return message
        answer = answers.get(digest_of(message), message)
        return message if answer == message else answer  # which is counted already

    return [*map(as_known, messages)]
