"""Count what is large, and what is told to the type checker: `python -m benchmarks.figures`.

With `--list`, each of them is named. What is large has a comment directly above that begins with
`# Wide:` for fields, or `# Long:` for lines, and says why it is left so.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from benchmarks.capabilities import ROOT, lines_of

FOLDERS = ("chatmemory", "inspector", "pytest_chatmemory")
LONG_FILE, LARGE_CLASS, MANY_FIELDS = 600, 250, 10
_REASON = re.compile(r"(?:^| )(Wide|Long): ")
_IGNORED = re.compile(r"# type: ignore\[")


class Large(NamedTuple):
    """A file or class that is large. `size` is its size in words, and `reason` says why it is left
    so; "" if no reason is given.
    """

    place: str
    size: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.size}: {self.reason or 'no reason is given'}"


def modules() -> Iterator[Path]:
    """Yield the modules of the product, without migrations, relative to the root."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in file.parts:
                yield file.relative_to(ROOT)


def classes() -> Iterator[tuple[str, ast.ClassDef, Sequence[str]]]:
    """Yield each class with its place, such as `chatmemory/flag.py:Flag`, and the lines of its
    file.
    """
    for file in modules():
        source = (ROOT / file).read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                yield f"{file}:{node.name}", node, source.splitlines()


def long_files() -> Iterator[Large]:
    for file in modules():
        if (length := lines_of(file)) > LONG_FILE:
            source = (ROOT / file).read_text("utf-8")
            first = next(each for each in ast.parse(source).body if not isinstance(each, ast.Expr))
            reason = reasons_above(first.lineno, source.splitlines()).get("Long", "")
            yield Large(str(file), f"{length} lines", reason)


def large_classes() -> Iterator[Large]:
    for place, node, lines in classes():
        length = (node.end_lineno or 0) - node.lineno + 1
        if length > LARGE_CLASS:
            reason = reasons_above(_top_of(node), lines).get("Long", "")
            yield Large(place, f"{length} lines", reason)


def wide_values() -> Iterator[Large]:
    """Yield the data classes and named tuples with many fields."""
    for place, node, lines in classes():
        kinds = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
        bases = {ast.unparse(each) for each in node.bases}
        fields = sum(isinstance(each, ast.AnnAssign) for each in node.body)
        if fields > MANY_FIELDS and ("dataclass" in kinds or "NamedTuple" in bases):
            reason = reasons_above(_top_of(node), lines).get("Wide", "")
            yield Large(place, f"{fields} fields", reason)


def _top_of(node: ast.ClassDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def reasons_above(top: int, lines: Sequence[str]) -> dict[str, str]:
    """Return the reasons in the comment directly above the line `top`, by "Wide" and "Long". A
    reason may have several lines.
    """
    above = takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[: top - 1]))
    text = " ".join(line.strip("# ") for line in reversed(list(above)))
    _, *parts = _REASON.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


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


FIGURES: dict[str, Callable[[], Iterator[Large | str]]] = {
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
