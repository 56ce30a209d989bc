"""Print what changes cost today, and how far the house keeps its own rules.

    python -m benchmarks.costs

The costs themselves are tried by tests that make each change: tests/test_a_column.py,
tests/test_a_room.py, tests/test_one_file_each.py, tests/explain/test_the_oldest.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("chatmemory", "inspector", "pytest_chatmemory")


def files(*folders: str) -> Iterator[Path]:
    return chain.from_iterable(sorted((ROOT / folder).rglob("*.py")) for folder in folders)


def lines_with(pattern: str, *folders: str) -> list[str]:
    """Return the lines of Python in which a pattern is found."""
    found = re.compile(pattern)
    return [
        line
        for file in files(*folders)
        for line in file.read_text("utf-8").splitlines()
        if found.search(line)
    ]


def attributes_set(file: str, name: str) -> int:
    """Return how many attributes the constructor of a class sets."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    of_class = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name)
    made = [n for n in of_class.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return len(
        {
            node.attr
            for node in ast.walk(made[0])
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
    )


def rows() -> Iterator[tuple[str, object]]:
    from chatmemory.flag import Flag
    from tests.with_a_column import PLACES

    wordings = ("Its tool call left", "rest of a turn", "A summary took its place")
    yield "files of a column of messages, with its migration", len(PLACES) + 1
    for words in wordings:
        found = [
            file.relative_to(ROOT).as_posix()
            for file in files(*CODE)
            if any(f'"{words}' in line for line in file.read_text("utf-8").splitlines())
        ]
        yield f"files of the product with the wording “{words}”", len(found)
    ignored = lines_with(r"# type: ignore\[", *CODE)
    yield "lines that the type checker ignores", len(ignored)
    yield (
        "  of them without a reason beside it",
        sum(not re.search(r"# type: ignore\[[a-z, -]+\]  #", line) for line in ignored),
    )
    yield "fields of Flag", len(fields(Flag))
    page = "inspector/conversation/page.py"
    yield "attributes that ConversationPage sets", attributes_set(page, "ConversationPage")
    yield "migrations of the kernel", len([*files("chatmemory/migrations")]) - 1


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    django.setup()
    for name, value in rows():
        print(f"{value!s:>6}  {name}")
