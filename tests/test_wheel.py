"""The built wheel: it has all that it needs, and writes nothing where packages are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .wheels import install, python

VISIT = """
import inspector
from django.contrib.staticfiles import finders
from django.test import Client
page = Client().get("/sign-in/", headers={"host": "localhost"})
print(inspector.__file__)
print(page.status_code, bool(finders.find("inspector/css/base.css")))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    return install(tmp_path_factory.mktemp("wheel"))


def test_the_inspector_keeps_its_data_with_the_user(installed, tmp_path):
    before = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    where = {"installed": installed, "home": tmp_path}
    python("-m", "inspector", "migrate", "--verbosity", "0", **where)
    shell = python("-m", "inspector", "shell", "-v", "0", "-c", VISIT, **where)
    *_, package, page = shell.splitlines()
    assert Path(package) == installed / "inspector/__init__.py"
    assert page == "200 True"
    assert "no issues" in python("-m", "inspector", "check", **where)
    assert (tmp_path / "chatmemory/chatmemory.sqlite3").exists()
    after = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
