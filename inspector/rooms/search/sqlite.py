"""The search index of SQLite: trigrams (three characters in a row) of the texts of messages.

The index is an FTS5 table that stores neither texts ("contentless") nor positions. So each text
that the index finds is compared with the searched words. Texts are indexed without case, accents,
and separators such as the dash in AB-12. ID and labels of a conversation are indexed as its message
0.

VACUUM can change the row IDs of messages. So the index has row IDs from a separate table.

Triggers update the index. They stay when the search is uninstalled, so that no erased text stays in
the index. They call a function of this library (`search.conditions`): programs without this
function cannot change messages. To remove a row, FTS5 must be told the words of the row. The
triggers take these words from the message or conversation as it was before the change.

A change inserts its messages, and then updates the conversation's row. The trigger on this row
indexes all new messages at once. One trigger for each message would take five times as long.
"""
# ruff: noqa: S608 - all parts of the statements are constants of this file

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Max, Q
from django.db.models.expressions import RawSQL

from chatmemory import database
from chatmemory.messages.phrases import Sought, sought_phrase, sought_words
from chatmemory.models import Message
from chatmemory.search.conditions import as_bytes
from chatmemory.search.reading import (
    DIGEST_LABEL,
    INDEXED_AT_ONCE,
    TRIGRAM,
    TextIndex,
    beginning_of,
    model_beside,
    searched_characters,
)

BATCH = 1_000  # messages whose sizes are read at once when an index is repaired
MOST_TRIGRAMS = 40  # of a search: more exclude hardly any further texts

# CROSS JOIN keeps the order of the tables: the index finds few rows, the others have all.
_FOUND = """SELECT said.memory_id, said.seq FROM chatmemory_search
    CROSS JOIN chatmemory_search_places said ON said.id = chatmemory_search.rowid
    WHERE chatmemory_search MATCH %s AND CASE
    WHEN said.seq = 0 THEN (SELECT chatmemory_has({names}, %s) FROM chatmemory_memory m
        WHERE m.id = said.memory_id)
    WHEN said.seq > 0 THEN (SELECT chatmemory_has({text}, %s) FROM chatmemory_message m
        WHERE m.memory_id = said.memory_id AND m.seq = said.seq)
    ELSE {beside} END"""
_FOUND_BESIDE = """(SELECT chatmemory_has({text}, %s) FROM {table} m
        WHERE m.memory_id = said.memory_id AND m.n = -said.seq)"""


def _names_of(row: str) -> str:
    """Return the SQL for the indexed names of a conversation: its ID, and its labels one a line."""
    return f"""{row}.id || char(10) || coalesce((SELECT group_concat(key || ':' || value, char(10))
        FROM json_each({row}.labels) WHERE key <> '{DIGEST_LABEL}'), '')"""


def _put(table: str, memory_id: str, seq: str, text: str, which: str) -> tuple[str, str]:
    """Return the SQL statements that add the missing rows of a table to the index."""
    text = f"chatmemory_squashed({as_bytes(text)})"
    return (
        f"""INSERT OR IGNORE INTO chatmemory_search_places (memory_id, seq)
        SELECT {memory_id}, {seq} FROM {table} m WHERE {which}""",
        f"""INSERT INTO chatmemory_search (rowid, text) SELECT s.id, {text} FROM {table} m
        CROSS JOIN chatmemory_search_places s ON s.memory_id = {memory_id} AND s.seq = {seq}
        WHERE {which} AND NOT EXISTS (SELECT 1 FROM chatmemory_search_docsize d WHERE d.id = s.id)
        """,
    )


def _put_messages(which: str) -> tuple[str, str]:
    which = f"m.origin = 'SAID' AND {which}"
    text = beginning_of("m.text")
    return _put("chatmemory_message", "m.memory_id", "m.seq", text, which)


def _put_beside(table: str, which: str) -> tuple[str, str]:
    """Return the SQL statements that add missing texts beside the history, such as requests of
    recorded calls. In the index, their seqs are negative.
    """
    return _put(table, "m.memory_id", "-m.n", beginning_of("m.text"), which)


