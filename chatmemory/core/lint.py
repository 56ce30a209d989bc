"""Check a list of messages by those rules of providers that a trimmed window can break.

OpenAI's chat completions: a tool message answers a call of the assistant message before it, and
every call is answered before the next message. Anthropic's messages: the same for `tool_use` and
`tool_result`, and the first message must be the user's (the system prompt is not a message).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from chatmemory.core.messages import MessageType
from chatmemory.core.texts import named

_NAMES: dict[str, str] = {
    MessageType.USER: "User",
    MessageType.AI: "AI",
    MessageType.TOOL_EXECUTION_RESULT: "a tool result",
    MessageType.CUSTOM: "a custom message",
}


class PromptMessage(NamedTuple):
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


def verdicts(turns: Sequence[PromptMessage]) -> tuple[Verdict, ...]:
    """Return each provider's verdict, with the first problem that it would report."""
    pairing = next(_unpaired(turns), "")
    return Verdict("OpenAI", pairing), Verdict("Anthropic", next(_opening(turns), pairing))


def _unpaired(turns: Sequence[PromptMessage]) -> Iterator[str]:
    """Yield the problems of tool calls and their results, counted per call rather than by id."""
    call, missing = 0, 0
    for seq, type, calls in turns:
        if type is MessageType.TOOL_EXECUTION_RESULT:
            if not missing:
                yield f"No. Tool result {named(seq)} does not follow its call."
            missing = max(0, missing - 1)
            continue
        if missing:
            yield f"No. Tool call {named(call)} is not answered before {named(seq)}."
        call, missing = seq, calls
    if missing:
        yield f"Not yet. Tool call {named(call)} is waiting for its results."
    if not turns:
        yield "No. There is nothing to send."


def _opening(turns: Sequence[PromptMessage]) -> Iterator[str]:
    """Yield the problem of the first message, system messages aside."""
    before = sum(1 for _ in takewhile(lambda turn: turn.type is MessageType.SYSTEM, turns))
    if not turns:
        return
    if before == len(turns):
        yield "No. There is only a system message."
        return
    seq, type, calls = turns[before]
    if type is not MessageType.USER:
        name = "a tool call" if calls else _NAMES[type]
        which = "The first message after system" if before else "The first message"
        yield f"No. {which} is {name} ({named(seq)}); it must be User."
