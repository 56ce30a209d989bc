"""LangChain: SQLChatMessageHistory in a SQLite file, trimmed to a token window by trim_messages."""

from __future__ import annotations

import warnings
from itertools import count, islice

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages

from benchmarks.of_peers.answering import Calls, answer, encode
from benchmarks.texts import MESSAGES, TOKENS_PER_MESSAGE, WINDOW_TOKENS, texts

with warnings.catch_warnings(action="ignore"):  # the package warns that nobody maintains it
    from langchain_community.chat_message_histories import SQLChatMessageHistory


async def calls_in(folder: str) -> Calls:
    lines, turns = texts(), count()
    history = SQLChatMessageHistory("long", connection=f"sqlite:///{folder}/langchain.sqlite3")
    history.add_messages([_message(next(turns), text) for text in islice(lines, MESSAGES)])

    async def turn() -> None:
        history.add_message(_message(next(turns), next(lines)))
        history.add_message(_message(next(turns), next(lines)))
        trim_messages(
            history.messages,
            max_tokens=WINDOW_TOKENS,
            token_counter=_tokens,
            strategy="last",
            start_on="human",
        )

    return {"turn": turn}


def _message(n: int, text: str) -> BaseMessage:
    return (HumanMessage, AIMessage)[n % 2](text)


def _tokens(messages: list[BaseMessage]) -> int:
    return sum(TOKENS_PER_MESSAGE + len(encode(str(each.content))) for each in messages)


if __name__ == "__main__":
    answer(calls_in)
