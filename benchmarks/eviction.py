"""Measure the three statements of the rule of eviction, in CPU time: what sharing one would cost.

    python -m benchmarks.eviction

ADR 5 has the figures. The history is 4,000 messages of real words in the shape of tau-bench's
conversations, calls and results included, under one limit. The least of 20 turns counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice

TURNS = 20
MESSAGES = 4_000
LIMIT = 4_000


def least(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least CPU time of each call in milliseconds. The calls take turns."""
    times: dict[str, float] = {}
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            spent = 1000 * (time.process_time() - start)
            times[name] = min(spent, times.get(name, spent))
    return times


def main() -> None:
    from benchmarks.texts import texts
    from chatmemory import AiMessage, SystemMessage, ToolExecutionRequest, UserMessage
    from chatmemory.messages.message import ChatMessage, ToolExecutionResultMessage
    from chatmemory.recall.history import history_from
    from chatmemory.recall.loads import Loads
    from chatmemory.recall.tallies import _PlainHistory
    from chatmemory.windows.policies import TokenWindow

    lines = texts()
    call = AiMessage(None, (ToolExecutionRequest("1", "find", '{"id": "A-1182"}'),))
    result = partial(ToolExecutionResultMessage, "1", "find")
    shape: list[Callable[[str], ChatMessage]] = [UserMessage, lambda _: call, result, AiMessage]
    spoken = (make(next(lines)) for make in islice(cycle(shape), MESSAGES))
    said: list[ChatMessage] = [SystemMessage("Be brief."), *spoken]
    history = history_from(said, [80] * len(said), 3, range(1, len(said) + 1))
    policy = TokenWindow(LIMIT)
    loads, plain = Loads(history.entries), _PlainHistory(history, policy)
    loads.departures(policy)  # sums the costs, once for all limits

    def starts_from_loads() -> list[int]:
        """The first message of each window, made of when messages left."""
        left, first, found = loads.departures(policy).at, 1, []
        for place in range(1, len(said)):
            while left[first] < place:
                first += 1
            found.append(first - 1)
        return found

    assert starts_from_loads() == plain._firsts(policy)
    times = least(
        {
            "the rule (eviction)": lambda: loads._by_rule(policy),
            "when messages leave (loads)": lambda: loads.departures(policy),
            "where windows begin (tallies)": lambda: plain._firsts(policy),
            "where windows begin, made of loads": starts_from_loads,
        }
    )
    own = times["where windows begin (tallies)"]
    for name, spent in times.items():
        print(f"{spent:8.2f} ms  {spent / own:6.1f} times  {name}")


if __name__ == "__main__":
    main()
