"""Each room can be removed: its four folders, and its line in the list.

`tests/without_a_room.py` says what the tree must then do. Rooms that need it are removed with it.

`make rooms` tries each, and writes down which files it had. `make test` tries those that have other
files now, several at once if they are many (tests/removals.py), a random pair, and the tree without
all of them.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
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
from .removals import removals, shown_without, with_dependents
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
OF_TESTS = ("PYTEST_", "CONFORMANCE")  # variables that are about this run
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


IS_WHOLE = os.environ.get("CONFORMANCE") == "all"
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
TRIED = "removed.txt"  # in the folder of a room's tests: the digest of its files when it was tried
MOST_TREES = 10  # of changed rooms


@pytest.mark.skipif(not IS_WHOLE, reason="make rooms removes each room alone")
@pytest.mark.parametrize("name", NAMES)
def test_a_room_can_be_removed(name, migrated, tmp_path):
    try_without(with_dependents([name]), migrated, tmp_path, "--law")
    tried_file(name).write_text(f"{digest_of(name)}\n", "utf-8")


@pytest.mark.skipif(IS_WHOLE, reason="each is removed alone")
@pytest.mark.parametrize("tree", range(MOST_TREES))
def test_changed_rooms_can_be_removed(tree, migrated, tmp_path):
    """Those with other files than `make rooms` has tried: alone if they are few, else together."""
    trees = removals([name for name in NAMES if has_changed(name)])
    if tree >= len(trees):
        pytest.skip("so few rooms have other files than make rooms has tried")
    try_without(trees[tree], migrated, tmp_path)


def test_all_rooms_can_be_removed(migrated, tmp_path):
    """The law of windows is replayed, too."""
    try_without(NAMES, migrated, tmp_path, "--law")


def try_without(names: Iterable[str], migrated: Path, folder: Path, *options: str) -> None:
    """Remove rooms, and run the checks of such a tree."""
    tree = tree_without(names, folder / "tree", left_out_of_checks)
    kept = shutil.copy(migrated, folder / "migrated.sqlite3")
    assert run_in(tree, folder, "tests.without_a_room", str(kept), *options) == "", sorted(names)


def run_in(tree: Path, folder: Path, *command: str) -> str:
    """Run a module of Python in a tree, with an empty database and its files in a folder.

    Return "", or how it failed and what it printed.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(OF_TESTS)},
        "CHATMEMORY_VAR": str(folder / "var"),
        "PYTHONPATH": str(tree),
        "DATABASE_URL": f"sqlite:///{folder / 'new.sqlite3'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tree, env=environment, capture_output=True, text=True
    )
    if done.returncode == 0:
        return ""
    return f"it ended with {done.returncode}\n{done.stdout[-4_000:]}{done.stderr[-6_000:]}"


def tried_file(name: str) -> Path:
    return ROOT / "tests/rooms" / name / TRIED


def has_changed(name: str) -> bool:
    """Return whether a room has other files than when it was removed alone."""
    file = tried_file(name)
    return not file.exists() or file.read_text("utf-8").strip() != digest_of(name)


@cache
def digest_of(name: str) -> str:
    """Return the digest of all files of a room, with their paths, but without docstrings."""
    digest = sha256()
    for folder in FOLDERS:
        for file in sorted((ROOT / folder / name).rglob("*")):
            if file.is_file() and file.name != TRIED and file.suffix != ".pyc":
                read = file.read_bytes()
                digest.update(f"{file.relative_to(ROOT)}\0".encode())
                digest.update(without_docstrings(read) if file.suffix == ".py" else read)
    return digest.hexdigest()


def without_docstrings(source: bytes) -> bytes:
    """Return the source of a module without the lines of its docstrings.

    No removal depends on a docstring, and docstrings change more often than code.
    """
    lines: list[bytes | None] = [*source.splitlines()]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines[docstring.lineno - 1 : docstring.end_lineno] = [None] * (
                docstring.end_lineno - docstring.lineno + 1
            )
    return b"\n".join(line for line in lines if line is not None)


def test_a_docstring_does_not_change_the_digest_of_a_room():
    read = b'def size(list):\n    """Return %b."""\n    return len(list)\n'
    assert without_docstrings(read % b"the size") == without_docstrings(read % b"a\n    number")
    assert without_docstrings(read) != without_docstrings(read.replace(b"len(", b"sum("))


def left_out_of_checks(folder: str, names: list[str]) -> set[str]:
    """Leave out what `tests.without_a_room` does not read: all folders of tests but one."""
    left_out = LEFT_OUT(folder, names)
    if Path(folder) == ROOT / "tests":
        folders = {name for name in names if (ROOT / "tests" / name).is_dir()}
        left_out |= folders - {"conformance", "__pycache__"}
    return left_out


def tree_without(
    names: Iterable[str], tree: Path, left_out: Callable[..., set[str]] = LEFT_OUT
) -> Path:
    """Copy the tree, and remove the folders and the lines of these rooms."""
    for each in COPIED:
        source = ROOT / each
        if source.is_dir():
            shutil.copytree(source, tree / each, ignore=left_out)
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


@pytest.mark.parametrize("count", range(1, len(NAMES) + 1))
def test_few_trees_show_what_removing_each_room_alone_would(count):
    changed = NAMES[:count]
    trees = removals(changed)
    alone = [shown_without(with_dependents([name])) for name in changed]
    assert frozenset().union(*alone) <= frozenset().union(*map(shown_without, trees))
    assert len(trees) <= min(count, MOST_TREES)


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
    removed = with_dependents(pair)
    try_without(removed, migrated, tmp_path)
    if IS_WHOLE:
        add_what_tests_read(tmp_path / "tree", removed)
        ignored = [f"--ignore=tests/{name}" for name in LEFT_OUT_OF_A_PAIR]
        arguments = ["-q", "-p", "no:cacheprovider", "tests", *ignored]
        assert run_in(tmp_path / "tree", tmp_path, "pytest", *arguments) == "", pair


def add_what_tests_read(tree: Path, removed: Iterable[str]) -> None:
    """Copy all else of the whole tree, such as documents and the changelog."""
    for name in ("docs", "tests", "benchmarks", "examples", "pytest_chatmemory", "deploy"):
        shutil.copytree(ROOT / name, tree / name, ignore=LEFT_OUT_OF_ALL, dirs_exist_ok=True)
    for file in ROOT.glob("[!.]*"):
        if file.is_file():
            shutil.copy(file, tree / file.name)
    for name in removed:
        shutil.rmtree(tree / "tests/rooms" / name, ignore_errors=True)


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
