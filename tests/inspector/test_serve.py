"""The server of `make run`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.project.management.commands.serve import _listen

ROOT = Path(__file__).parents[2]


def test_responses_do_not_wait_for_acknowledgements():
    with _listen(0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.own_server
def test_another_link_is_printed_for_the_same_port(served):
    announced = served.process.stdout.readline()
    assert f"sign_in_link --port {served.port} prints another" in announced


def test_an_empty_database_is_told_before_the_server_starts(tmp_path):
    for command in ("serve", "sign_in_link"):
        ran = subprocess.run(
            [sys.executable, ROOT / "manage.py", command],
            env=os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 1
        assert "not up to date: run python manage.py migrate first" in ran.stderr
        assert "Traceback" not in ran.stderr
