"""Measure adds and turns against other libraries, which run in an environment of their own.

    make bench-peers

All write to SQLite files in one temporary folder, each library with its own settings. For an add
these are the same: a write-ahead log, and `synchronous` is FULL. A turn is two adds and a read of
the token window, in a conversation of 10,000 messages. The time of raw transactions for as many
adds, taken in turns with the same library, is printed beside each figure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

from benchmarks.add import LEVELS, Raw, add_one, fill
from benchmarks.measuring import Elsewhere, Figure, Timed, compared, in_turns
from benchmarks.texts import MESSAGES, WINDOW_TOKENS, texts

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv-peers"
ADDS = 600
TURNS = {  # by script: the description, the limit, the rounds
    "openai_agents": ("SQLiteSession and counting", 1 / 8, 100),
    "llama_index": ("LlamaIndex Memory", 1 / 5, 100),
    "langchain": ("SQLChatMessageHistory and trim_messages", 1 / 120, 20),
}


class Peer:
    """A process that makes the calls of a script of `of_peers` on request."""

    def __init__(self, script: str, process: Popen[str]) -> None:
        self._script = script
        self._process = process

    def call(self, name: str) -> Elsewhere:
        return Elsewhere(lambda: float(self._answer(name)))

    def _answer(self, name: str) -> str:
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        return self.next_line()

    def next_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._script} ended")
        return line


@contextmanager
def _peers(folder: str) -> Iterator[dict[str, Peer]]:
    """Start the processes of all peers, with tiktoken's encodings in a folder where they look for
    them.
    """
    from chatmemory.messages.estimators.encodings import encoding

    os.environ["TIKTOKEN_CACHE_DIR"] = f"{folder}/encodings"
    encoding("o200k_base")
    with ExitStack() as running:
        peers = {}
        for script in TURNS:
            command = [f"{ENVIRONMENT}/bin/python", "-m", f"benchmarks.of_peers.{script}", folder]
            process = Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True)
            peers[script] = Peer(script, running.enter_context(process))
        yield peers


def figures(folder: str) -> Iterator[Figure]:
    if not (ENVIRONMENT / "installed").exists():
        print("     not measured: other libraries, which `make bench-peers` installs", flush=True)
        return
    with _peers(folder) as peers:
        add, turn, raw = _add(), _turn(), _raw()
        for peer in peers.values():
            peer.next_line()  # the peer is ready
        other = {"SQLiteSession.add_items": peers["openai_agents"].call("add")}
        adds = compared(
            "add, against openai_agents", 2.5, in_turns({"services.add": add, **other}, ADDS)
        )
        yield _beside_raw(adds, in_turns({"a raw transaction": raw, **other}, ADDS))
        for script, (what, limit, rounds) in TURNS.items():
            other = {what: peers[script].call("turn")}
            times = in_turns({"ours": turn, **other}, rounds)
            turns = compared(f"a turn at {MESSAGES:,} messages, against {script}", limit, times)
            both: dict[str, Timed] = {"two raw transactions": lambda: (raw(), raw()), **other}
            yield _beside_raw(turns, in_turns(both, rounds))


def _beside_raw(figure: Figure, times: dict[str, float]) -> Figure:
    """Return the figure with the time of raw transactions in its detail."""
    what, milliseconds = next(iter(times.items()))
    return replace(figure, detail=f"{figure.detail}; {what} {milliseconds:.3g} ms")


def _add() -> Callable[[], object]:
    """Return a call that adds to a conversation whose window is full."""
    lines = texts()
    fill("short", lines)
    return partial(add_one, "short", lines)


def _raw() -> Callable[[], object]:
    """Return a call that writes the rows of an add by hand."""
    lines = texts()
    fill("raw", lines)
    statement, _ = LEVELS["synchronous FULL"]
    by_hand = Raw("raw", statement)
    return lambda: by_hand.add(next(lines))


def _turn() -> Callable[[], object]:
    """Return a call that takes a turn in a conversation of so many messages."""
    from chatmemory import AiMessage, TokenWindow, TokenWindowChatMemory, UserMessage, services
    from chatmemory.stores.database import DjangoChatMemoryStore

    lines = texts()
    old = [(UserMessage, AiMessage)[n % 2](next(lines)) for n in range(MESSAGES)]
    services.import_conversation("long", old, TokenWindow(WINDOW_TOKENS))
    memory = TokenWindowChatMemory("long", WINDOW_TOKENS, store=DjangoChatMemoryStore())

    def turn() -> None:
        memory.add(UserMessage(next(lines)))
        memory.add(AiMessage(next(lines)))
        memory.messages()

    return turn
