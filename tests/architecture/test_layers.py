"""Imports flow one way: a module may import from its own layer and from those below."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import chatmemory
from chatmemory.rooms import rooms as kernel_rooms

ROOT = Path(__file__).parents[2]

LAYERS = [
    [
        "chatmemory.data_files",
        "chatmemory.exceptions",
        "chatmemory.known_models",
        "chatmemory.patterns",
        "chatmemory.printing",
        "chatmemory.registry",
    ],
    ["chatmemory.messages"],
    ["chatmemory.lint", "chatmemory.windows"],
    ["chatmemory.recall"],
    ["chatmemory.advice"],
    ["chatmemory.formats", "chatmemory.stores.http", "chatmemory.stores.memory"],
    ["chatmemory.lint.linter"],
    ["chatmemory.memories"],
    ["chatmemory.tools"],
    ["chatmemory.strategies"],
    ["chatmemory.reports"],
    ["chatmemory.testing"],
    [
        "chatmemory.roles",
        "chatmemory.columns",
        "chatmemory.conf",
        "chatmemory.converters",
        "chatmemory.database",
        "chatmemory.database_errors",
        "chatmemory.distribution",
        "chatmemory.flag",
        "chatmemory.settings_reader",
        "chatmemory.leftovers",
        "chatmemory.roles",
        "chatmemory.search",
        "chatmemory.signals",
        "chatmemory.snapshots",
        "chatmemory.sqlite_files",
        "chatmemory.streaming",
    ],
    ["chatmemory.kept", "chatmemory.managers", "chatmemory.records", "chatmemory.tables"],
    ["chatmemory.models"],
    ["chatmemory.contradictions", "chatmemory.inserted", "chatmemory.keeper"],
    ["chatmemory.room"],
    ["chatmemory.rooms"],
    ["chatmemory.flags", "chatmemory.ledger"],
    ["chatmemory.reading", "chatmemory.rebuilds", "chatmemory.schema"],
    ["chatmemory.access", "chatmemory.keeping"],
    ["chatmemory.examination"],
    ["chatmemory.services"],
    ["chatmemory.explain"],
    ["chatmemory.live", "chatmemory.stores.database"],
    ["chatmemory.integrations"],
    ["chatmemory.api"],
    ["chatmemory.admin", "chatmemory.management"],
    ["inspector"],
    ["inspector.rooms"],
]
FOLDERS_OF_THE_INSPECTOR = (
    "access",
    "advice",
    "converters",
    "database_errors",
    "distribution",
    "exceptions",
    "explain",
    "flag",
    "flags",
    "formats",
    "known_models",
    "live",
    "managers",
    "memories",
    "messages",
    "patterns",
    "printing",
    "reading",
    "recall",
    "reports",
    "roles",
    "room",
    "rooms",
    "search",
    "services",
    "signals",
    "snapshots",
    "strategies",
    "streaming",
    "testing",
    "windows",
)
ALONE = (  # of other folders
    "chatmemory.api.bodies",
    "chatmemory.api.errors",
    "chatmemory.columns",
    "chatmemory.database",
    "chatmemory.settings_reader",
    "chatmemory.ledger.changes",
    "chatmemory.ledger.lookup",
    "chatmemory.ledger.validation",
    "chatmemory.management.base",
    "chatmemory.models",
)
PURE = (
    "chatmemory.advice",
    "chatmemory.exceptions",
    "chatmemory.formats",
    "chatmemory.integrations",
    "chatmemory.known_models",
    "chatmemory.lint",
    "chatmemory.memories",
    "chatmemory.messages",
    "chatmemory.patterns",
    "chatmemory.printing",
    "chatmemory.recall",
    "chatmemory.registry",
    "chatmemory.reports",
    "chatmemory.stores.http",
    "chatmemory.stores.memory",
    "chatmemory.strategies",
    "chatmemory.testing",
    "chatmemory.tools",
    "chatmemory.windows",
)


@cache
def modules() -> dict[str, Path]:
    found = {}
    for folder in ("chatmemory", "inspector"):
        for file in (ROOT / folder).rglob("*.py"):
            if "migrations" not in file.parts:
                name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = file
    return found


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imports(file: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return frozenset(found)


LAYER_OF = {member: number for number, members in enumerate(LAYERS) for member in members}


def layer(name: str) -> int | None:
    """Return the layer of the longest matching prefix of a module name, or None."""
    while name and name not in LAYER_OF:
        name = name.rpartition(".")[0]
    return LAYER_OF.get(name)


def test_imports_flow_one_way():
    without_layer = {name for name in modules() if layer(name) is None}
    assert without_layer == {"chatmemory", "chatmemory.apps", "chatmemory.stores"}
    assert not {
        name: sorted(above)
        for name, file in modules().items()
        if (own := layer(name)) is not None
        if (above := {i for i in imports(file) if (layer(i) or 0) > own})
    }


def test_the_core_and_formats_do_not_import_django():
    assert not {
        name
        for name, file in modules().items()
        if name.startswith(PURE)
        if {i.partition(".")[0] for i in imports(file)} & {"django", "rest_framework"}
    }


def test_the_kernel_imports_no_tool_for_files():
    """Reports on files, strategies and assertions for tests are made with it."""
    tools = ("chatmemory.reports", "chatmemory.strategies", "chatmemory.testing")
    assert not {
        name
        for name, file in modules().items()
        if name.startswith("chatmemory.") and not name.startswith(tools)
        if any(each.startswith(tools) for each in imports(file))
    }


def test_the_inspector_imports_named_folders_and_public_names():
    allowed = (*FOLDERS_OF_THE_INSPECTOR, *chatmemory.__all__)
    assert not {
        name: strange
        for name, file in modules().items()
        if name.startswith("inspector") and not name.startswith("inspector.rooms.")
        for strange in imports(file)
        if strange.startswith("chatmemory.") and strange.split(".")[1] not in allowed
        if not strange.startswith(ALONE)
    }


def test_a_room_imports_only_the_rooms_that_it_needs():
    room_of = re.compile(r"inspector\.rooms\.(\w+)")
    needed = {each.room: each.needs for each in kernel_rooms()}
    assert not {
        name: others
        for name, file in modules().items()
        if (own := room_of.match(name))
        if (others := {r[1] for i in imports(file) if (r := room_of.match(i))} - {own[1]})
        and not others <= {*needed[own[1]]}
    }


def test_one_module_names_the_database():
    """Django's `connection` and `transaction` are for the default database only."""
    of_django = {"django.db.connection", "django.db.transaction", "django.db.DEFAULT_DB_ALIAS"}
    found = {name for name, file in modules().items() if imports(file) & of_django}
    assert found == {"chatmemory.database"}


