"""Finds the steps at which providers began to reject the window of a conversation. Windows that
were repaired later are included.

Only windows that a request could send are examined: after a user message, or after the last result
of the preceding tool calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from chatmemory.flag import Case
from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import turns_by_provider
from chatmemory.lint.turns import Turn
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import AiMessage, ChatMessage, MessageType
from chatmemory.messages.message import ToolExecutionResultMessage as Result
from chatmemory.reading.passage import Held, Passage, PastWindow
from chatmemory.recall.prompts import Refusals
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosis import MARKS, mark, refused_rules

_NAMES = {label: name for name, label in PROVIDERS.items()}


def refused(passage: Passage, state: JsonDict) -> Iterable[Case]:
    """Return the cases of a conversation up to the end of the passage. A case is a step at which
    one or more providers began to reject the window.

    - The detail of a case has a text such as `openai:orphan_result!` for each of these providers
      and each broken rule. Commas separate the texts.
    - `passage` has the newest steps of the ledger.
    - `state` has the cases of earlier steps. This function adds the new cases to `state`.
    """
    cases = [Case(*each) for each in state.get("cases", ())]
    known = {*state.get("refused", ())}
    requests: _Requests | None = None  # rendered only if a request could follow a step
    for step, window in _examined(passage):
        requests = requests or _Requests(passage)
        names = requests.refused_by(window)
        if new := names - known:
            detail = requests.marks(window, new)
            if detail:
                cases.append(Case(step, detail))
        known = names
    state["cases"], state["refused"] = [list(each) for each in cases], sorted(known)
    return cases


def _examined(passage: Passage) -> Iterator[tuple[int, Sequence[Held]]]:
    """Yield the windows that a request could send, each with its step."""
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


class _Requests:
    """The windows of a passage as providers would receive them. Each message is rendered once for
    all windows.
    """

    def __init__(self, passage: Passage) -> None:
        numbers = list(passage.messages)
        self._places = {seq: n for n, seq in enumerate(numbers)}
        self._turns = turns_by_provider(list(passage.messages.values()), PROVIDERS, numbers)
        plain = [Turn.of(n, seq, passage.messages[seq]) for seq, n in self._places.items()]
        self._refusals = Refusals(plain, self._turns)

    def refused_by(self, window: Sequence[Held]) -> set[str]:
        """Return the names of the providers that would reject a window."""
        positions = dict.fromkeys(self._places_of(window))
        return {_NAMES[label] for label in self._refusals.of(positions)} if positions else set()

    def marks(self, window: Sequence[Held], providers: Iterable[str]) -> str:
        """Return why these providers reject a window, such as `openai:orphan_result!`; separated by
        commas.
        """
        shown = self._places_of(window)
        return ",".join(
            sorted(
                mark(name, rule, "refused")
                for name in providers
                for rule in refused_rules([self._turns[name][n] for n in shown], name)
            )
        )

    def _places_of(self, window: Sequence[Held]) -> list[int]:
        return [self._places[each.seq] for each in window if each.seq in self._places]


def counting(rule: str = "") -> Callable[[str, str], bool]:
    """Return a function that tells whether a past rejection of a window still counts. A rejection
    counts if one of the rejecting providers is in use now.

    The function takes a conversation's ID and the detail of a case. The detail names one or more
    providers, such as `openai:orphan_result!`. With a `rule`, only rejections for this rule count.
    """
    made = choices()
    signs = "".join(MARKS.values())

    def counts(memory_id: str, detail: str) -> bool:
        names = made.of(memory_id).models
        marks = (each.rstrip(signs).partition(":") for each in detail.split(","))
        return any(name in names and rule in ("", broken) for name, _, broken in marks)

    return counts
