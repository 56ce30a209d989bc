"""LlamaIndex: Memory in a SQLite file, with its defaults.

Its queue of active messages is its token window: the part of `token_limit` that the default
`chat_history_token_ratio` leaves for it. Older messages are archived. Here they are written into
its store directly, because its queue would take very long to archive them.
"""

from __future__ import annotations

from itertools import count, islice

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from benchmarks.of_peers.answering import Calls, answer, encode
from benchmarks.texts import MESSAGES, WINDOW_TOKENS, texts

RATIO = 0.7
ACTIVE = 40  # messages; the next turns archive the first of them
SLICE = 500  # messages in one statement


async def calls_in(folder: str) -> Calls:
    lines, turns = texts(), count()
    memory = Memory.from_defaults(
        session_id="long",
        token_limit=int(WINDOW_TOKENS / RATIO),
        chat_history_token_ratio=RATIO,
        tokenizer_fn=encode,
        async_database_uri=f"sqlite+aiosqlite:///{folder}/llama_index.sqlite3",
    )
    for _ in range(MESSAGES // SLICE):
        old = [_message(next(turns), text) for text in islice(lines, SLICE)]
        await memory.sql_store.add_messages("long", old, MessageStatus.ARCHIVED)
    await memory.aput_messages([_message(next(turns), text) for text in islice(lines, ACTIVE)])

    async def turn() -> None:
        await memory.aput(_message(next(turns), next(lines)))
        await memory.aput(_message(next(turns), next(lines)))
        await memory.aget()

    return {"turn": turn}


def _message(n: int, text: str) -> ChatMessage:
    return ChatMessage(role=("user", "assistant")[n % 2], content=text)


if __name__ == "__main__":
    answer(calls_in)
