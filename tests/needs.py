"""The rooms that tests need: in a tree without them, those tests are not collected.

A test file needs the rooms that it imports, itself or by another module of tests, wherever the
import stands. A test that opens pages of a room without importing it says so, and so can a module
or a class: `pytest.mark.needs("simulation")`. The tests in whole_site.txt need all rooms.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHOLE_SITE = Path(__file__).with_name("whole_site.txt")
_ROOM = re.compile(r"(?:inspector|tests)\.rooms\.(\w+)")


def missing_rooms(file: Path) -> frozenset[str]:
    """Return the rooms that a test file imports, and that are not in the tree."""
    return frozenset(name for name in rooms_of(file) if not is_there(name))


def is_there(room: str) -> bool:
    """Return whether a room is in the tree."""
    return (ROOT / "inspector/rooms" / room / "apps.py").exists()


def needs_what_is_missing(item: pytest.Item) -> bool:
    """Return whether a test needs a room that is not in the tree."""
    named = (room for mark in item.iter_markers("needs") for room in mark.args)
    if not all(map(is_there, named)):
        return True
    name = getattr(item, "originalname", item.name)
    return not is_whole() and f"{item.path.relative_to(ROOT)}::{name}" in needing_all()


@cache
def needing_all() -> frozenset[str]:
    """Return the tests that need all rooms, as `file::function`."""
    lines = WHOLE_SITE.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


@cache
def is_whole() -> bool:
    """Return whether no room is missing: the first line of the file names all."""
    return all(map(is_there, all_rooms()))


def all_rooms() -> list[str]:
    first = WHOLE_SITE.read_text("utf-8").partition("\n")[0]
    return first.removeprefix("# rooms: ").split()


@cache
def rooms_of(file: Path) -> frozenset[str]:
    """Return the rooms that a module of tests imports, itself or by other modules of tests."""
    found: set[str] = set()
    waiting, known = [file], {file}
    while waiting:
        for name in imported(waiting.pop()):
            if (room := _ROOM.match(name)) and room[1] in all_rooms():
                found.add(room[1])
            if name.startswith("tests."):
                others = {each for each in _files_of(name) if each.exists()} - known
                waiting += others
                known |= others
    return frozenset(found)


@cache
def imported(file: Path) -> frozenset[str]:
    """Return the full names of what a module imports."""
    return frozenset(_imported(file))


def _imported(file: Path) -> Iterator[str]:
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _files_of(name: str) -> list[Path]:
    """Return the files that the name of a module or of one of its attributes may stand for."""
    path = ROOT.joinpath(*name.split("."))
    return [path.with_suffix(".py"), path / "__init__.py"]
