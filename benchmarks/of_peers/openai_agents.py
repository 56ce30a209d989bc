"""The OpenAI Agents SDK: SQLiteSession, with a token window that the program counts itself.

The session has no token window. The program reads all items and counts from the newest one on.
"""

from __future__ import annotations

from itertools import count, islice
from typing import Any

from agents import SQLiteSession

from benchmarks.of_peers.answering import Calls, answer, encode
from benchmarks.texts import MESSAGES, TOKENS_PER_MESSAGE, WINDOW_TOKENS, texts


async def calls_in(folder: str) -> Calls:
    lines, turns = texts(), count()
    short = SQLiteSession("short", f"{folder}/openai_agents.sqlite3")
    long = SQLiteSession("long", f"{folder}/openai_agents.sqlite3")
    await long.add_items([_item(next(turns), text) for text in islice(lines, MESSAGES)])

    async def add(session: SQLiteSession = short) -> None:
        await session.add_items([_item(next(turns), next(lines))])

    async def turn() -> None:
        await add(long)
        await add(long)
        _window(await long.get_items())

    return {"add": add, "turn": turn}


def _item(n: int, text: str) -> Any:
    return {"role": ("user", "assistant")[n % 2], "content": text}


def _window(items: list[Any]) -> list[Any]:
    """Return the newest items that fit."""
    left = WINDOW_TOKENS
    for position in range(len(items) - 1, -1, -1):
        left -= TOKENS_PER_MESSAGE + len(encode(items[position]["content"]))
        if left < 0:
            return items[position + 1 :]
    return items


if __name__ == "__main__":
    answer(calls_in)
