"""Measure the memories of the library, without a database, against counting tokens.

.venv/bin/python -m benchmarks.library
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measuring import Figure, compared, in_turns, show
from benchmarks.texts import texts

ROUNDS = 2_000


def figures(folder: str) -> Iterator[Figure]:
    from chatmemory import MessageWindowChatMemory, TokenWindowChatMemory, UserMessage
    from chatmemory.core.estimators import estimator_for

    said = texts()
    estimator = estimator_for("gpt-4o")
    tokens = TokenWindowChatMemory(max_tokens=8_000)
    messages = MessageWindowChatMemory(max_messages=20)
    tokens.extend(UserMessage(next(said)) for _ in range(200))
    calls: dict[str, Callable[[], object]] = {
        "token window": lambda: tokens.add(UserMessage(next(said))),
        "message window": lambda: messages.add(UserMessage(next(said))),
        "tokenising": lambda: estimator.estimate_token_count_in_message(UserMessage(next(said))),
    }
    times = in_turns(calls, ROUNDS)
    for what, limit in (("token window", 2.5), ("message window", 1.0)):
        both = {f"{what} add": times[what], "tokenising a message": times["tokenising"]}
        yield compared(f"in memory, an add to a {what}", limit, both)


if __name__ == "__main__":
    show(figures(""))
