"""Searching with SQLite's index, which tells the messages that have the trigrams of the words.

It does not know where they are, so the texts of what it finds are compared with the words: those of
ASCII by LIKE, others by a function of ours, as SQLite knows the case of ASCII letters alone.
"""
# ruff: noqa: S608 - the parts of the statements are constants of this file and of `sqlite_tables`

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from unicodedata import ucd_3_2_0 as older_unicode

from django.db.models import Func, IntegerField, Q, TextField, Value
from django.db.models.expressions import Combinable, RawSQL
from django.db.models.functions import Replace
from django.db.models.lookups import GreaterThan, IContains

from chatmemory import database
from chatmemory.core.phrases import folded
from chatmemory.search.reading import TRIGRAM, TextIndex, beginning_of
from chatmemory.search.sqlite_tables import (
    EMPTY,
    FILL,
    FILL_NAMES,
    TABLES,
    TRIGGERS,
    names_of,
)

# LIKE ignores case from A to Z. Two more characters are k and s for the index.
_FOLDED = (("\u212a", "k"), ("\u017f", "s"))
_LIKE = "replace(replace({text}, '\u212a', 'k'), '\u017f', 's') LIKE %s ESCAPE '\\'"
_PLACE = "chatmemory_place({text}, %s)"
_DOT_ABOVE = "\u0307"
# CROSS JOIN keeps the order of the tables: the index finds few rows, the others have all.
_FOUND = """SELECT said.memory_id, said.seq FROM chatmemory_search
    CROSS JOIN chatmemory_searchable said ON said.id = chatmemory_search.rowid
    WHERE chatmemory_search MATCH %s AND {where} CASE said.seq
    WHEN 0 THEN (SELECT {named} FROM chatmemory_memory m WHERE m.id = said.memory_id)
    ELSE (SELECT {said} FROM chatmemory_message m
        WHERE m.memory_id = said.memory_id AND m.seq = said.seq) END"""
_OF_THESE = "said.seq > 0 AND said.memory_id IN (SELECT value FROM json_each(%s)) AND"


class SqliteIndex(TextIndex):
    """The index of SQLite. It has no words shorter than a trigram: for these, texts are read."""

    def condition(self, words: str) -> Q:
        if len(words) < TRIGRAM:
            return super().condition(words)
        sql, parameters = self._found(words)
        return Q(id__in=RawSQL(f"SELECT memory_id FROM ({sql})", parameters))  # noqa: S611

    def few(self, words: str, most: int) -> list[str] | None:
        if len(words) < TRIGRAM:
            return None
        sql, parameters = self._found(words)
        with self.connection.cursor() as cursor:
            cursor.execute(f"{sql} LIMIT %s", [*parameters, most + 1])
            places = [memory_id for memory_id, _ in cursor]
        return sorted(set(places)) if len(places) <= most else None

    def reads_as_found(self, words: str) -> bool:
        return words.isascii() or len(words) < TRIGRAM or all(map(_is_indexed_alike, words))

    def mentions(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, list[int]]:
        if self._reads(words, memory_ids, most):
            return super().mentions(words, memory_ids, most)
        sql, parameters = self._found(words, memory_ids)
        seqs: dict[str, list[int]] = defaultdict(list)
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({sql}) ORDER BY memory_id, seq DESC", parameters)
            for memory_id, seq in cursor:
                if len(seqs[memory_id]) < most:
                    seqs[memory_id].append(seq)
        return dict(seqs)

    def _reads(self, words: str, memory_ids: Sequence[str], most: int) -> bool:
        """Return whether these conversations are read sooner than all places are found."""
        if len(words) < TRIGRAM or not self.reads_as_found(words):
            return len(words) < TRIGRAM
        return self.are_short(memory_ids) or self.few(words, most * len(memory_ids)) is None

    def has(self, text: Combinable, words: str) -> Any:
        if not words.isascii() and words.lower() != words.upper():
            return GreaterThan(self.place(text, words), 0)
        if not words.isascii() or len(words) < TRIGRAM:
            return super().has(text, words)
        for character, plain in _FOLDED:
            if plain in words.lower():
                text = Replace(text, Value(character), Value(plain), output_field=TextField())
        return IContains(text, words)

    def place(self, text: Combinable, words: str) -> Combinable:
        return super().place(text, words) if words.isascii() else _Place(text, Value(folded(words)))

    def _found(self, words: str, memory_ids: Sequence[str] = ()) -> tuple[str, list[str]]:
        """Return the statement that finds the places of words, and its parameters."""
        sought, compared = folded(words), _PLACE
        if words.isascii():
            sought, compared = f"%{self.connection.ops.prep_for_like_query(words)}%", _LIKE
        named, said = (
            compared.format(text=text) for text in (names_of("m"), beginning_of("m.text"))
        )
        where = _OF_THESE if memory_ids else ""
        these = [json.dumps(list(memory_ids))] if memory_ids else []
        found = _FOUND.format(where=where, named=named, said=said)
        return found, [_trigrams(words), *these, sought, sought]

    def install(self) -> None:
        self.run(*TABLES)
        self.rebuild()
        self.install_triggers()

    def install_triggers(self) -> None:
        """A database whose migration was undone has no index."""
        if "chatmemory_searchable" not in self.connection.introspection.table_names():
            return
        self.drop_triggers()
        for name, does in TRIGGERS.items():
            self.run(f"CREATE TRIGGER chatmemory_search_{name} {does}")

    def rebuild(self) -> None:
        with database.atomic(self.connection.alias):
            self.run(*EMPTY, *FILL, *FILL_NAMES)

    def remove(self) -> None:
        self.drop_triggers()
        for table in ("search", "searchable", "index_pause"):
            self.run(f"DROP TABLE chatmemory_{table}")

    def add_functions(self) -> None:
        self.connection.connection.create_function(
            "chatmemory_place", 2, _place, deterministic=True
        )

    def drop_triggers(self) -> None:
        self.run(*(f"DROP TRIGGER IF EXISTS chatmemory_search_{name}" for name in TRIGGERS))


class _Place(Func):
    function = "chatmemory_place"
    output_field = IntegerField()


def _place(text: str | None, words: str) -> int:
    """Return where folded words are in a text, from 1; 0 if they are not."""
    return 0 if text is None else folded(text).find(words) + 1


def _is_indexed_alike(character: str) -> bool:
    """Return whether the index takes for this character every one that Python folds to it.

    The index knows the cases of an older Unicode, and not that Python makes two characters of the
    Turkish capital with a dot.
    """
    both = character.lower() + character.upper()
    is_known = all(older_unicode.category(each) != "Cn" for each in both)
    return character != _DOT_ABOVE and (is_known or len(set(both)) == 1)


def _trigrams(words: str) -> str:
    """Return the query for texts with the trigrams that cover the words.

    The others, which overlap these, leave out hardly more texts, and cost a list of messages each.
    """
    starts = (*range(0, len(words) - TRIGRAM, TRIGRAM), len(words) - TRIGRAM)
    trigrams = dict.fromkeys(words[start : start + TRIGRAM] for start in starts)
    return " ".join('"' + each.replace('"', '""') + '"' for each in trigrams)
