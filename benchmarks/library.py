"""Measure the memories of the library, without a database, against counting tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.measuring import Figure, compared, in_turns
from benchmarks.texts import texts

ROUNDS = 2_000
STARTS = 5
TIMED = """
import time, tiktoken
from chatmemory import OpenAiTokenCountEstimator, UserMessage
start = time.process_time()
{call}
print(1000 * (time.process_time() - start))
"""
FIRST = {
    "first token count": (
        'OpenAiTokenCountEstimator("gpt-4o").estimate_token_count_in_message(UserMessage("hello"))'
    ),
    "tiktoken.get_encoding": 'tiktoken.get_encoding("o200k_base")',
}


def figures(folder: str) -> Iterator[Figure]:
    from chatmemory import MessageWindowChatMemory, TokenWindowChatMemory, UserMessage
    from chatmemory.messages.estimators import estimator_for

    lines = texts()
    estimator = estimator_for("gpt-4o")
    tokens = TokenWindowChatMemory(max_tokens=8_000)
    messages = MessageWindowChatMemory(max_messages=20)
    tokens.extend(UserMessage(next(lines)) for _ in range(200))
    calls: dict[str, Callable[[], object]] = {
        "token window": lambda: tokens.add(UserMessage(next(lines))),
        "message window": lambda: messages.add(UserMessage(next(lines))),
        "tokenising": lambda: estimator.estimate_token_count_in_message(UserMessage(next(lines))),
    }
    times = in_turns(calls, ROUNDS)
    for what, limit in (("token window", 2.5), ("message window", 1.0)):
        both = {f"{what} add": times[what], "tokenising a message": times["tokenising"]}
        yield compared(f"in memory, an add to a {what}", limit, both)
    yield compared("in a new process, the first token count", 1.3, _first_times(folder))


def _first_times(folder: str) -> dict[str, float]:
    """Return the median milliseconds of CPU in new processes, with the encoding already
    unpacked.
    """
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": os.path.join(folder, "encodings")}

    def milliseconds(call: str) -> float:
        command = [sys.executable, "-c", TIMED.format(call=call)]
        return float(subprocess.check_output(command, env=environment))

    milliseconds(FIRST["first token count"])  # unpacks it
    starts = [{name: milliseconds(call) for name, call in FIRST.items()} for _ in range(STARTS)]
    return {name: median(each[name] for each in starts) for name in FIRST}
