"""Measure an import against counting tokens and inserting the same rows by hand.

The rows are inserted by the database's driver with one `executemany` for each table, into the same
database with all its indexes, including SQLite's search index. Each conversation is one
transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any

from benchmarks import raw
from benchmarks.measuring import QUICK, Elsewhere, Figure, Timed, compared, in_turns
from benchmarks.texts import texts

EACH = 50
CONVERSATIONS = 500 if QUICK else 2_000
WINDOW_TOKENS = 4_000
TABLES = {"memory": "id", "message": "memory_id", "stay": "memory_id", "step": "memory_id"}


class Raw:
    """Imports written by hand: they insert the rows of an imported conversation again, under
    another id.
    """

    def __init__(self, count_tokens: Callable[[str], object]) -> None:
        self._connection = raw.connect()
        self._count_tokens = count_tokens
        self._copied: list[tuple[str, Sequence[Any]]] = []
        self._texts: list[str] = []
        self._id = ""

    def copy(self, memory_id: str, texts: list[str]) -> None:
        """Copy the rows of an imported conversation."""
        self._texts, self._id = texts, f"raw-{memory_id}"
        self._copied = [self._rows(table, key, memory_id) for table, key in TABLES.items()]

    def insert(self) -> None:
        for text in self._texts:
            self._count_tokens(text)
        self._connection.execute(self._connection.begin)
        for statement, rows in self._copied:
            self._connection.executemany(statement, rows)
        raw.index(self._connection, self._id, 1, len(self._texts))
        self._connection.execute("COMMIT")

    def _rows(self, table: str, key: str, memory_id: str) -> tuple[str, Sequence[Any]]:
        cursor = self._connection.execute(
            f"SELECT * FROM chatmemory_{table} WHERE {key} = ?", (memory_id,)
        )
        names = [column[0] for column in cursor.description]
        place, marks = names.index(key), ", ".join("?" * len(names))
        rows = [(*row[:place], f"raw-{row[place]}", *row[place + 1 :]) for row in cursor.fetchall()]
        return f"INSERT INTO chatmemory_{table} ({', '.join(names)}) VALUES ({marks})", rows


def figures(folder: str) -> Iterator[Figure]:
    from chatmemory import TokenWindow, UserMessage, services
    from chatmemory.messages.estimators import estimator_for

    source, numbers = texts(), count()
    by_hand = Raw(estimator_for("gpt-4o").estimate_token_count_in_text)

    def import_one() -> float:
        name = f"c{next(numbers)}"
        lines = list(islice(source, EACH))
        messages = [UserMessage(line) for line in lines]
        start = time.perf_counter()
        services.import_conversation(name, messages, TokenWindow(WINDOW_TOKENS))
        passed = time.perf_counter() - start
        by_hand.copy(name, lines)
        return 1000 * passed

    calls: dict[str, Timed] = {
        "services.import_conversation": Elsewhere(import_one),
        "by hand": by_hand.insert,
    }
    yield compared(f"import of conversations of {EACH}", 2, in_turns(calls, CONVERSATIONS))
