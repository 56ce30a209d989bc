"""Count what is large, and what is told to the type checker: `python -m benchmarks.figures`.

With `--list`, each of them is named.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.capabilities import ROOT, lines_of

FOLDERS = ("chatmemory", "inspector", "pytest_chatmemory")
LONG_FILE, LARGE_CLASS, MANY_FIELDS = 600, 250, 10
_IGNORED = re.compile(r"# type: ignore\[")


def modules() -> Iterator[Path]:
    """Yield the modules of the product, without migrations, relative to the root."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in file.parts:
                yield file.relative_to(ROOT)


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield each class with its place, such as `chatmemory/flag.py:Flag`."""
    for file in modules():
        for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{file}:{node.name}", node


def long_files() -> Iterator[str]:
    for file in modules():
        if (lines := lines_of(file)) > LONG_FILE:
            yield f"{file}: {lines} lines"


def large_classes() -> Iterator[str]:
    for place, node in classes():
        lines = (node.end_lineno or 0) - node.lineno + 1
        if lines > LARGE_CLASS:
            yield f"{place}: {lines} lines"


def wide_values() -> Iterator[str]:
    """Yield the data classes and named tuples with many fields."""
    for place, node in classes():
        kinds = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
        bases = {ast.unparse(each) for each in node.bases}
        fields = sum(isinstance(each, ast.AnnAssign) for each in node.body)
        if fields > MANY_FIELDS and ("dataclass" in kinds or "NamedTuple" in bases):
            yield f"{place}: {fields} fields"


def ignored_types() -> Iterator[str]:
    """Yield the lines at which the type checker is told to ignore something."""
    for file in modules():
        for number, line in enumerate((ROOT / file).read_text("utf-8").splitlines(), 1):
            if _IGNORED.search(line):
                yield f"{file}:{number}: {line.strip()}"


def values_of_any_type() -> Iterator[str]:
    """Yield the annotations that have `Any`, by file and line."""
    for file in modules():
        for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
            if isinstance(node, ast.Name) and node.id == "Any":
                yield f"{file}:{node.lineno}"


FIGURES: dict[str, Callable[[], Iterator[str]]] = {
    f"files of more than {LONG_FILE} lines": long_files,
    f"classes of more than {LARGE_CLASS} lines": large_classes,
    f"values with more than {MANY_FIELDS} fields": wide_values,
    "lines told to the type checker to ignore": ignored_types,
    "annotations with Any": values_of_any_type,
}


def main(*arguments: str) -> None:
    for words, found_by in FIGURES.items():
        found = list(found_by())
        print(f"{words}: {len(found):,}")
        if "--list" in arguments:
            print("".join(f"    {each}\n" for each in found), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
