"""Check a list of messages by those rules of providers that a trimmed window can break.

OpenAI's chat completions: a tool message answers a call of the assistant message before it, and
every call is answered before the next message. Anthropic's messages: the same for `tool_use` and
`tool_result`, and the first message must be the user's (the system prompt is not a message).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chatmemory.core.messages import MessageType
from chatmemory.core.naming import named

_NAMES = {
    MessageType.USER: "User",
    MessageType.AI: "AI",
    MessageType.TOOL_EXECUTION_RESULT: "a tool result",
    MessageType.CUSTOM: "a custom message",
}


@dataclass(frozen=True)
class Turn:
    """One message as far as the rules need it; `calls` is its number of tool calls."""

    seq: int
    type: MessageType
    calls: int = 0


@dataclass(frozen=True)
class Verdict:
    """One provider's answer to a list of messages; `problem` is empty if it accepts the list."""

    provider: str
    problem: str = ""

    @property
    def accepts(self) -> bool:
        return not self.problem


def verdicts(turns: Sequence[Turn]) -> tuple[Verdict, ...]:
    """Return each provider's verdict, with the first problem that it would report."""
    pairing = [*_unpaired(turns)]
    opening = [*_opening(turns)]
    return (
        Verdict("OpenAI", next(iter(pairing), "")),
        Verdict("Anthropic", next(iter(opening + pairing), "")),
    )


def _unpaired(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the problems of tool calls and their results, counted per call rather than by id."""
    call, missing = 0, 0
    is_empty = True
    for turn in turns:
        is_empty = False
        if turn.type is MessageType.TOOL_EXECUTION_RESULT:
            if not missing:
                yield f"No. Tool result {named(turn.seq)} does not follow its call."
            missing = max(0, missing - 1)
            continue
        if missing:
            yield f"No. Tool call {named(call)} is not answered before {named(turn.seq)}."
        call, missing = turn.seq, turn.calls
    if missing:
        yield f"Not yet. Tool call {named(call)} is waiting for its results."
    if is_empty:
        yield "No. There is nothing to send."


def _opening(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the problem of the first message, system messages aside."""
    first = next((turn for turn in turns if turn.type is not MessageType.SYSTEM), None)
    if first is None:
        yield "No. There is only a system message."
    elif first.type is not MessageType.USER:
        name = "a tool call" if first.calls else _NAMES[first.type]
        which = f"{name} ({named(first.seq)})"
        yield f"No. The first message after system is {which}; it must be User."
