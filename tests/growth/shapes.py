"""Windows of every allowed shape, and the growth of the time that readers of them take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time

from chatmemory import (
    AiMessage,
    ChatMessage,
    MessageWindow,
    Policy,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.recall import facts, reminded, requests, user_texts, value_search
from chatmemory.windows.compaction import summary_message

TIMES = 4  # as large is one size as the other
MOST = 1.25  # times what is in line with that
SECONDS = 0.05  # what takes less tells nothing

KEPT = (
    facts.facts_in,
    requests.asked_in,
    reminded.reminded_in,
    user_texts.user_text,
    value_search.searched,
)


def call(*ids: str) -> AiMessage:
    return AiMessage(None, tool_execution_requests=[ToolExecutionRequest(id, "f") for id in ids])


def result(id: str) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "f", f"the result is R-{id}")


def one_call(n: int) -> list[ChatMessage]:
    ids = [f"{i:05}" for i in range(n)]
    return [UserMessage("go"), call(*ids), *map(result, ids)]


def calls(n: int) -> list[ChatMessage]:
    return [UserMessage("go"), *(call(f"{i:05}") for i in range(n))]


def orphans(n: int) -> list[ChatMessage]:
    return [UserMessage("go"), *(result(f"{i:05}") for i in range(n))]


def terms(n: int) -> list[ChatMessage]:
    """Terms that all messages name one after the other, and a user names all of them at the end."""
    named = [f"A-{i:05}" for i in range(n)]
    return [*(UserMessage(f"{each}?") for each in named), UserMessage(" ".join(named))]


def summaries(n: int) -> list[ChatMessage]:
    return [summary_message(f"So far it is about A-{i:05}.") for i in range(n)]


def equal_texts(n: int) -> list[ChatMessage]:
    return [UserMessage("It is A-1182.") for _ in range(n)]


SHAPES: dict[str, Callable[[int], Sequence[ChatMessage]]] = {
    "one call with n results": one_call,
    "n calls": calls,
    "n orphans": orphans,
    "n terms": terms,
    "n summaries": summaries,
    "n equal texts": equal_texts,
}
POLICIES: dict[str, Callable[[int], Policy]] = {
    "plain": MessageWindow,
    "low_water": lambda limit: MessageWindow(limit, low_water=0.5),
    "snap_to_user": lambda limit: MessageWindow(limit, snap_to_user=True),
}


def assert_grows_in_line(
    prepared: Callable[[int], Callable[[], object]], n: int, times: int = TIMES
) -> None:
    """Fail if four times the size takes more than five times the CPU; `n` is the larger size.

    What is `prepared` for a size is called in turn. A failure is looked at more closely, as other
    processes of a machine disturb a measurement: by the best of three, then by the best of nine at
    twice the size.
    """
    tried = []
    for size, tries in ((n, 1), (n, 3), (2 * n, 9)):
        large = best_of(tries, prepared(size))
        if large <= SECONDS:
            return
        small = best_of(tries, prepared(size // times))
        if large <= MOST * times * small:
            return
        tried.append(f"{size // times:,}: {small:.4f} s, {size:,}: {large:.4f} s")
    raise AssertionError("; ".join(tried))


def best_of(times: int, act: Callable[[], object]) -> float:
    return min(seconds_of(act) for _ in range(times))


def seconds_of(act: Callable[[], object]) -> float:
    """The CPU of one call, on average of as many calls as a clock can tell apart. Each call reads
    all texts anew: a process keeps what it read of a thousand messages.
    """
    taken, calls = 0.0, 0
    while not calls or taken < SECONDS / TIMES:
        for each in KEPT:
            each.forget()
        began = process_time()
        act()
        taken += process_time() - began
        calls += 1
    return taken / calls
