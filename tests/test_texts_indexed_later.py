"""Long texts do not hold SQLite's only writer while they are indexed, and are found at once."""

from __future__ import annotations

import pytest
from django.db import connection

from chatmemory import AiMessage, UserMessage, search, services
from chatmemory.core.policies import MessageWindow
from chatmemory.ledger import indexing
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.search.sqlite_tables import INDEXED_AT_ONCE

pytestmark = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL indexes the texts themselves"
)

HAY = "some hay " * (INDEXED_AT_ONCE // 20)  # less than half of what is indexed at once


def found(words: str) -> list[str]:
    return sorted(Memory.objects.containing(words).values_list("pk", flat=True))


def rows(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def aside() -> list[int]:
    return [seq for (seq,) in rows("SELECT seq FROM chatmemory_unindexed ORDER BY memory_id, seq")]


@pytest.fixture
def stacks(db) -> str:
    """A conversation whose messages are long together; they are not indexed before the commit."""
    services.create("stacks", MessageWindow(9))
    said = [UserMessage(f"{HAY} needle {n}") for n in range(3)]
    services.set_messages("stacks", [*said, AiMessage("a pin")])
    return "stacks"


@pytest.mark.parametrize("words", ["needle", "NEEDLE 2", "a pin", "hay  needle 1"])
def test_messages_are_found_before_they_are_indexed(stacks, words):
    assert aside() == [1, 2, 3, 4]
    assert found(words) == [stacks]
    mentioned = search.mentions(words, [stacks], 9)
    assert found("no such words") == []
    assert verify(stacks) is None
    indexing.index_aside()
    assert aside() == []
    assert found(words) == [stacks]
    assert search.mentions(words, [stacks], 9) == mentioned
    assert verify(stacks) is None


def test_letters_of_other_alphabets_are_found_before_they_are_indexed(db):
    services.create("m", MessageWindow(9))
    services.set_messages("m", [UserMessage(f"{HAY} Größe {n}") for n in range(3)])
    assert len(aside()) == 3
    assert found("GRÖßE") == found("größe") == ["m"]


def test_one_transaction_indexes_little_and_not_the_one_that_adds(transactional_db):
    """Whoever writes to another conversation waits for one transaction at most."""
    transactions: list[list[str]] = []

    def note(execute, sql, params, many, context):
        if sql.startswith("BEGIN"):
            transactions.append([])
        elif transactions:
            transactions[-1].append(sql)
        before = indexed_characters() if sql.startswith(INDEXED) else 0
        result = execute(sql, params, many, context)
        if sql.startswith(INDEXED):
            assert indexed_characters() - before <= INDEXED_AT_ONCE
        return result

    services.create("m", MessageWindow(9))
    with connection.execute_wrapper(note):
        services.set_messages("m", [UserMessage(f"{HAY} needle {n}") for n in range(5)])
    (adding,) = [each for each in transactions if any("chatmemory_step" in sql for sql in each)]
    indexing_them = [each for each in transactions if any(map(is_indexing, each))]
    assert adding not in indexing_them
    assert len(indexing_them) == 3, "two fit at once"
    assert aside() == []


INDEXED = "INSERT INTO chatmemory_search (rowid"


def is_indexing(sql: str) -> bool:
    return sql.startswith(INDEXED)


def indexed_characters() -> int:
    ((total,),) = rows("""SELECT coalesce(sum(length(m.text)), 0) FROM chatmemory_message m
        JOIN chatmemory_searchable s ON s.memory_id = m.memory_id AND s.seq = m.seq
        JOIN chatmemory_search_docsize d ON d.id = s.id""")
    return total


def test_what_an_interrupted_process_left_is_indexed_with_the_next(transactional_db):
    def stop(execute, sql, params, many, context):
        if is_indexing(sql):
            raise KeyboardInterrupt
        return execute(sql, params, many, context)

    services.create("m", MessageWindow(9))
    with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(stop):
        services.set_messages("m", [UserMessage(f"{HAY} needle {n}") for n in range(3)])
    assert aside() == [1, 2, 3]
    assert found("needle") == ["m"]
    services.create("other", MessageWindow(9))
    services.set_messages("other", [UserMessage(f"{HAY} thread {n}") for n in range(3)])
    assert aside() == []
    assert [found("needle"), found("thread")] == [["m"], ["other"]]


@pytest.fixture
def long_text(db) -> str:
    """A conversation with a text that is too long for the index."""
    services.create("m", MessageWindow(9))
    for text in ("hello", f"{HAY * 3} needle"):
        services.add("m", [UserMessage(text)])
    services.add("m", [UserMessage(f"{HAY * 3} thread")])
    return "m"


def test_a_very_long_text_is_read_by_searches(long_text):
    indexing.index_aside()
    assert aside() == [2, 3]
    assert [found("needle"), found("hello")] == [[long_text], [long_text]]
    assert search.mentions("needle", [long_text], 5) == {long_text: [2]}
    assert verify(long_text) is None
    search.index_of(connection).rebuild()
    assert aside() == [2, 3]
    assert found("thread") == [long_text]


def test_a_very_long_text_is_forgotten_with_its_words(long_text):
    services.redact(long_text, 2)
    assert aside() == [3]
    assert [found("needle"), found("redacted")] == [[], [long_text]]
    assert verify(long_text) is None
    services.delete(long_text)
    services.finish_deletions()
    assert aside() == []


def test_a_long_text_that_searches_lost_is_named_and_put_back(long_text):
    rows("DELETE FROM chatmemory_unindexed WHERE seq = 2")
    assert str(verify(long_text)) == (
        "'m': message #2: is missing in the search index: use --repair-index"
    )
    assert indexing.repair(long_text) == 1
    assert verify(long_text) is None
    assert found("needle") == [long_text]


def test_a_repair_indexes_little_at_once(stacks):
    indexing.index_aside()
    for table in ("searchable", "unindexed"):
        rows(f"DELETE FROM chatmemory_{table}")
    rows("INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')")
    assert indexing.repair(stacks) == 5, "four messages and the names"
    assert aside() == []
    assert found("needle") == found("stacks") == [stacks]


def test_a_deletion_takes_few_characters_out_at_once(transactional_db):
    removed: list[int] = []

    def note(execute, sql, params, many, context):
        if not sql.startswith('DELETE FROM "chatmemory_message"'):
            return execute(sql, params, many, context)
        before = indexed_characters()
        result = execute(sql, params, many, context)
        removed.append(before - indexed_characters())
        return result

    services.create("m", MessageWindow(9))
    services.set_messages("m", [UserMessage(f"{HAY} needle {n}") for n in range(6)])
    with connection.execute_wrapper(note):
        services.delete("m")
    assert sum(removed) > 2 * INDEXED_AT_ONCE
    assert max(removed) <= INDEXED_AT_ONCE
    assert found("needle") == []


def test_pages_find_what_is_not_indexed(stacks, operator_client):
    assert "/c/stacks/" in operator_client.get("/?q=needle+2").content.decode()
    assert "/c/stacks/" not in operator_client.get("/?q=needle+9").content.decode()
