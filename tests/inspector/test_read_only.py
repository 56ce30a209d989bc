"""A server whose database is on a read-only file system."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy

import pytest
import requests

from ..serving import Served, Template


@pytest.fixture
def read_only(tmp_path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder on a file system of its own, and what makes it read-only."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    again = ["mount", "-o", "remount,ro", str(folder)]
    yield folder, lambda: subprocess.run(again, check=True)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_what_can_be_read_is_answered(template: Template, tmp_path, read_only):
    folder, make_read_only = read_only
    if not template.url.startswith("sqlite"):
        pytest.skip("a PostgreSQL has its own file system")
    file = folder / "chats.sqlite3"
    copy(template.url.removeprefix("sqlite:///"), file)
    make_read_only()
    with Served(f"sqlite:///{file}", tmp_path, template.token) as site:
        site.start()
        assert site.announced_link == f"{site.url}/"
        assert requests.get(f"{site.url}/readyz").text == "ready, read-only\n"
        for page in ("sign-in", "learn", "learn/tool-calls"):
            assert requests.get(f"{site.url}/{page}/").status_code == 200
        assert site.api.get(f"{site.url}/api/v1/memories/").json()["results"] == []
        refused = site.api.post(f"{site.url}/api/v1/memories/", json={"id": "m", "policy": None})
        assert refused.status_code == 503
        assert refused.json()["title"] == "Database read-only"
