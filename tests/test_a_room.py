"""The example of docs/rooms.md, a room with a card and a column of the overview, is tried in a copy
of the tree. Each forgotten place is found by a test that every tree has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_rooms import ROOT, tree_without

PAGE = (ROOT / "docs/rooms.md").read_text("utf-8")
BLOCK = re.compile(r"^```\w+\n(?:# |<!-- )([\w/.]+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = dict(BLOCK.findall(PAGE.partition("## An example")[2]))
APPS, READS, CARD, CELL = FILES
README = "inspector/rooms/questions/README.md"
LIST = "inspector/__init__.py"
LAST = '    "inspector.rooms.search",\n'
LISTED = "tests/test_rooms.py::test_each_line_of_the_list_is_a_room"
DOCUMENTED = "tests/test_rooms.py::test_the_docs_list_the_rooms"


@pytest.fixture
def tree(tmp_path) -> Path:
    """The tree with the files of the room, without its line in the list."""
    tree = tree_without([], tmp_path / "tree")
    shutil.copytree(ROOT / "docs", tree / "docs")
    for name, text in {**FILES, README: "# Questions\n\nHow many there are.\n"}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, "utf-8")
    (tree / APPS).with_name("__init__.py").touch()
    return tree


@pytest.fixture
def run(tree, tmp_path):
    environment = {**os.environ, "CHATMEMORY_VAR": str(tmp_path / "var"), "PYTHONPATH": str(tree)}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'new.sqlite3'}"

    def run(*command: str, **more: str) -> str:
        """Run a command in the tree, and return what it prints if it fails, or an empty text."""
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tree,
            env=environment | more,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr if done.returncode else ""

    return run


def put_into_the_list(tree: Path) -> None:
    listed = (tree / LIST).read_text("utf-8")
    assert listed.count(LAST) == 1
    line = LAST.replace("search", "questions")
    (tree / LIST).write_text(listed.replace(LAST, LAST + line), "utf-8")


def test_a_room(tree, run):
    put_into_the_list(tree)
    assert run("tests.with_a_room") == ""


@pytest.mark.long
class TestAForgottenPlace:
    def test_the_line_in_the_list(self, tree, run):
        assert "questions" in run("pytest", "-q", LISTED)

    def test_the_page_of_the_room(self, tree, run):
        put_into_the_list(tree)
        assert "questions" in run("pytest", "-q", DOCUMENTED)
        assert run("pytest", "-q", DOCUMENTED, WRITE_ROOMS="1") == ""
        (tree / README).unlink()
        assert "No such file" in run("pytest", "-q", DOCUMENTED)

    @pytest.mark.parametrize("name", [CARD, CELL])
    def test_a_template(self, tree, run, name):
        put_into_the_list(tree)
        (tree / name).unlink()
        assert "TemplateDoesNotExist" in run("tests.with_a_room")

    @pytest.mark.parametrize(
        ("name", "words"), [("parts", "the page has the card"), ("cells", "the row has the cell")]
    )
    def test_a_hook(self, tree, run, name, words):
        put_into_the_list(tree)
        text = (tree / APPS).read_text("utf-8")
        (tree / APPS).write_text(text.replace(f"def {name}(", f"def other_{name}("), "utf-8")
        assert words in run("tests.with_a_room")

    def test_the_declaration_of_the_column(self, tree, run):
        put_into_the_list(tree)
        text = (tree / APPS).read_text("utf-8")
        (tree / APPS).write_text(re.sub(r"    columns = .*\n", "", text), "utf-8")
        assert "the overview has the head" in run("tests.with_a_room")
