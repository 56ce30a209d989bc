"""Measure what recall costs for a long history, against counting its tokens once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from benchmarks.measuring import QUICK, Figure, compared, in_turns
from benchmarks.texts import texts

MESSAGES = 2_000 if QUICK else 10_000
ROUNDS = 5


def figures(folder: str) -> Iterator[Figure]:

    from chatmemory import AiMessage, ChatMessage, MessageWindow, TokenWindow, UserMessage
    from chatmemory.core.estimators import count_tokens, estimator_for
    from chatmemory.core.recall.comparison import curve_of, replay
    from chatmemory.core.recall.history import history_of
    from chatmemory.core.recall.prompts import Refusals

    estimator = estimator_for("gpt-4o")
    lines = list(islice(texts(), MESSAGES))
    policies = [MessageWindow(20), TokenWindow(1_000), TokenWindow(4_000), None]

    def said() -> list[ChatMessage]:
        """The messages, which nobody has counted yet."""
        return [(UserMessage, AiMessage)[n % 2](line) for n, line in enumerate(lines)]

    def count() -> None:
        for message in said():
            count_tokens(estimator, message)

    known = said()
    history = history_of(known, estimator)

    def compare_four() -> None:
        refusals = Refusals(history)
        for policy in policies:
            replay(history, policy, refusals)

    times = in_turns(
        {
            "curve": lambda: curve_of(history_of(known, estimator), TokenWindow(1)),
            "four": compare_four,
            "tokenising": count,
        },
        ROUNDS,
    )
    whole = f"of {MESSAGES:,} messages"
    tokenising = {"tokenising": times["tokenising"]}
    yield compared(f"recall curve {whole}", 2, {"curve": times["curve"]} | tokenising)
    yield compared(f"four policies {whole}", 2, {"replays": times["four"]} | tokenising)
