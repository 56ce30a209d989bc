"""Sessions of opencode, Goose, the AI SDK and the first Codex: their exports, and databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chatmemory import AiMessage, ChatMessage
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import JsonBounds, Transcript, read_transcripts
from chatmemory.messages.message import text_of

AGENTS = Path(__file__).parents[1] / "data/agents"


def said(messages: Any) -> list[str]:
    return [f"{each.type[:4].lower()}: {words_of(each)}" for each in messages]


def words_of(message: ChatMessage) -> str:
    if not isinstance(message, AiMessage):
        return text_of(message).replace("\n", "")
    calls = [f"{each.name} {each.arguments}" for each in message.tool_execution_requests if each]
    return " | ".join(filter(None, (message.thinking, message.text, *calls)))


def losses_of(read: Transcript) -> list[str]:
    return [each.what for each in read.losses if "system prompts" not in each.what]


def export(name: str) -> Any:
    return json.loads((AGENTS / f"{name}.json").read_text("utf-8"))


PAINTED = [
    "user: paint the gate[file gate.txt]",
    (
        'ai: which green is it | I look for paint. | bash {"command": "list shed"} | '
        'read {"path": "brush.txt"}'
    ),
    "tool: green paint",
    "tool: no such brush",
    "ai: The gate is green.",
]
GROUND = [
    "user: grind the corn",
    'ai: how coarse should it be | I start the mill. | developer__shell {"command": "turn wheel"}',
    "tool: fine flour",
    "ai: The corn is ground.",
]

TARRED = [
    "syst: You know boats.",
    "user: tar the hull[image]",
    (
        'ai: which tar is there | I look for tar. | shed {"shelf": "upper one"} | '
        'shop {"open": true}'
    ),
    "tool: one black can",
    'tool: {"why": "closed today"}',
    "ai: The hull is tarred.",
]
SORTED = [
    "user: sort the nails",
    'ai: by their length | shell {"command": ["sort", "nails.txt"]}',
    "tool: short and long",
    "ai: The nails are sorted.",
]
EXPORTS = {"opencode": PAINTED, "goose": GROUND, "vercel_model": TARRED, "codex": SORTED}


@pytest.mark.parametrize(("name", "lines"), EXPORTS.items())
def test_an_export_is_read_with_thoughts_calls_and_results(name, lines):
    reading = read_transcripts(json.dumps(export(name)))
    (read,) = reading.transcripts
    assert (reading.format, reading.refused, losses_of(read)) == (name, (), [])
    assert said(read.messages) == lines


def test_the_prompts_and_errors_of_opencode_are_known():
    (read,) = read_transcripts(json.dumps(export("opencode"))).transcripts
    assert read.session is not None
    assert dict(read.session.prompts) == {1: 10, 4: 20}
    errors = [getattr(each, "is_error", None) for each in read.messages]
    assert errors == [None, None, None, True, None]


def test_what_was_reverted_in_opencode_is_a_branch():
    value = export("opencode")
    value["info"]["revert"] = {"messageID": "msg_2"}
    main, branch = read_transcripts(json.dumps(value)).transcripts
    assert len(main.messages) == 1
    assert len(branch.messages) == 5
    assert branch.is_branch


def test_a_summary_of_opencode_is_a_compaction():
    value = export("opencode")
    compaction = {"id": "p1", "type": "compaction", "auto": True}
    text = {"id": "p2", "type": "text", "text": "The gate was painted green."}
    value["messages"] += [
        {"info": {"id": "msg_3", "role": "user"}, "parts": [compaction]},
        {"info": {"id": "msg_4", "role": "assistant", "summary": True}, "parts": [text]},
    ]
    (read,) = read_transcripts(json.dumps(value)).transcripts
    assert read.session is not None
    (done,) = read.session.compactions
    assert text_of(read.session.messages[done.summary]) == "The gate was painted green."
    assert (done.trigger, len(done.covered), len(done.window)) == ("auto", 5, 1)
    assert losses_of(read) == []


def database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """CREATE TABLE session (id text, title text, directory text, version text,
            revert text);
            CREATE TABLE message (id text, session_id text, time_created integer, data text);
            CREATE TABLE part (id text, message_id text, session_id text, data text);"""
        )
        for n in (1, 2):
            row: tuple[Any, ...] = (f"ses_{n}", "Gate", "/w", "1.2.10", None)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", row)
            for k, message in enumerate(export("opencode")["messages"]):
                id = f"msg_{n}{k}"
                row = (id, f"ses_{n}", k, json.dumps(message["info"]))
                connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
                for part in message["parts"]:
                    row = (f"{id}{part['id']}", id, f"ses_{n}", json.dumps(part))
                    connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
        connection.commit()
    return path


def goose_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """PRAGMA journal_mode = WAL;
            CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT);
            CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
            content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);"""
        )
        connection.execute("INSERT INTO sessions VALUES ('g1', '/w')")
        for each in export("goose")["conversation"]:
            row = ("g1", each["role"], json.dumps(each["content"]), each["created"])
            connection.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                " VALUES (?, ?, ?, ?)",
                row,
            )
        connection.commit()
    return path


@pytest.mark.parametrize("by_name", [True, False])
def test_the_sessions_of_a_database_are_read_and_the_file_stays_as_it_is(tmp_path, by_name):
    for path, names, lines in (
        (database(tmp_path / "opencode.db"), ["ses_1", "ses_2"], PAINTED),
        (goose_database(tmp_path / "sessions.db"), ["g1"], GROUND),
    ):
        before = path.read_bytes()
        with path.open("rb") as file:
            reading = read_transcripts(file if by_name else before)
        assert [each.name for each in reading.transcripts] == names
        assert all(said(each.messages) == lines for each in reading.transcripts)
        assert reading.refused == ()
        assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["opencode.db", "sessions.db"]


def test_a_log_beside_a_database_is_named(tmp_path):
    path = goose_database(tmp_path / "sessions.db")
    (tmp_path / "sessions.db-wal").write_bytes(b"later messages")
    with path.open("rb") as file:
        (refused,) = read_transcripts(file).refused
    assert "-wal" in refused.why


def test_other_databases_are_refused_by_what_they_are(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (name text)")
        connection.commit()
    for content in (path.read_bytes(), path.read_bytes()[:300]):
        with pytest.raises(UnreadableTranscript, match="database"):
            read_transcripts(content)


def test_a_database_has_the_bounds_of_an_upload(tmp_path):
    content = database(tmp_path / "opencode.db").read_bytes()
    bounds = JsonBounds(10_000, 50, "the most that an upload may have")
    with pytest.raises(UnreadableTranscript, match="more than 50 bytes"):
        read_transcripts(content, bounds=bounds)
