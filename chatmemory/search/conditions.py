"""The condition that a text has words, in the SQL of each database.

In SQLite, the condition calls Python functions, which `add_functions` defines on each new
connection.

In PostgreSQL, the condition calls only built-in functions, so that an index can contain their
results. Accents are removed by Unicode decomposition (NFD).
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func
from django.db.models.expressions import Combinable
from django.db.models.sql.compiler import SQLCompiler

from chatmemory.messages.phrases import SEPARATORS, Sought, sought_by_key, squashed

_IS_ASCII = "OCTET_LENGTH({text}) = CHAR_LENGTH({text})"
_PLAIN = "REPLACE(REPLACE(UPPER(NORMALIZE({text}, NFD)), 'ß', 'SS'), 'ẞ', 'SS')"
_WITHOUT = "NORMALIZE(REGEXP_REPLACE({plain}, '[{these}]+', '', 'g'), NFC)"
_MARKS = r"\u0300-\u036F"
_ASCII = "".join(each for each in SEPARATORS if each.isascii())
_IN_BRACKETS = "".join(rf"\u{ord(each):04X}" for each in SEPARATORS)


def folded_sql(text: str) -> str:
    """Return the SQL by which PostgreSQL removes case and accents from a text: `Café` becomes
    `CAFE`. `text` is the SQL expression of the text.
    """
    others = _WITHOUT.format(plain=_PLAIN.format(text=text), these=_MARKS)
    return f"CASE WHEN {_IS_ASCII.format(text=text)} THEN UPPER({text}) ELSE {others} END"


def squashed_sql(text: str) -> str:
    """Return the SQL by which PostgreSQL removes case, accents and separators from a text: `bw
    583021` becomes `BW583021`. `text` is the SQL expression of the text.
    """
    others = _WITHOUT.format(plain=_PLAIN.format(text=text), these=_MARKS + _IN_BRACKETS)
    ascii = f"TRANSLATE(UPPER({text}), '{_ASCII}', '')"
    return f"(CASE WHEN {_IS_ASCII.format(text=text)} THEN {ascii} ELSE {others} END)"


def pattern_of(part: str, connection: BaseDatabaseWrapper) -> str:
    """Return the LIKE pattern by which PostgreSQL finds `part` in a text. `part` is in lowercase
    without accents.
    """
    upper = "".join(each.upper() if len(each.upper()) == 1 else each for each in part)
    return f"%{connection.ops.prep_for_like_query(upper)}%"


def as_bytes(text: str) -> str:
    """Return the SQL by which SQLite passes a text to a Python function as bytes. A text that is
    not valid UTF-8 can only be passed as bytes. `text` is the SQL of the text.
    """
    return f"CAST({text} AS BLOB)"


SqlContext = Any  # each name of a template of SQL has a type of its own
Compiled = tuple[str, Any]  # SQL and its parameters, a list or a tuple


class Has(Func):
    """The SQL condition that a text matches a search. The search is for words in any order, or for
    one phrase.
    """

    output_field = BooleanField()

    def __init__(self, text: Combinable, sought: Sought | None = None, **extra: SqlContext) -> None:
        super().__init__(text, **extra)
        self.sought = sought or Sought()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        text, parameters = compiler.compile(self.source_expressions[0])
        return f"chatmemory_has({as_bytes(text)}, %s)", [*parameters, self.sought.key]

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        text, parameters = compiler.compile(self.source_expressions[0])
        conditions, values = [], list[object]()
        for fold, parts in (
            (folded_sql, self.sought.words),
            (squashed_sql, self.sought.codes),
            ("UPPER({})".format, self.sought.letters),
        ):
            if parts:
                sql = fold(text)
                conditions.append(f"({sql}) LIKE ALL(%s::text[])")
                patterns = [pattern_of(each, connection) for each in parts]
                values += [*parameters * sql.count(text), patterns]
        return f"({' AND '.join(conditions) or 'TRUE'})", values


def add_functions(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Add to a new Django connection the Python functions that are called by searches and triggers.
    Does nothing for databases other than SQLite.
    """
    if connection.vendor == "sqlite":
        define_functions(connection.connection)


def define_functions(driver: Connection) -> None:
    """Add to a `sqlite3` connection the Python functions that are called by searches and
    triggers.
    """
    driver.create_function("chatmemory_has", 2, _has, deterministic=True)
    driver.create_function("chatmemory_squashed", 1, _squashed, deterministic=True)


def _has(text: bytes | None, key: str) -> bool:
    return text is not None and sought_by_key(key).is_in(text.decode(errors="replace"))


def _squashed(text: bytes | None) -> str:
    return "" if text is None else squashed(text.decode(errors="replace"))


def patterns_of(sought: Sought, connection: BaseDatabaseWrapper, most: int) -> Sequence[str]:
    """Return LIKE patterns for the longest words and codes of a search, at most `most` patterns.
    Words of one or two characters are left out.

    The patterns are for an index of texts in uppercase without separators: the pattern for "A-1182"
    is `%A1182%`.
    """
    return [pattern_of(part, connection) for part in sought.parts[:most] if len(part) > 2]
