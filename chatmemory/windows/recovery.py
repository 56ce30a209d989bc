"""Recovery: tool calls that were not answered completely are hidden from the model.

A service that restarts while a tool runs leaves a tool call without its result, and providers
reject each later request. With the option `auto_recover_orphaned_tool_messages`, reads leave out
such a call and its results. The next add evicts the call and its results, unless this add brings a
tool result.

A *block* is a message with tool calls, and the results directly after this message:

- With fewer results than calls, a block is *interrupted*.
- With as many results as calls, a block is interrupted if the results have other ids than the
  calls. The ids are compared only if none is blank, no two calls have the same id, and no two
  results have the same id.
- All other blocks are complete.

Source of the rule, and of the option's name: LangChain4j's pull request 4668. The rules of pull
request 4820 are not used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
)
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.window import Entry

_RESULT = MessageType.TOOL_EXECUTION_RESULT
_BLANK = "".join(map(chr, range(33)))  # what Java's String.trim removes


class InterruptedCall(NamedTuple):
    """A message with tool calls whose results are incomplete, and the results that came.

    `calls` is the number of tool calls in the message. `is_last` means that no other message
    follows, so that the tools may still be running.
    """

    call: Entry
    results: tuple[Entry, ...]
    calls: int
    is_last: bool

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (self.call, *self.results)

    def evictions(self, because: Entry | None = None) -> Iterator[Eviction]:
        """Yield the evictions of the call and of its results. `because` is the message whose add
        removes the call; None without an add.
        """
        yield Eviction(self.call, Reason.INTERRUPTED, because)
        for result in self.results:
            yield Eviction(result, Reason.INTERRUPTED, self.call)


def interrupted_calls(entries: Sequence[Entry]) -> list[InterruptedCall]:
    """Return the interrupted tool calls of a window in order: the calls with incomplete results.
    Calls that are pinned, or have a pinned result, are left out.

    The messages of tool calls and tool results must be loaded.
    """
    found = []
    for position, call in enumerate(entries):
        if not call.has_calls:
            continue
        behind = (entries[i] for i in range(position + 1, len(entries)))
        results = tuple(takewhile(lambda each: each.type is _RESULT, behind))
        if any(entry.pinned for entry in (call, *results)):
            continue
        asked, answered = _asked(call.message), [_answered(each.message) for each in results]
        if _is_interrupted(asked, answered):
            is_last = position + len(results) + 1 == len(entries)
            found.append(InterruptedCall(call, results, len(asked), is_last))
    return found


def in_interrupted_calls(calls: Iterable[InterruptedCall]) -> set[Entry]:
    """Return the entries of these interrupted calls and of their results."""
    return {entry for each in calls for entry in each.entries}


def _is_interrupted(asked: Sequence[str], answered: Sequence[str]) -> bool:
    if len(answered) != len(asked):
        return len(answered) < len(asked)
    return _are_unique(asked) and _are_unique(answered) and {*asked} != {*answered}


def _are_unique(ids: Sequence[str]) -> bool:
    """Return whether ids are present, not blank, and all different."""
    return all(id.strip(_BLANK) for id in ids) and len({*ids}) == len(ids)


def _asked(message: ChatMessage | None) -> list[str]:
    """Return the ids of a message's tool calls, "" for a missing one."""
    assert isinstance(message, AiMessage), "a tool call needs its message"
    return [(each.id or "") if each else "" for each in message.tool_execution_requests]


def _answered(message: ChatMessage | None) -> str:
    assert isinstance(message, ToolExecutionResultMessage), "a tool result needs its message"
    return message.id or ""
