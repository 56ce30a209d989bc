"""The steps at which providers began to refuse the window of a conversation, also if it was
repaired later.

A window is examined where a request could follow: after a user message, and after the last result
of the preceding tool calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chatmemory.flag import Case
from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import turns_by_provider
from chatmemory.lint.turns import Turn
from chatmemory.messages.message import AiMessage, ChatMessage, MessageType
from chatmemory.messages.message import ToolExecutionResultMessage as Result
from chatmemory.reading.passage import Held, Passage, PastWindow
from chatmemory.recall.prompts import Refusals
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosis import MARKS, diagnose

_NAMES = {label: name for name, label in PROVIDERS.items()}
_REFUSED = MARKS["refused"]


def refused(passage: Passage, state: dict[str, Any]) -> Iterable[Case]:
    """Return the cases in which some providers began to refuse a window, with the rules it broke as
    the doctor's marks: `openai:orphan_result!`.
    """
    cases = [Case(*each) for each in state.get("cases", ())]
    known = {*state.get("refused", ())}
    refusing = _refusing(passage)
    for step, window in _examined(passage):
        names = refusing(window)
        if new := names - known:
            detail = _marks(passage, window, new)
            if detail:
                cases.append(Case(step, detail))
        known = names
    state["cases"], state["refused"] = [list(each) for each in cases], sorted(known)
    return cases


def _examined(passage: Passage) -> Iterator[tuple[int, Sequence[Held]]]:
    """Yield the windows that a request could send, each with the step that made it."""
    open_calls: set[str | None] = set()
    before: int | None = None
    last: PastWindow | None = None
    is_ready = False
    for step, window, _ in passage.walk():
        if is_ready and before is not None and before > passage.after:
            yield before, list(window.held.values())
        is_ready = False
        for each in step.said:
            message = passage.messages.get(each.seq)
            if message is not None:
                is_ready = _is_ready_after(message, open_calls)
        before, last = step.n, window
    if is_ready and last is not None and before is not None and before > passage.after:
        yield before, list(last.held.values())


def _is_ready_after(message: ChatMessage, open_calls: set[str | None]) -> bool:
    if isinstance(message, AiMessage):
        open_calls.clear()
        open_calls |= {call.id for call in message.tool_execution_requests if call is not None}
        return False
    if isinstance(message, Result):
        open_calls.discard(message.id)
        return not open_calls
    if message.type is MessageType.USER:
        open_calls.clear()
        return True
    return False


def _refusing(passage: Passage) -> Callable[[Sequence[Held]], set[str]]:
    """Return the function that names the providers which would refuse a window."""
    messages, numbers = list(passage.messages.values()), list(passage.messages)
    places = {seq: n for n, seq in enumerate(numbers)}
    plain = [Turn.of(places[seq], seq, each) for seq, each in passage.messages.items()]
    refusals = Refusals(plain, turns_by_provider(messages, PROVIDERS, numbers))

    def names(window: Sequence[Held]) -> set[str]:
        positions = {places[each.seq]: None for each in window if each.seq in places}
        return {_NAMES[label] for label in refusals.of(positions)} if positions else set()

    return names


def _marks(passage: Passage, window: Sequence[Held], providers: set[str]) -> str:
    """Return the marks of the rules for which these providers refuse a window, in commas."""
    shown = [each for each in window if each.seq in passage.messages]
    messages = [passage.messages[each.seq] for each in shown]
    found = diagnose(messages, [each.seq for each in shown], for_answers=True)
    marks = {mark for each in found.problems for mark in each.marks()}
    own = tuple(f"{name}:" for name in providers)
    return ",".join(sorted(m for m in marks if m.startswith(own) and m.endswith(_REFUSED)))


def counting() -> Callable[[str, str], bool]:
    """Return whether a case is one of a provider in use."""
    made = choices()

    def counts(memory_id: str, detail: str) -> bool:
        names = made.of(memory_id).models
        return any(mark.partition(":")[0] in names for mark in detail.split(","))

    return counts
