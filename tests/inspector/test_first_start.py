"""The first commands of a new user: the data folder is empty, and nobody has run `migrate`."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from .. import processes
from ..wheels import environment

TYPED = "import sys; sys.argv[0] = 'chatmemory'; from inspector.command import main; main()"


@pytest.fixture
def typed(warm_processes, tmp_path):
    """Types a command in an empty home folder; returns the process."""

    def typed(*arguments: str, **others: str) -> processes.Forked:
        kept = environment(CHATMEMORY_VAR=str(tmp_path / "var"), **others)
        del kept["PYTHONPATH"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-c", TYPED, *arguments]
        return processes.start(command, kept, cwd=tmp_path, **pipes)

    return typed


def ended(process: processes.Forked) -> tuple[int, str, str]:
    with process.stdout, process.stderr:
        out, errors = process.stdout.read(), process.stderr.read()
    return process.wait(), out, errors


@pytest.fixture
def chat(tmp_path) -> str:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "My order is A-1182."}]))
    return str(file)


def tables(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "var/chatmemory.sqlite3")) as file:
        return {name for (name,) in file.execute("SELECT name FROM sqlite_master")}


def test_import_makes_the_schema_and_prints_the_ids(typed, chat):
    told = (
        "chat.json (openai_chat): 1 conversation with 1 message imported, 0 already imported, "
        "0 refused\n  chat-1: 1 message\n"
    )
    assert ended(typed("import", chat)) == (0, told, "")  # no bar of progress in a file
    code, out, _ = ended(typed("list", "--json"))
    assert (code, json.loads(out.splitlines()[0])["id"]) == (0, "chat-1")


def test_two_first_commands_at_once_make_it_once(typed, chat, tmp_path):
    """As agents start one server in each window."""
    both = [typed("import", chat), typed("mcp")]
    assert [(code, errors) for code, _, errors in map(ended, both)] == [(0, "")] * 2
    assert "chatmemory_memory" in tables(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["list"], 0, "0 conversations"),
        (["show", "nobody"], 2, "no conversation has the id 'nobody'"),
    ],
)
def test_a_command_that_reads_answers_as_for_an_empty_database(
    typed, tmp_path, arguments, code, told
):
    ended_with, out, errors = ended(typed(*arguments))
    assert ended_with == code, errors
    assert told in out + errors
    assert not tables(tmp_path)


def test_a_database_that_was_named_is_not_made(typed, chat, tmp_path):
    url = f"sqlite:///{tmp_path}/mine.sqlite3"
    code, _, errors = ended(typed("import", chat, DATABASE_URL=url))
    assert code == 1
    assert "run manage.py migrate, or chatmemory migrate" in errors
