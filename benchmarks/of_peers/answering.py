"""The peer's side: a process of the peers' environment that makes a call on request.

A peer's script is started with the folder for its database. It prints a line when it is ready, and
reads the name of a call from each line of its input. It prints the milliseconds that the call took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

import tiktoken

Calls = Mapping[str, Callable[[], Awaitable[object]]]

encode = tiktoken.get_encoding("o200k_base").encode_ordinary


def answer(calls_in: Callable[[str], Awaitable[Calls]]) -> None:
    """Answer requests with the calls of a peer, which `calls_in` returns for a folder."""
    asyncio.run(_answer(calls_in))


async def _answer(calls_in: Callable[[str], Awaitable[Calls]]) -> None:
    calls = await calls_in(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        call = calls[line.strip()]
        start = time.perf_counter()
        await call()
        print(1000 * (time.perf_counter() - start), flush=True)
