"""Windows as letters: S, T, U and V are system messages, C calls a tool, R and Q answer it, D calls
two tools, A is said by the model, and all others by a user.
"""

from __future__ import annotations

from collections.abc import Callable

from chatmemory import (
    AiMessage,
    ChatMessage,
    Policy,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.windows.transitions import admit
from chatmemory.windows.window import Entry, Window

CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
CALLS = AiMessage(None, (*CALL.tool_execution_requests, ToolExecutionRequest("2", "find", "{}")))
RESULT = ToolExecutionResultMessage("1", "find", "found")
MESSAGES: dict[str, ChatMessage] = {
    **{letter: SystemMessage(f"Be {letter}.") for letter in "STUV"},
    "C": CALL,
    "D": CALLS,
    "R": RESULT,
    "Q": ToolExecutionResultMessage("1", "find", "also found"),
    "A": AiMessage("hi"),
}
FATES = {"CAPACITY": "c", "ORPHANED": "o", "REPLACED": "r", "TURN": "t", "INTERRUPTED": "i"}


def messages(letters: str) -> list[ChatMessage]:
    return [MESSAGES.get(letter, UserMessage(letter)) for letter in letters]


def entries(letters: str, tokens: int = 10) -> list[Entry]:
    return [Entry.of(message, tokens) for message in messages(letters)]


def entry(letter: str, tokens: int = 10) -> Entry:
    return entries(letter, tokens)[0]


def story(
    before: str,
    arriving: str,
    policy: Policy,
    tokens: int = 10,
    policy_again: Callable[[], Policy] | None = None,
) -> str:
    """Tell what an add of a message with so many tokens does: what becomes of each message, the
    arriving one last, and the window behind it. A dot is a message that stays.
    """
    said = [*entries(before), entry(arriving, tokens)]
    window = Window(said[:-1])
    change = admit(window, said[-1], policy, policy_again)
    assert list(window) == said[:-1]
    if change.ignored:
        return "ignored"
    change.apply_to(window)
    reasons = {each.entry: FATES[each.reason] for each in change.evictions}
    letters = dict(zip(said, before + arriving, strict=True))
    return f"{''.join(reasons.get(e, '.') for e in said)} {''.join(letters[e] for e in window)}"
