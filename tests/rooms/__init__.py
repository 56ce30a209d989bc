"""The tests of rooms, a folder for each, and their additions to the tests of the whole site."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


def room_modules(name: str) -> Iterator[ModuleType]:
    """Yield the modules of this name of all rooms: `golden` has pages, `routes` has permissions."""
    for file in sorted(FOLDER.glob(f"*/{name}.py")):
        yield import_module(f"tests.rooms.{file.parent.name}.{name}")
