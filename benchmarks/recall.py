"""Measure the cost of recall, against counting the tokens once, for one long history and for
many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from benchmarks.measuring import QUICK, Figure, compared, in_turns
from benchmarks.texts import texts

if TYPE_CHECKING:
    from chatmemory import ChatMessage

MESSAGES = 2_000 if QUICK else 10_000
ROUNDS = 5
CONVERSATIONS = 100
REPLAYED = 2_000


def figures(folder: str) -> Iterator[Figure]:
    from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage
    from chatmemory.messages.estimators import count_tokens, estimator_for
    from chatmemory.recall.comparison import curve_of, replay
    from chatmemory.recall.history import history_of
    from chatmemory.recall.prompts import Refusals

    estimator = estimator_for("gpt-4o")
    lines = list(islice(texts(), MESSAGES))
    policies = [MessageWindow(20), TokenWindow(1_000), TokenWindow(4_000), None]

    def uncounted_messages() -> list[ChatMessage]:
        """The messages, not yet counted."""
        return [(UserMessage, AiMessage)[n % 2](line) for n, line in enumerate(lines)]

    def count() -> None:
        for message in uncounted_messages():
            count_tokens(estimator, message)

    known = uncounted_messages()
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
    yield compared(f"a low mark, in a replay of {REPLAYED:,} messages", 2, _low_mark())
    several = f"frontier of {CONVERSATIONS} conversations"
    yield compared(several, 2, _frontier(support_conversations))
    yield compared(f"{several} with tool results", 2, _frontier(agents_conversations))


def _low_mark() -> dict[str, float]:
    from chatmemory import MessageWindow
    from chatmemory.messages.estimators import estimator_for
    from chatmemory.recall.comparison import replay
    from chatmemory.recall.history import history_of

    said = (message for each in support_conversations() for message in each[1:])
    history = history_of(list(islice(said, REPLAYED)), estimator_for("gpt-4o"))
    with_mark, without = MessageWindow(100, low_water="0.5"), MessageWindow(100)
    calls = {
        "with it": lambda: replay(history, with_mark),
        "without it": lambda: replay(history, without),
    }
    return in_turns(calls, ROUNDS)


def _frontier(conversations: Callable[[], Iterator[list[ChatMessage]]]) -> dict[str, float]:
    from chatmemory import TokenWindow
    from chatmemory.messages.estimators import estimator_for
    from chatmemory.recall.frontier import figures_of, tried_of_kind
    from chatmemory.recall.history import history_of

    estimator, tried = estimator_for("gpt-4o"), tried_of_kind(TokenWindow(1))
    counted = [history_of(each, estimator) for each in conversations()]

    def count_again() -> None:
        for each in conversations():
            history_of(each, estimator)

    def find() -> None:
        for each in counted:
            figures_of(each, tried, TokenWindow(2_000))

    return in_turns({"frontier": find, "tokenising": count_again}, ROUNDS)


def support_conversations() -> Iterator[list[ChatMessage]]:
    """Conversations of a bot in which order numbers come up again, not yet counted."""
    from chatmemory import AiMessage, SystemMessage, UserMessage

    lines = texts()
    rules = " ".join(islice(lines, 20))
    for number in range(CONVERSATIONS):
        messages: list[ChatMessage] = [SystemMessage(rules)]
        for turn, line in enumerate(islice(lines, 24)):
            fact = f" A-{number}-{turn // 6}"
            messages.append((UserMessage, AiMessage)[turn % 2](line + fact))
        yield messages


def agents_conversations() -> Iterator[list[ChatMessage]]:
    """Conversations with long tool results, of which old ones can be cleared, not yet counted."""
    from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage

    lines = texts()
    for conversation in support_conversations():
        found = conversation[:1]
        for turn, question in enumerate(conversation[1::2]):
            call = ToolExecutionRequest(str(turn), "find", "{}")
            result = ToolExecutionResultMessage(str(turn), "find", " ".join(islice(lines, 5)))
            found += [question, AiMessage(None, (call,)), result]
        yield found
