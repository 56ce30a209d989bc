"""The deployed server behind PgBouncer, as docs/operations.md says."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import DatabaseError, connection

from chatmemory.database import check_sessions_are_kept
from chatmemory.database_errors import explain_error

from ..connecting import connected_to
from ..deployed import Deployed
from ..load.cluster import USER
from ..serving import ROOT, Served, database, free_port
from .test_restore import POSTGRESQL

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not POSTGRESQL, reason="PgBouncer is a proxy of PostgreSQL"),
    pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed"),
]


def documented() -> tuple[list[str], str]:
    """The settings of PgBouncer, and the statement that replaces the settings of connections."""
    text = (ROOT / "docs" / "operations.md").read_text()
    section = text.partition("Behind **PgBouncer**")[2].partition("\n\n")[0].replace("\n", " ")
    (statement,) = re.findall("`(ALTER ROLE [^`]+)`", section)
    return re.findall(r"`(\w+ = \w+)`", section), statement


@contextmanager
def pooling(url: str, *settings: str) -> Iterator[str]:
    """The URL of a PgBouncer in front of a database."""
    to, port = urlsplit(url), free_port()
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))  # pytest's is closed to other accounts
    (folder / "users").write_text(f'"{to.username}" ""\n')
    (folder / "pgbouncer.ini").write_text(
        "\n".join(
            [
                f"[databases]\n* = host={to.hostname} port={to.port}",
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =",
                f"auth_type = trust\nauth_file = {folder}/users",
                *settings,
            ]
        )
    )
    as_user = []
    if os.getuid() == 0:  # which PgBouncer refuses to run as
        as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]
        shutil.chown(folder, USER)
    pooler = Popen([*as_user, PGBOUNCER, "--quiet", str(folder / "pgbouncer.ini")])
    try:
        while pooler.poll() is None:
            with suppress(ConnectionError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
        yield to._replace(netloc=f"{to.username}@127.0.0.1:{port}").geturl()
    finally:
        pooler.terminate()
        pooler.wait()
        shutil.rmtree(folder)


def test_adds_reads_and_live_pages_go_through_it(template, tmp_path):
    settings, statement = documented()
    role = f"pooled_{os.getpid()}"
    with database(tmp_path, copy_of=template.url) as url, psycopg.connect(url) as admin:
        admin.autocommit = True
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
        admin.execute(statement.replace("chatmemory", role))
        try:
            own = urlsplit(url)
            own = own._replace(netloc=f"{role}@{own.hostname}:{own.port}").geturl()
            with pooling(own, *settings) as pooled, Served(pooled, tmp_path, template.token) as it:
                deployed = Deployed(it)
                deployed.start()
                it.create("watched", limit=3)
                stream = deployed.stream("watched")
                assert next(stream) == "retry: 1000"
                for n in range(20):
                    it.say("watched", str(n))
                said = (line for line in stream if line == "data: 20")
                assert next(said)
                assert [text for _, text in it.history("watched")] == [*map(str, range(20))]
                assert "1 conversation verified" in it.manage("verify_memories")
                with psycopg.connect(pooled) as asking:
                    assert asking.execute("SHOW lock_timeout").fetchone() == ("20s",)
                assert deployed.stop() == 0
                deployed.notices.close()
        finally:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role]
            )
            admin.execute(f"DROP ROLE {role}")


def error_of(statement: str) -> str | None:
    """The words for the error of a statement on Django's connection, if it has one."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        return explain_error(error)
    return None


DECLARED = "DECLARE rows CURSOR WITH HOLD FOR SELECT 1"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_transaction_mode_is_refused_by_name(mode, template, tmp_path, django_db_blocker):
    """Connections share sessions in this mode, and so the cursors of long lists."""
    settings = (f"pool_mode = {mode}", "ignore_startup_parameters = options")
    with (
        database(tmp_path, copy_of=template.url) as url,
        django_db_blocker.unblock(),
        pooling(url, *settings) as pooled,
        connected_to(pooled),
        psycopg.connect(pooled, autocommit=True) as other,
    ):
        found = check_sessions_are_kept()
        other.execute(DECLARED)
        error = error_of(DECLARED)
    if mode == "session":
        assert (found, error) == ([], None)
    else:
        assert "is behind PgBouncer in transaction mode: use session mode." in found[0].msg
        assert error is not None
        assert "the database is behind PgBouncer in transaction mode: use session mode" in error