def _put_names(which: str) -> tuple[str, str]:
    return _put("chatmemory_memory", "m.id", "0", _names_of("m"), which)


def _take(memory_id: str, seq: str, text: str) -> tuple[str, str]:
    """Return the SQL statements that remove a row from the index."""
    which = f"WHERE memory_id = {memory_id} AND seq = {seq}"
    return (
        f"""INSERT INTO chatmemory_search (chatmemory_search, rowid, text)
        SELECT 'delete', id, chatmemory_squashed({as_bytes(text)})
        FROM chatmemory_search_places {which}""",
        f"DELETE FROM chatmemory_search_places {which}",
    )


def _trigger(when: str, *statements: str) -> str:
    return f"AFTER {when} BEGIN {'; '.join(statements)}; END"


_TAKE_MESSAGE = _take("old.memory_id", "old.seq", beginning_of("old.text"))
_TAKE_BESIDE = _take("old.memory_id", "-old.n", beginning_of("old.text"))
_TAKE_NAMES = _take("old.id", "0", _names_of("old"))
_NEW_TEXT = _put_messages("m.memory_id = new.memory_id AND m.seq = new.seq")
_NEW_MESSAGES = _put_messages("m.memory_id = new.id AND m.seq > old.last_seq")
_NEW_NAMES = _put_names("m.id = new.id")

# Their parameters are the id of a conversation, and for messages the first and the last seq.
PUT_MESSAGES = _put_messages("m.memory_id = %s AND m.seq BETWEEN %s AND %s")
_PUT_NAMES = _put_names("m.id = %s")

PLACES = "chatmemory_search_places"
FORMER = "chatmemory_searchable"  # its name before this room existed
TABLES = (
    """CREATE TABLE IF NOT EXISTS chatmemory_search_places (
        id INTEGER PRIMARY KEY, memory_id varchar(255) NOT NULL, seq bigint NOT NULL,
        UNIQUE (memory_id, seq))""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS chatmemory_search
        USING fts5(text, content='', tokenize='trigram', detail=none)""",
)
_TRIGGER = "chatmemory_search_"  # begins the name of each trigger
_KNOWN_TRIGGERS = f"""SELECT name FROM sqlite_master
    WHERE type = 'trigger' AND substr(name, 1, {len(_TRIGGER)}) = '{_TRIGGER}'"""
_IS_MESSAGE = "WHEN old.origin = 'SAID'"
_TRIGGERS = {
    "counted": _trigger(
        "UPDATE OF last_seq ON chatmemory_memory WHEN new.last_seq > old.last_seq", *_NEW_MESSAGES
    ),
    "gone": _trigger(f"DELETE ON chatmemory_message {_IS_MESSAGE}", *_TAKE_MESSAGE),
    "other": _trigger(
        f"UPDATE OF text ON chatmemory_message {_IS_MESSAGE}", *_TAKE_MESSAGE, *_NEW_TEXT
    ),
    "named": _trigger("INSERT ON chatmemory_memory", *_NEW_NAMES),
    "nameless": _trigger("DELETE ON chatmemory_memory", *_TAKE_NAMES),
    "renamed": _trigger(
        "UPDATE OF labels ON chatmemory_memory WHEN new.labels IS NOT old.labels",
        *(*_TAKE_NAMES, *_NEW_NAMES),
    ),
}


def _triggers_beside(table: str) -> dict[str, str]:
    """Return the triggers for texts beside the history, such as requests of recorded calls."""
    new = _put_beside(table, "m.memory_id = new.memory_id AND m.n = new.n")
    return {
        "beside": _trigger(f"INSERT ON {table}", *new),
        "beside_gone": _trigger(f"DELETE ON {table}", *_TAKE_BESIDE),
        "beside_other": _trigger(f"UPDATE OF text ON {table}", *_TAKE_BESIDE, *new),
    }


_ALL_SAID = """SELECT 0 AS seq UNION ALL
    SELECT seq FROM chatmemory_message WHERE memory_id = %s AND origin = 'SAID'"""
_INDEXED = """SELECT s.seq FROM chatmemory_search_places s
    JOIN chatmemory_search_docsize d ON d.id = s.id WHERE s.memory_id = %s"""
