"""Compare the CPU of this version with that of another commit, by turns.

    .venv/bin/python -m benchmarks.turns dcf347be

Each commit has a process, with its own code, a SQLite database in a temporary folder and the same
packages. The processes take turns, so that other work of the machine slows both alike. A figure is
the least CPU of all rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from time import process_time

ROOT = Path(__file__).parents[1]
ROUNDS = 40
MESSAGES = 100
LONG = 10_000


def calls() -> dict[str, Callable[[], object]]:
    """Return what is measured, by name. The modules that it imports are those of the process."""
    from benchmarks.add import add_one, fill
    from benchmarks.server import client
    from benchmarks.texts import texts
    from chatmemory import AiMessage, TokenWindow, UserMessage, services
    from chatmemory.messages.estimators import estimator_for
    from chatmemory.recall.comparison import curve_of
    from chatmemory.recall.history import history_of
    from tests.long_conversations import fleet, long_conversation

    lines, names, steps = texts(), count(), count(LONG // 2)
    fill("added", lines)
    long_conversation("short", MESSAGES)
    long_conversation("long", LONG)
    fleet(MESSAGES)
    reader = client()
    said = [(UserMessage, AiMessage)[n % 2](line) for n, line in enumerate(islice(lines, 500))]

    def read(url: str) -> None:
        assert reader.get(url).status_code == 200, url

    def import_one() -> None:
        messages = [UserMessage(line) for line in islice(lines, 50)]
        services.import_conversation(f"imported-{next(names)}", messages, TokenWindow(4_000))

    return {
        "an add": partial(add_one, "added", lines),
        "an import of 50 messages": import_one,
        "the page of a conversation, read again": partial(read, "/c/short/"),
        f"a step of time travel at {LONG:,} messages": lambda: read(f"/c/long/?at={next(steps)}"),
        "the overview": partial(read, "/"),
        "a recall curve of 500 messages": lambda: curve_of(
            history_of(said, estimator_for("gpt-4o")), TokenWindow(1)
        ),
    }


def answer() -> None:
    """Measure each call whose name is read, and print its milliseconds of CPU."""
    from benchmarks.database import migrated

    with migrated():
        measured = calls()
        print("\t".join(measured), flush=True)
        for name in map(str.strip, sys.stdin):
            start = process_time()
            measured[name]()
            print(1000 * (process_time() - start), flush=True)


class Side:
    """The process of a commit, whose working tree is a folder."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--answer"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self._read().split("\t")
        self.least = dict.fromkeys(self.names, float("inf"))

    def measure(self, name: str) -> None:
        assert self._process.stdin
        print(name, file=self._process.stdin, flush=True)
        self.least[name] = min(self.least[name], float(self._read()))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout
        if line := self._process.stdout.readline().strip():
            return line
        sys.exit("a process of the comparison has ended: its error is above")


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
        if archive.returncode:
            sys.exit(f"git knows no commit {commit!r}: name one of this repository")
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def main(commit: str) -> None:
    with ExitStack() as stack:
        before = Side(stack.enter_context(checked_out(commit)))
        stack.callback(before.close)
        now = Side(ROOT)
        stack.callback(now.close)
        for _ in range(ROUNDS):
            for name in now.names:
                before.measure(name)
                now.measure(name)
    for name, least in now.least.items():
        then = before.least[name]
        print(f"{least / then:6.2f}  {name}: {least:.2f} ms, {then:.2f} ms at {commit}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer()
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
