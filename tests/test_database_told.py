"""Commands say in a sentence what is wrong with the database."""

from __future__ import annotations

import os
import subprocess

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from .connecting import connected, connected_to
from .serving import MANAGE, free_port

ASKING = {
    "vacuum": [],
    "create_token": ["app"],
    "import_transcripts": ["chats.json"],
    "load_demo": [],
    "purge_memories": ["--label", "team"],
    "recall": [],
    "sign_in_link": [],
    "verify_memories": [],
}


@pytest.fixture
def chats(tmp_path, monkeypatch):
    (tmp_path / "chats.json").write_text('[{"role": "user", "content": "Hello"}]')
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ASKING)
def test_a_database_without_tables_is_told(db, chats, tmp_path, command):
    if connection.vendor != "sqlite":
        pytest.skip("a file is made more quickly")
    with (
        connected(str(tmp_path / "empty.sqlite3")),
        pytest.raises(CommandError, match=r"run .*manage\.py migrate"),
    ):
        call_command(command, *ASKING[command])


@pytest.mark.parametrize("command", ASKING)
def test_a_database_that_nobody_serves_is_told(db, chats, command):
    url = f"postgresql://ada:lovelace@127.0.0.1:{free_port()}/chats"
    with connected_to(url), pytest.raises(CommandError) as told:
        call_command(command, *ASKING[command])
    assert "the database is down: connection failed" in str(told.value)
    assert "lovelace" not in str(told.value)


@pytest.mark.parametrize("command", ["migrate", "serve", "verify_memories"])
def test_the_cause_that_a_pool_hides_is_told(tmp_path, command):
    port = free_port()
    url = f"postgresql://ada:lovelace@127.0.0.1:{port}/chats"
    environment = os.environ | {"DATABASE_URL": url, "CHATMEMORY_VAR": str(tmp_path)}
    ran = subprocess.run(
        [*MANAGE, command], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "CommandError: the database is down: connection failed" in ran.stderr
    assert f"port {port} failed: Connection refused" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "lovelace" not in ran.stderr
