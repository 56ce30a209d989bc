"""A public name of a folder exists once: who looks for it finds one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .test_layers import modules, package, parsed

# What each module of a folder may define, because all of them are called in the same way
INTERFACES = {
    "chatmemory.formats": {
        *("content_of", "find", "find_each", "is_empty", "is_record", "parse", "plain", "render"),
        *("session_of", "type_of"),
    },
    "chatmemory.management": {"Command"},
    "chatmemory.reports": {"add_arguments", "report"},
    "chatmemory.strategies": {"written"},
    "inspector.project": {"Command"},
}


def test_a_public_name_of_a_folder_exists_once():
    """Rooms are left out: a page, a tool and a command of a room may have the name of what they
    call.
    """
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module, file in modules().items():
        if not module.startswith("inspector.rooms."):
            for name in defined_in(file):
                places[package(module), name].append(module)
    assert not {
        f"{folder}: {name}": found
        for (folder, name), found in places.items()
        if len(found) > 1 and name not in INTERFACES.get(folder, ())
    }


def defined_in(file: Path) -> Iterator[str]:
    """Yield the public functions and classes of a module. An overload counts once."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    yield from {
        node.name
        for node in parsed(file).body
        if isinstance(node, kinds) and not node.name.startswith("_")
    }
