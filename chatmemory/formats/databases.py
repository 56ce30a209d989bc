"""Databases of agents: SQLite files, opened read-only. Each session is returned in the JSON of the
agent's own export.

A database is recognized by its tables. Its sessions are read one after the other, in the order of
their ids.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO
from urllib.parse import quote

from chatmemory.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.messages.codec import JsonBounds, load_json
from chatmemory.messages.json_values import JsonValue

MAGIC = b"SQLite format 3\x00"
_MODES = slice(18, 20)  # the bytes of the header that say whether there is a write-ahead log


@dataclass(frozen=True)
class KnownDatabase:
    """The SQLite database of a supported program.

    - `format`: the name of the format of the sessions.
    - `tables`: names of tables. A database that has all these tables is recognized.
    - `sessions`: yields each session as a JSON value in the format `format`. Its arguments are the
      connection, and a function that decodes the JSON text of a column.
    """

    format: str
    tables: frozenset[str]
    sessions: Callable[[sqlite3.Connection, Callable[[str], JsonValue]], Iterator[JsonValue]]


def is_database(content: str | bytes | IO[bytes]) -> bool:
    """Return whether content begins like an SQLite database."""
    if isinstance(content, str):
        return False
    if isinstance(content, bytes):
        return content.startswith(MAGIC)
    first = content.read(len(MAGIC))
    content.seek(0)
    return first == MAGIC


def sessions_of(
    content: bytes | IO[bytes], bounds: JsonBounds | None
) -> tuple[str, Iterator[JsonValue]] | None:
    """Return the format of a database, such as "goose", and its sessions as JSON values. None if
    the database does not have the tables of a supported program.

    Raises UnreadableTranscript for a damaged database, and for a value beyond `bounds`.
    """
    connection = _opened(content)
    try:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {name for (name,) in rows}
    except sqlite3.Error as error:
        connection.close()
        raise UnreadableTranscript(
            -1, f"the file is an SQLite database, but SQLite cannot read it: {error}"
        ) from error
    for each in DATABASES:
        if each.tables <= tables:
            return each.format, _sessions(connection, each, _reader(bounds))
    connection.close()
    return None


def unwritten_log(content: bytes | IO[bytes]) -> bool:
    """Return whether a database file has a write-ahead log with data. The log is not read, so the
    newest changes are missing from the sessions.
    """
    name = getattr(content, "name", None)
    try:
        return isinstance(name, str) and os.path.getsize(f"{name}-wal") > 0
    except OSError:
        return False


def _opened(content: bytes | IO[bytes]) -> sqlite3.Connection:
    """Open a database so that nothing can alter it: a file as it is, other content in memory."""
    name = getattr(content, "name", None)
    if isinstance(name, str) and os.path.isfile(name):
        uri = f"file:{quote(os.path.abspath(name))}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    else:
        data = bytearray(content if isinstance(content, bytes) else content.read())
        data[_MODES] = b"\x01\x01"  # a database in memory has no log
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.deserialize(bytes(data))
    connection.execute("PRAGMA query_only = 1")
    connection.execute("PRAGMA trusted_schema = 0")
    return connection


def _reader(bounds: JsonBounds | None) -> Callable[[str], JsonValue]:
    """Return a function that decodes the JSON text of a column. The function raises
    UnreadableTranscript.
    """
    most = bounds.each if bounds else None
    total = 0

    def read(text: JsonValue) -> JsonValue:
        nonlocal total
        if not isinstance(text, str):
            return None
        total += len(text)
        if bounds and (len(text) > bounds.each or total > bounds.all):
            raise UnreadableTranscript(
                -1, f"its JSON takes more than {most:,} bytes: {bounds.remedy}"
            )
        try:
            return load_json(text)
        except InvalidMessage as error:
            raise UnreadableTranscript(-1, f"a row of the database is {error}") from error

    return read


def _sessions(
    connection: sqlite3.Connection, known: KnownDatabase, read: Callable[[str], JsonValue]
) -> Iterator[JsonValue]:
    try:
        with closing(connection):
            yield from known.sessions(connection, read)
    except sqlite3.Error as error:
        raise UnreadableTranscript(
            -1, f"the file is an SQLite database, but SQLite cannot read it: {error}"
        ) from error


def _of_opencode(
    connection: sqlite3.Connection, read: Callable[[str], JsonValue]
) -> Iterator[JsonValue]:
    columns = _columns(connection, "session")
    names = [each for each in ("id", "title", "directory", "version", "revert") if each in columns]
    rows = connection.execute(f"SELECT {', '.join(names)} FROM session ORDER BY id")  # noqa: S608
    for row in rows.fetchall():
        info = dict(zip(names, row, strict=True))
        info["revert"] = read(info["revert"]) if info.get("revert") else None
        messages = connection.execute(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", row[:1]
        )
        found = []
        for id, data in messages.fetchall():
            parts = connection.execute(
                "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (id,)
            )
            about = read(data)
            found.append(
                {
                    "info": {"id": id, **(about if isinstance(about, dict) else {})},
                    "parts": [_with_id(each, read(text)) for each, text in parts],
                }
            )
        yield {"info": info, "messages": found}


def _of_goose(
    connection: sqlite3.Connection, read: Callable[[str], JsonValue]
) -> Iterator[JsonValue]:
    columns = _columns(connection, "messages")
    metadata = "metadata_json" if "metadata_json" in columns else "NULL"
    sessions = connection.execute("SELECT id, working_dir FROM sessions ORDER BY id")
    for id, directory in sessions.fetchall():
        rows = connection.execute(
            f"SELECT role, content_json, created_timestamp, {metadata} FROM messages"  # noqa: S608
            " WHERE session_id = ? ORDER BY created_timestamp, id",
            (id,),
        )
        conversation = [
            {
                "role": role,
                "content": read(content),
                "created": created,
                "metadata": read(about) or {},
            }
            for role, content, created, about in rows
        ]
        yield {"id": id, "working_dir": directory, "conversation": conversation}


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _with_id(id: str, value: JsonValue) -> JsonValue:
    return {"id": id, **value} if isinstance(value, dict) else value


DATABASES = (
    KnownDatabase("opencode", frozenset({"session", "message", "part"}), _of_opencode),
    KnownDatabase("goose", frozenset({"sessions", "messages"}), _of_goose),
)
