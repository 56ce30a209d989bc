"""The rooms that tests need: in a tree without them, those tests are left out.

A test file needs the rooms that it imports, itself or by another module of tests, wherever the
import stands. In a tree without some rooms, a test is skipped when it asks for a service, a command
or an address that the tree does not have: the whole tree has each, as all tests pass there. A test
that needs a room in another way, such as by what a page shows, says so, and so can a module or a
class: `pytest.mark.needs("simulation")`. The tests in whole_site.txt need all rooms.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, Resolver404, resolve

ROOT = Path(__file__).parents[1]
WHOLE_SITE = Path(__file__).with_name("whole_site.txt")
_ROOM = re.compile(r"(?:inspector|tests)\.rooms\.(\w+)")
_ASKED = (  # where an unknown name of a service, a command or an address is refused
    "chatmemory/services.py",
    "django/core/management/__init__.py",
    "django/urls/resolvers.py",
)


class NoSuchAddress(Exception):
    """A test asked for an address that the tree does not have."""


def refusing_unknown_addresses(request: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the method `request` of test clients, which then raises `NoSuchAddress` for an address
    that no pattern of the tree matches.
    """

    def refusing(client: Client, **environ: object) -> HttpResponse:
        response = request(client, **environ)
        if response.status_code == 404:
            try:
                resolve(str(environ["PATH_INFO"]))
            except Resolver404 as error:
                raise NoSuchAddress(environ["PATH_INFO"]) from error
        return response

    return refusing


def asks_for_what_is_missing(failed: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether a test failed because it asked, itself, for a service, a command or an address
    that the tree does not have. What other code asks for, every tree must have.
    """
    if isinstance(failed.value, NoSuchAddress):
        return True
    if not isinstance(failed.value, AttributeError | CommandError | NoReverseMatch):
        return False
    files = [entry.path.as_posix() for entry in failed.traceback]
    asking = [file for file in files if not file.endswith(_ASKED)]
    return files[-1].endswith(_ASKED) and str(ROOT / "tests") in asking[-1]


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