def test_no_sliced_queryset_is_used_in_pk_in():
    """SQLite ignores the slice, so that every row is affected: read the keys first."""
    for name, file in modules().items():
        assert "pk__in" not in file.read_text(), name


def test_no_import_is_in_a_circle():
    """Neither at the top of a file, nor in a function, nor for the types alone."""
    names = modules()
    edges = {name: all_imports(file) - {name} for name, file in names.items()}
    done: set[str] = set()
    for name in names:
        assert_no_circle(name, edges, (), done)


def package(name: str) -> str:
    """Return the folder of chatmemory or inspector, or of a room, to which a module belongs; a
    module that is in none of them stands for itself.
    """
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["rooms"] else 2])


def test_no_package_is_in_a_circle():
    """Neither by one file nor by several."""
    edges: dict[str, set[str]] = {package(name): set() for name in modules()}
    for name, file in modules().items():
        edges[package(name)] |= {package(each) for each in all_imports(file)} - {package(name)}
    done: set[str] = set()
    for each in edges:
        assert_no_circle(each, edges, (), done)


def all_imports(file: Path) -> set[str]:
    """Return the modules that a file imports; a package only for what it defines itself."""
    names, found = modules(), set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in names else node.module)
    return found & names.keys()


def assert_no_circle(
    name: str, edges: dict[str, set[str]], above: tuple[str, ...], done: set[str]
) -> None:
    assert name not in above, f"imports in a circle: {' -> '.join((*above, name))}"
    if name not in done:
        for imported in edges[name] - {name}:
            assert_no_circle(imported, edges, (*above, name), done)
        done.add(name)


def test_a_circle_is_found():
    with pytest.raises(AssertionError, match="in a circle: a -> b -> a"):
        assert_no_circle("a", {"a": {"b"}, "b": {"a"}}, (), set())


def test_any_type_has_its_reason_beside_it():
    """JSON values have the types of `messages.json_values`."""
    plugin = {"pytest_chatmemory": ROOT / "pytest_chatmemory/__init__.py"}
    for name, file in (modules() | plugin).items():
        lines = file.read_text("utf-8").splitlines()
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Name) and node.id == "Any":
                assert "  # " in lines[node.lineno - 1], (name, lines[node.lineno - 1])


def test_what_the_type_checker_is_told_to_ignore_has_its_reason():
    """Beside it, or in the comment above it."""
    told = re.compile(r"# type: ignore\[[a-z, -]+\](?P<why>.*)$")
    for name, file in modules().items():
        lines = file.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            if found := told.search(line):
                above = lines[number - 1].strip() if number else ""
                assert found["why"].strip().startswith("# ") or above.startswith("#"), (name, line)
