"""The rooms that tests need: in a tree without them, those tests are not collected.

A test file needs the rooms that it imports, itself or by another module of tests, wherever the
import stands. One that opens their pages without importing them says so, for a module, a class or
a function: `pytest.mark.needs("simulation")`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ROOM = re.compile(r"(?:inspector|tests)\.rooms\.(\w+)")


def missing_rooms(file: Path) -> frozenset[str]:
    """Return the rooms that a test file imports, and that are not in the tree."""
    return frozenset(name for name in rooms_of(file) if not is_there(name))


def is_there(room: str) -> bool:
    """Return whether a room is in the tree."""
    return (ROOT / "inspector/rooms" / room / "apps.py").exists()


@cache
def rooms_of(file: Path) -> frozenset[str]:
    """Return the rooms that a module of tests imports, itself or by other modules of tests."""
    found: set[str] = set()
    waiting, known = [file], {file}
    while waiting:
        for name in imported(waiting.pop()):
            if room := _ROOM.match(name):
                found.add(room[1])
            elif name.startswith("tests."):
                others = {each for each in _files_of(name) if each.exists()} - known
                waiting += others
                known |= others
    return frozenset(found)


def imported(file: Path) -> Iterator[str]:
    """Yield the full names of what a module imports."""
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
