"""Each room can be removed: its four folders, and its line in the list.

`tests/without_a_room.py` says what the tree must then do. Rooms that need it are removed with it.

`make rooms` tries each, and writes down which files it had; `make test` tries those that have other
files now, and the tree without all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import sample

import pytest
from django.core.management import call_command

import inspector
from chatmemory.rooms import rooms
from inspector import demo

from .connecting import connected_to
from .needs import all_rooms, needing_all
from .stored.test_upgrade import SITE

ROOT = Path(__file__).parents[1]
COPIED = ("manage.py", "pyproject.toml", "chatmemory", "inspector", "templates", "static", "tests")
# Bytecode is copied too: it is valid for each file whose time and size are the same.
LEFT_OUT = shutil.ignore_patterns("node_modules", "*.xz", "golden", "pages")
LEFT_OUT_OF_ALL = shutil.ignore_patterns("node_modules")
LEFT_OUT_OF_A_PAIR = (
    *(
        "browser",
        "deploy",
        "conformance",
        "fuzz",
        "load",
        "citus",
        "test_rooms.py",
        "test_wheel.py",
    ),
    *("test_a_room.py", "test_a_column.py", "test_docs.py", "golden"),
)
FOLDERS = ("inspector/rooms", "templates/rooms", "static/rooms", "tests/rooms")
DOCS = ROOT / "docs/rooms.md"
BEGIN = "<!-- made by tests/test_rooms.py from the first paragraphs of their pages -->"
END = "<!-- end -->"
NAMES = [name.rpartition(".")[2] for name in inspector.ROOMS]


def test_each_line_of_the_list_is_a_room():
    assert [room.name for room in rooms()] == inspector.ROOMS
    assert {room.label for room in rooms()} == {f"chatmemory_{name}" for name in NAMES}
    folders = {file.parent.name for file in (ROOT / "inspector/rooms").glob("*/apps.py")}
    assert folders == set(NAMES)


def test_the_docs_list_the_rooms():
    """`WRITE_ROOMS=1 pytest tests/test_rooms.py` writes the list anew."""
    text = DOCS.read_text("utf-8")
    before, rest = text.split(BEGIN)
    listed = "\n".join(map(line_of, NAMES))
    written = f"{before}{BEGIN}\n{listed}\n{END}{rest.partition(END)[2]}"
    if os.environ.get("WRITE_ROOMS"):
        DOCS.write_text(written, "utf-8")
    assert DOCS.read_text("utf-8") == written


def line_of(name: str) -> str:
    """Return the line of a room: its title, and the first sentence of its page."""
    page = (ROOT / "inspector/rooms" / name / "README.md").read_text("utf-8")
    title, sentence = page.split("\n\n")[:2]
    sentence = re.split(r"(?<=[.:])\s", " ".join(sentence.split()))[0].rstrip(".:")
    title = title.removeprefix("# ")
    return f"- [{title}](../inspector/rooms/{name}/README.md) (`{name}`): {sentence}."


@pytest.fixture(scope="module")
def migrated(django_db_blocker, tmp_path_factory) -> Path:
    """A database of an earlier version that the whole tree has migrated and kept."""
    import gzip

    file = tmp_path_factory.mktemp("whole") / "site.sqlite3"
    file.write_bytes(gzip.decompress(SITE.read_bytes()))
    with django_db_blocker.unblock(), connected_to(f"sqlite:///{file}"):
        call_command("migrate", verbosity=0)
        demo.load()
        call_command("keep", once=True)
    return file


ALL = "all of them"
IS_WHOLE = os.environ.get("CONFORMANCE") == "all"
TRIED = "removed.txt"  # in the folder of a room's tests: the digest of its files when it was tried


@pytest.mark.parametrize("name", [ALL, *NAMES])
def test_a_room_can_be_removed(name, migrated, tmp_path):
    """The law of windows is replayed without all rooms; `make rooms` replays it without each."""
    tried, digest = ROOT / "tests/rooms" / name / TRIED, digest_of(name)
    if not IS_WHOLE and tried.exists() and tried.read_text("utf-8").strip() == digest:
        pytest.skip("the files of the room are those that `make rooms` has tried")
    tree = tree_without(NAMES if name == ALL else with_dependents([name]), tmp_path / "tree")
    kept = shutil.copy(migrated, tmp_path / "migrated.sqlite3")
    environment = {**os.environ, "CHATMEMORY_VAR": str(tmp_path / "var"), "PYTHONPATH": str(tree)}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    command = [sys.executable, "-m", "tests.without_a_room", str(kept)]
    if name == ALL or IS_WHOLE:
        command.append("--law")
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-6_000:]
    if IS_WHOLE and name != ALL:
        tried.write_text(f"{digest}\n", "utf-8")


def digest_of(name: str) -> str:
    """Return the digest of all files of a room, with their paths."""
    digest = sha256()
    for folder in FOLDERS:
        for file in sorted((ROOT / folder / name).rglob("*")):
            if file.is_file() and file.name != TRIED and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def with_dependents(names: Iterable[str]) -> set[str]:
    """Return these rooms and all that need one of them."""
    removed = set(names)
    while more := {r.room for r in rooms() if removed & {*r.needs}} - removed:
        removed |= more
    return removed


def tree_without(names: Iterable[str], tree: Path) -> Path:
    """Copy the tree, and remove the folders and the lines of these rooms."""
    for each in COPIED:
        source = ROOT / each
        if source.is_dir():
            shutil.copytree(source, tree / each, ignore=LEFT_OUT)
        else:
            tree.mkdir(exist_ok=True)
            shutil.copy(source, tree / each)
    listed = tree / "inspector/__init__.py"
    for name in names:
        for folder in FOLDERS:
            shutil.rmtree(tree / folder / name, ignore_errors=True)
        text, count = re.subn(rf'    "inspector\.rooms\.{name}",\n', "", listed.read_text("utf-8"))
        assert count == 1
        listed.write_text(text, "utf-8")
    return tree


def test_tests_that_need_all_rooms_exist():
    """tests/needs.py leaves them out in a tree without one of them."""
    assert all_rooms() == NAMES
    for name in needing_all():
        file, function = name.split("::")
        assert f"def {function}(" in (ROOT / file).read_text("utf-8"), name


def test_a_random_pair_can_be_removed(migrated, tmp_path):
    """Another pair each time, or `PAIR=name,name`. `make rooms` also runs the tests of what is
    left, but those of browsers, deployments and rooms of their own.
    """
    pair = os.environ["PAIR"].split(",") if os.environ.get("PAIR") else sample(NAMES, 2)
    tree = tree_without(with_dependents(pair), tmp_path / "tree")
    kept = shutil.copy(migrated, tmp_path / "migrated.sqlite3")
    environment = {**os.environ, "CHATMEMORY_VAR": str(tmp_path / "var"), "PYTHONPATH": str(tree)}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'new.sqlite3'}"
    commands = [["tests.without_a_room", str(kept)]]
    if IS_WHOLE:
        for name in ("docs", "tests", "benchmarks", "examples", "pytest_chatmemory", "deploy"):
            shutil.copytree(ROOT / name, tree / name, ignore=LEFT_OUT_OF_ALL, dirs_exist_ok=True)
        for file in ROOT.glob("[!.]*"):  # what tests read, such as the changelog
            if file.is_file():
                shutil.copy(file, tree / file.name)
        for name in with_dependents(pair):
            shutil.rmtree(tree / "tests/rooms" / name, ignore_errors=True)
        ignored = [f"--ignore=tests/{name}" for name in LEFT_OUT_OF_A_PAIR]
        commands.append(["pytest", "-q", "-p", "no:cacheprovider", "tests", *ignored])
        for name in [each for each in environment if each.startswith(("PYTEST_", "CONFORMANCE"))]:
            del environment[name]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{pair}\n{done.stdout[-4_000:]}{done.stderr[-6_000:]}"


def test_tables_that_a_removed_room_left_are_named(db, migrated_url):
    """Its tables may hold words; vacuum drops them."""
    with closing(sqlite3.connect(migrated_url.removeprefix("sqlite:///"))) as site:
        site.execute("CREATE TABLE chatmemory_gone_words (word text)")
        site.execute("INSERT INTO django_migrations VALUES (NULL, 'chatmemory_gone', '0001', 0)")
        site.commit()
    with connected_to(migrated_url):
        from chatmemory.leftovers import check_leftover_tables, drop_leftover_tables

        (found,) = check_leftover_tables()
        assert "'gone' is not installed" in found.msg
        assert "chatmemory_gone_words" in found.msg
        assert drop_leftover_tables() == ["chatmemory_gone_words"]
        assert check_leftover_tables() == []
