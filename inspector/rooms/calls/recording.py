"""The steps of a call in the ledger: the list that a program sent, and the answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chatmemory.formats.runs import digest_of
from chatmemory.ledger.adding import counted_entries
from chatmemory.ledger.protocol import by_client, replace_window
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.validation import storable_messages
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.windows.window import Entry


class RecordedCall(NamedTuple):
    """The steps of a call: its request is the window after `step`, and the window after
    `answer_step` has the answer, too.
    """

    step: int | None = None
    answer_step: int | None = None
    request: Sequence[Entry] = ()
    answer: Sequence[Entry] = ()


def record_call(
    memory_id: str,
    request: Sequence[ChatMessage],
    answer: Sequence[ChatMessage],
    *,
    actor: str = "",
) -> RecordedCall:
    """Replace the window by the request of a call, as `update_messages` does, and add the answer.
    Raises the exceptions of `update_messages`.

    An earlier answer that comes back in another spelling counts as the stored one.
    """
    request, answer = storable_messages(request), storable_messages(answer)

    def change(recorder: Recorder) -> RecordedCall:
        known = [each.message for each in recorder.window.with_messages() if each.message]
        replace_window(recorder, _with_known_answers(request, known))
        step, size = recorder.memory.last_step, recorder.window.totals.count
        for entry in counted_entries(recorder.memory, answer):
            recorder.append(entry)
        entries = recorder.window.with_messages()
        answer_step = recorder.memory.last_step if answer else None
        return RecordedCall(step, answer_step, entries[:size], entries[size:])

    return by_client(memory_id, [*request, *answer], change, actor).write()


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
