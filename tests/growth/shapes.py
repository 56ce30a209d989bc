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
from chatmemory.windows.compaction import summary_message

MOST = 2.5  # times the CPU for twice the size
SECONDS = 0.02  # what takes less tells nothing


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


def assert_grows_in_line(prepared: Callable[[int], Callable[[], object]], n: int) -> None:
    """Fail if twice the size takes more than 2.5 times the CPU.

    What is `prepared` for a size is called in turn. A failure is looked at more closely, as other
    processes of a machine disturb a measurement: by the best of three, then at twice the size.
    """
    tried = []
    for size, times in ((n, 1), (n, 3), (2 * n, 3)):
        one, two = (best_of(times, prepared(each)) for each in (size, 2 * size))
        if two <= MOST * max(one, SECONDS):
            return
        tried.append(f"{size:,}: {one:.3f} s, {2 * size:,}: {two:.3f} s")
    raise AssertionError("; ".join(tried))


def best_of(times: int, act: Callable[[], object]) -> float:
    return min(_seconds(act) for _ in range(times))


def _seconds(act: Callable[[], object]) -> float:
    began = process_time()
    act()
    return process_time() - began
