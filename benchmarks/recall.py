"""Measure what recall costs for 10,000 messages, as ratios to counting their tokens once.

.venv/bin/python -m benchmarks.recall
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

MESSAGES = 10_000
WORDS = ["where", "is", "my", "order", "the", "parcel", "was", "shipped", "to", "Lyon", "on"]


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage
    from chatmemory.core.estimators import count_tokens, estimator_for
    from chatmemory.core.recall.comparison import compare
    from chatmemory.core.recall.curves import curve_of
    from chatmemory.core.recall.histories import history_of

    chance = random.Random(1)
    said = []
    for number in range(MESSAGES):
        words = chance.choices(WORDS, k=40) + [f"A-{chance.randrange(3_000)}" for _ in range(3)]
        said.append((AiMessage if number % 2 else UserMessage)(" ".join(words)))
    estimator = estimator_for("gpt-4o")
    estimator.estimate_token_count_in_text("loads the encoding")
    counting = seconds(lambda: [count_tokens(estimator, each) for each in said])
    curve = seconds(lambda: curve_of(history_of(said, estimator), TokenWindow(1)))
    policies = [MessageWindow(20), TokenWindow(1_000), TokenWindow(4_000), None]
    history = history_of(said, estimator)
    four = seconds(lambda: [compare(history, policy) for policy in policies])
    print(f"tokenising {MESSAGES:,} messages: {counting:.2f} s")
    print(f"their recall curve, after that: {curve / counting:.2f} times as long")
    print(f"four policies, after that: {four:.2f} s")


if __name__ == "__main__":
    main()
