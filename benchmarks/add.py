"""Measure adds against a raw transaction, and in long conversations against short ones.

All write to the real schema, with its indexes, in a temporary folder. The raw transaction reads the
conversation's row and its oldest stays, ends a stay, inserts a message, a stay and a step, puts the
message into SQLite's search index, and changes the conversation's row, by the database's driver and
without Django.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks import raw
from benchmarks.database import ON_POSTGRESQL, analyse
from benchmarks.measuring import Figure, compared, in_turns
from benchmarks.texts import texts

WINDOW_TOKENS = 4_000
FILL = 300
ROUNDS = 600
# The durability of a commit: the statement that sets it, and the limit.
LEVELS = {
    "synchronous NORMAL": ("PRAGMA synchronous = NORMAL", 4.0),
    "synchronous FULL": ("PRAGMA synchronous = FULL", 2.5),
}
if ON_POSTGRESQL:
    LEVELS = {
        "synchronous_commit off": ("SET synchronous_commit = off", 4.0),
        "synchronous_commit on": ("SET synchronous_commit = on", 2.5),
    }
KEYS = {"message": "seq", "stay": "n", "step": "n"}
COUNTERS = ("last_step", "last_seq", "last_stay", "said_count", "history_tokens")


class Raw:
    """An add written by hand: it inserts copies of a conversation's newest rows, with the next
    numbers.
    """

    def __init__(self, memory_id: str, level: str) -> None:
        self.id = memory_id
        self.connection = raw.connect()
        self.connection.execute(level)
        self.rows = {table: self._newest(table, key) for table, key in KEYS.items()}
        self.inserts = {table: _insert(table, row) for table, row in self.rows.items()}

    def add(self, text: str) -> None:
        run, rows, id = self.connection.execute, self.rows, (self.id,)
        message, stay, step = rows["message"], rows["stay"], rows["step"]
        run(self.connection.begin)
        run(f"SELECT * FROM chatmemory_memory WHERE id = ?{self.connection.locked}", id).fetchone()
        oldest = run(
            "SELECT n, seq, rank, type, has_calls, tokens FROM chatmemory_stay "
            "WHERE memory_id = ? AND left_step IS NULL ORDER BY rank LIMIT 2",
            id,
        ).fetchall()
        for table, key in KEYS.items():
            rows[table][key] += 1
        message["text"] = text
        stay |= {"seq": message["seq"], "entered_step": step["n"], "rank": stay["rank"] + 2**20}
        for table, row in rows.items():
            run(self.inserts[table], tuple(row.values()))
        run(
            "UPDATE chatmemory_stay SET left_step = ?, reason = 'CAPACITY' "
            "WHERE memory_id = ? AND n = ?",
            (step["n"], self.id, oldest[0][0]),
        )
        changes = ", ".join(f"{name} = ?" for name in COUNTERS)
        run(
            f"UPDATE chatmemory_memory SET {changes}, updated_at = ?, head = ? WHERE id = ?",
            (*(step["n"] for _ in COUNTERS), step["at"], step["digest"], self.id),
        )
        run("COMMIT")

    def _newest(self, table: str, key: str) -> dict[str, Any]:
        cursor = self.connection.execute(
            f"SELECT * FROM chatmemory_{table} WHERE memory_id = ? ORDER BY {key} DESC LIMIT 1",
            (self.id,),
        )
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def _insert(table: str, row: dict[str, Any]) -> str:
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    return f"INSERT INTO chatmemory_{table} ({columns}) VALUES ({marks})"


def fill(memory_id: str, contents: Iterator[str]) -> None:
    """Create a conversation whose window is full."""
    from chatmemory import TokenWindow, UserMessage, services

    services.create(memory_id, TokenWindow(WINDOW_TOKENS))
    services.add(memory_id, [UserMessage(next(contents)) for _ in range(FILL)])


def add_one(memory_id: str, contents: Iterator[str]) -> None:
    """Add the next text to a conversation."""
    from chatmemory import UserMessage, services

    services.add(memory_id, [UserMessage(next(contents))])


def against_raw() -> Iterator[Figure]:
    """Compare an add with the raw transaction, with the same durability."""
    from django.db import connection

    contents = texts()
    for name in ("library", "raw"):
        fill(name, contents)
    for level, (statement, limit) in LEVELS.items():
        with connection.cursor() as cursor:
            cursor.execute(statement)
        by_hand = Raw("raw", statement)
        calls: dict[str, Callable[[], object]] = {
            "services.add": partial(add_one, "library", contents),
            "a raw transaction": lambda raw=by_hand: raw.add(next(contents)),  # type: ignore[misc]
        }
        name = f"add, {level}, against a raw transaction"
        yield compared(name, limit, in_turns(calls, ROUNDS))


def in_long_windows() -> Iterator[Figure]:
    """Compare adds to long windows with adds to short ones."""
    from tests.long_conversations import long_conversation

    contents = texts()

    def times(**kept: tuple[int, int]) -> dict[str, float]:
        for name, (messages, window) in kept.items():
            long_conversation(name, messages, window)
        analyse()
        return in_turns(
            {
                f"{messages:,} messages, {window:,} in the window": partial(add_one, name, contents)
                for name, (messages, window) in kept.items()
            },
            ROUNDS // 2,
        )

    yield compared(
        "add with 5,000 messages in the window", 1.3, times(wide=(10_000, 5_000), narrow=(100, 20))
    )


def figures(folder: str) -> Iterator[Figure]:
    yield from against_raw()
    yield from in_long_windows()
