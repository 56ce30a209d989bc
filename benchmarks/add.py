"""Measure an add against a raw SQLite transaction that writes the same rows.

    .venv/bin/python -m benchmarks.add

Both write to the real schema, with its indexes and search triggers, in a temporary folder. The raw
one reads the conversation's row and its oldest stays, ends a stay, inserts a message, a stay and a
step, and changes the conversation's row, with statements of the sqlite3 module and no Django.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.database import migrated
from benchmarks.measuring import Figure, in_turns, show

WORDS = 60
WINDOW_TOKENS = 4_000
FILL = 300
ROUNDS = 600
LIMITS = {"NORMAL": 4.0, "FULL": 2.5}
TABLES = ("message", "stay", "step")
_FILE = Path(__file__).parents[2] / "shared/data/tau_bench_airline.openai_chat.json"
_LINE = "the customer would like to change the flight of reservation 8JX2WO and keep both bags "


def texts() -> Iterator[str]:
    """Yield texts of 60 words without end: of tau-bench where its file is, else a made-up one."""
    words = (_words(json.loads(_FILE.read_text())) if _FILE.exists() else []) or _LINE.split()
    endless = itertools.cycle(words)
    while True:
        yield " ".join(itertools.islice(endless, WORDS))


def _words(value: Any) -> list[str]:
    """Return the words of all contents in a decoded file."""
    if isinstance(value, dict):
        said = value.get("content")
        own = said.split() if isinstance(said, str) else []
        return own + [word for each in value.values() for word in _words(each)]
    return [word for each in value for word in _words(each)] if isinstance(value, list) else []


class Raw:
    """The rows of an add, written by hand: copies of the newest ones, with the next numbers."""

    def __init__(self, path: str, memory_id: str, synchronous: str) -> None:
        self.id = memory_id
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA secure_delete = ON")
        self.connection.execute(f"PRAGMA synchronous = {synchronous}")
        self.newest = {table: self._newest(table) for table in TABLES}
        self.columns = {table: ", ".join(row) for table, row in self.newest.items()}
        self.marks = {table: ", ".join("?" * len(row)) for table, row in self.newest.items()}

    def add(self, text: str) -> None:
        run, rows = self.connection.execute, self.newest
        run("BEGIN IMMEDIATE")
        run("SELECT * FROM chatmemory_memory WHERE id = ?", (self.id,)).fetchone()
        oldest = run(
            "SELECT n, seq, rank, type, has_calls, tokens FROM chatmemory_stay "
            "WHERE memory_id = ? AND left_step IS NULL ORDER BY rank LIMIT 2",
            (self.id,),
        ).fetchall()
        for table, number in zip(TABLES, ("seq", "n", "n"), strict=True):
            rows[table][number] += 1
        rows["message"]["text"] = text
        rows["message"]["payload"] = f'{{"contents":[{{"text":"{text}","type":"TEXT"}}]}}'
        rows["stay"]["seq"], rows["stay"]["entered_step"] = (
            rows["message"]["seq"],
            rows["step"]["n"],
        )
        rows["stay"]["rank"] += 2**20
        for table in TABLES:
            run(
                f"INSERT INTO chatmemory_{table} ({self.columns[table]}) "
                f"VALUES ({self.marks[table]})",
                tuple(rows[table].values()),
            )
        run(
            "UPDATE chatmemory_stay SET left_step = ?, reason = 'CAPACITY' "
            "WHERE memory_id = ? AND n = ?",
            (rows["step"]["n"], self.id, oldest[0][0]),
        )
        run(
            "UPDATE chatmemory_memory SET last_step = ?, last_seq = ?, last_stay = ?, "
            "said_count = ?, history_tokens = ?, window_count = ?, window_tokens = ?, oldest = ?, "
            "updated_at = ?, head = ? WHERE id = ?",
            (
                *(rows["step"]["n"], rows["message"]["seq"], rows["stay"]["n"]),
                *(rows["message"]["seq"], 1, 1, 1, oldest[0][0], rows["step"]["at"]),
                *(rows["step"]["digest"], self.id),
            ),
        )
        run("COMMIT")

    def _newest(self, table: str) -> dict[str, Any]:
        order = "seq" if table == "message" else "n"
        cursor = self.connection.execute(
            f"SELECT * FROM chatmemory_{table} WHERE memory_id = ? ORDER BY {order} DESC LIMIT 1",
            (self.id,),
        )
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def figures(path: str) -> Iterator[Figure]:
    """Yield how an add compares with the raw transaction, for both ways to synchronise."""
    from django.db import connection

    from chatmemory import UserMessage, services
    from chatmemory.core.policies import TokenWindow

    said = texts()
    for name in ("library", "raw"):
        services.create(name, TokenWindow(WINDOW_TOKENS))
        services.add(name, [UserMessage(next(said)) for _ in range(FILL)])
    for synchronous, limit in LIMITS.items():
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
        raw = Raw(path, "raw", synchronous)
        calls: dict[str, Callable[[], object]] = {
            "raw": lambda raw=raw: raw.add(next(said)),  # type: ignore[misc]
            "add": lambda: services.add("library", [UserMessage(next(said))]),
        }
        median = in_turns(calls, ROUNDS)
        yield Figure(
            f"add, synchronous {synchronous}",
            median["add"] / median["raw"],
            limit,
            f"{1e3 * median['add']:.2f} ms, a raw transaction {1e3 * median['raw']:.2f} ms",
        )


if __name__ == "__main__":
    with migrated() as folder:
        list(show(figures(f"{folder}/benchmark.sqlite3")))
