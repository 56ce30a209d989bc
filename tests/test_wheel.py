"""The built wheel: it has all that it needs, and writes nothing where packages are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
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
    """A folder with the wheel's content, beside which nothing of the checkout can be imported."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("django_chatmemory-*.whl")
    ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def python_m(module: str, *arguments: str, installed: Path, home: Path) -> str:
    ours = {"DATABASE_URL", "CHATMEMORY_VAR", "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=home,
        env=environment | {"PYTHONPATH": str(installed), "XDG_DATA_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_inspector_keeps_its_data_with_the_user(installed, tmp_path):
    before = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    where = {"installed": installed, "home": tmp_path}
    python_m("inspector", "migrate", "--verbosity", "0", **where)
    *_, package, page = python_m("inspector", "shell", "-v", "0", "-c", VISIT, **where).splitlines()
    assert Path(package) == installed / "inspector/__init__.py"
    assert page == "200 True"
    assert "no issues" in python_m("inspector", "check", **where)
    assert (tmp_path / "chatmemory/chatmemory.sqlite3").exists()
    after = {path for path in installed.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