_ALL_BESIDE = " UNION ALL SELECT -n FROM {table} WHERE memory_id = %s"
_MISSING = """SELECT seq FROM (SELECT seq FROM ({searched}) EXCEPT {indexed})
    ORDER BY seq = 0, seq LIMIT 1"""
_WRONG = "SELECT seq FROM ({indexed} EXCEPT SELECT seq FROM ({searched})) ORDER BY seq LIMIT 1"
EMPTY = (
    "INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')",
    "DELETE FROM chatmemory_search_places",
)


class SqliteIndex(TextIndex):
    """Searches with the index of SQLite. For words shorter than three characters, all texts are
    read.
    """

    def condition(self, words: str) -> Q:
        trigrams = trigrams_of(sought_words(words))
        if not trigrams:
            return super().condition(words)
        sql, parameters = self._found(trigrams, sought_words(words))
        return Q(id__in=RawSQL(f"SELECT memory_id FROM ({sql})", parameters))  # noqa: S611

    def few(self, words: str, most: int) -> list[str] | None:
        return _conversations(self._places(sought_words(words), most))

    def few_with_phrase(self, words: str, most: int) -> list[str] | None:
        return _conversations(self._places(sought_phrase(words), most))

    def mentions(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, list[int]]:
        places = None
        if not self.are_short(memory_ids):
            places = self._places(sought_words(words), most * len(memory_ids))
        if places is None:
            return super().mentions(words, memory_ids, most)
        these, seqs = set(memory_ids), defaultdict[str, list[int]](list)
        for memory_id, seq in sorted(places, reverse=True):
            if seq > 0 and memory_id in these and len(seqs[memory_id]) < most:
                seqs[memory_id].append(seq)
        return dict(seqs)

    def newest_beside(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, int]:
        places = self._places(sought_words(words), most)
        if places is None:
            return super().newest_beside(words, memory_ids, most)
        these, found = set(memory_ids), dict[str, int]()
        for memory_id, seq in sorted(places, reverse=True):
            if seq < 0 and memory_id in these:
                found[memory_id] = -seq
        return found

    def _places(self, sought: Sought, most: int) -> list[tuple[str, int]] | None:
        """Return the messages that contain what is sought. Return None if there are more than
        `most`, or if the words are too short for the index.
        """
        trigrams = trigrams_of(sought)
        if not trigrams:
            return None
        sql, parameters = self._found(trigrams, sought)
        with self.connection.cursor() as cursor:
            cursor.execute(f"{sql} LIMIT %s", [*parameters, most + 1])
            places = cursor.fetchall()
        return places if len(places) <= most else None

    def _found(self, trigrams: str, sought: Sought) -> tuple[str, list[str]]:
        """Return the SQL query that finds messages, and its parameters."""
        names, text = as_bytes(_names_of("m")), as_bytes(beginning_of("m.text"))
        model = model_beside()
        beside = _FOUND_BESIDE.format(text=text, table=model._meta.db_table) if model else "FALSE"
        sql = _FOUND.format(names=names, text=text, beside=beside)
        return sql, [trigrams, *[sought.key] * (sql.count("%s") - 1)]

    def install(self) -> None:
        if FORMER in self._table_names():
            self.run(f"ALTER TABLE {FORMER} RENAME TO {PLACES}")
        elif PLACES not in self._table_names():
            self.run(*TABLES)
            self.rebuild()
        self.keep_up()

    def keep_up(self) -> None:
        """Create the triggers that update the index. If a room with texts to index was added or
        removed, also update the rows of the index. Do nothing if the index does not exist.
        """
        if PLACES not in self._table_names():
            return
        table, known = self.beside(), self._drop_triggers()
        for name, does in (_TRIGGERS | (_triggers_beside(table) if table else {})).items():
            self.run(f"CREATE TRIGGER {_TRIGGER}{name} {does}")
        had_texts = f"{_TRIGGER}beside" in known
        if table and not had_texts:
            self.run(*_put_beside(table, "TRUE"))
        elif had_texts and not table:  # their room was removed
            self.rebuild()

    def rebuild(self) -> None:
        table = self.beside()
        with database.atomic(self.connection.alias):
            self.run(*EMPTY, *_put_messages("TRUE"), *_put_names("TRUE"))
            self.run(*(_put_beside(table, "TRUE") if table else ()))

    def repair(self, memory_id: str) -> int:
        """Add the missing rows of a conversation to the index: its messages, and its ID with
        labels. Return the number of added rows.

        If the index has a message that does not exist, the whole index is rebuilt first. Removing
        only this message would need its words, which are gone.

        Long histories are added in several transactions, so that other writers do not wait long.
        """
        if self.wrong(memory_id) is not None:
            self.rebuild()
        repaired = self._change(_PUT_NAMES, [memory_id])
        if table := self.beside():
            repaired += self._change(_put_beside(table, "m.memory_id = %s"), [memory_id])
        last = Message.objects.filter(memory=memory_id).aggregate(last=Max("seq"))["last"] or 0
        for start in range(1, last + 1, BATCH):
            rows = Message.objects.filter(memory=memory_id, seq__range=(start, start + BATCH - 1))
            sizes = dict(rows.values_list("seq", searched_characters()))
            for part in filter(None, database.parts_of(sizes, INDEXED_AT_ONCE)):
                repaired += self._change(PUT_MESSAGES, [memory_id, min(part), max(part)])
        return repaired

    def missing(self, memory_id: str) -> int | None:
        """Return the number of the first message that the index lacks; None if the index is
        complete.

        0 stands for the conversation's ID and labels. A negative number stands for a text beside
        the history, such as a request of a recorded call.
        """
        return self._first(_MISSING, memory_id)

    def wrong(self, memory_id: str) -> int | None:
        """Return the number of the first message that is in the index, but not in history. None if
        there is no such message.

        A negative number stands for a text beside the history, such as a request of a recorded
        call.
        """
        return self._first(_WRONG, memory_id)

    def _first(self, sql: str, memory_id: str) -> int | None:
        table = self.beside()
        searched = _ALL_SAID + (_ALL_BESIDE.format(table=table) if table else "")
        sql = sql.format(searched=searched, indexed=_INDEXED)
        with self.connection.cursor() as cursor:
            cursor.execute(sql, [memory_id] * sql.count("%s"))
            found = cursor.fetchone()
        return found[0] if found else None

    def _change(self, statements: Sequence[str], values: Sequence[str | int]) -> int:
        """Execute statements in one transaction. Return the number of rows that the largest of them
        changed.
        """
        counts: list[int] = []
        with database.atomic(self.connection.alias), self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement, values)
                counts.append(cursor.rowcount)
        return max(counts)

    def remove(self) -> None:
        self._drop_triggers()
        for table in ("chatmemory_search", PLACES):
            self.run(f"DROP TABLE {table}")

    def _table_names(self) -> list[str]:
        return self.connection.introspection.table_names()

    def _drop_triggers(self) -> list[str]:
        """Drop all triggers of the index, and return their names."""
        with self.connection.cursor() as cursor:
            cursor.execute(_KNOWN_TRIGGERS)
            names = [name for (name,) in cursor.fetchall()]
        self.run(*(f"DROP TRIGGER {name}" for name in names))
        return names


def _conversations(places: Sequence[tuple[str, int]] | None) -> list[str] | None:
    return None if places is None else sorted({memory_id for memory_id, _ in places})


def trigrams_of(sought: Sought) -> str:
    """Return the FTS5 query for texts with the trigrams of the sought text; "" if it is too short
    for a trigram.

    For "abcdef", the query has "abc" and "def". Overlapping trigrams such as "bcd" would take time
    and exclude hardly any texts.
    """
    trigrams = dict[str, None]()
    for part in sought.parts:
        if len(part) >= TRIGRAM:
            starts = (*range(0, len(part) - TRIGRAM, TRIGRAM), len(part) - TRIGRAM)
            trigrams |= dict.fromkeys(part[start : start + TRIGRAM] for start in starts)
    quoted = ('"' + each.replace('"', '""') + '"' for each in list(trigrams)[:MOST_TRIGRAMS])
    return " ".join(quoted)
