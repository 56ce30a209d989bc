"""Where people wait: the lab at ten times the stays, and the keepers after an import.

Figures of the lab compare the same chosen conversations in two databases: in one of them other
conversations have ten times the messages. Those of keepers compare the CPU of all kept rows of a
new conversation with the CPU of its import, which counts its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import process_time
from typing import TYPE_CHECKING

from benchmarks.database import analyse
from benchmarks.measuring import QUICK, Figure, compared, in_turns
from benchmarks.server import client

if TYPE_CHECKING:
    from chatmemory import ChatMessage

CHOSEN, OTHERS = 100, 20  # conversations; the others have all the stays
FEW, MANY = (500, 5_000) if QUICK else (2_000, 20_000)  # messages of each other conversation
ROUNDS = 20
IMPORTED, MESSAGES = (5, 220)


def figures(folder: str) -> Iterator[Figure]:
    yield _keepers()
    yield compared("the lab at ten times the stays", 1.3, _lab())


def _lab() -> dict[str, float]:
    """Return the least times of the same page, before and after the others have grown."""
    from tests.long_conversations import fleet, long_conversation

    fleet(CHOSEN)
    reader = client()
    times: dict[str, float] = {}
    for name, messages in (("few stays", FEW), ("ten times as many", MANY)):
        for n in range(OTHERS):
            long_conversation(f"{messages}-{n}", messages)
        analyse()
        times |= in_turns({name: partial(reader.get, "/lab/?prefix=fleet-")}, ROUNDS)
    return dict(reversed(times.items()))


def _keepers() -> Figure:
    from chatmemory import TokenWindow, services

    importing = keeping = 0.0
    for n in range(IMPORTED):
        messages = _agent(n)
        began = process_time()
        services.import_conversation(f"imported-{n}", messages, TokenWindow(2_000))
        imported = process_time()
        services.keep(f"imported-{n}")
        importing, keeping = importing + imported - began, keeping + process_time() - imported
    each = (
        f"keepers {1000 * keeping / IMPORTED:.0f} ms, import {1000 * importing / IMPORTED:.0f} ms"
    )
    what = f"keepers of an imported conversation of {MESSAGES} messages, CPU"
    return Figure(what, keeping / importing, 10, each)


def _agent(number: int) -> list[ChatMessage]:
    from benchmarks.texts import texts
    from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage, UserMessage

    lines = texts()
    messages: list[ChatMessage] = []
    for n in range(MESSAGES // 4):
        order, call = f"A-{number}{n:03}", str(n)
        messages += [
            UserMessage(f"My order {order} has not come. {next(lines)}"),
            AiMessage(None, (ToolExecutionRequest(call, "find", f'{{"id": "{order}"}}'),)),
            ToolExecutionResultMessage(call, "find", f"{order}: sent. {next(lines)}"),
            AiMessage(f"Order {order} is on its way. {next(lines)}"),
        ]
    return messages
