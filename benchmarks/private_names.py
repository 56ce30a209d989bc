"""List the tests that use private names of our own modules: they pin how something is done.

    python -m benchmarks.private_names          # the files, with the names and their test functions
    python -m benchmarks.private_names --sum    # the numbers alone

A private name begins with an underscore. A test uses one by importing it, by reading it of a module
or an object of ours, or by replacing it (`monkeypatch.setattr`, `patch`). Replacing a public name
of our own modules is listed too; environment variables, settings and other libraries are not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("chatmemory", "inspector", "pytest_chatmemory")
REPLACING = {"setattr", "delattr", "setitem"}
PUBLIC = {"_meta"}  # of Django


@dataclass(frozen=True)
class Found:
    """A file of tests: its private names, the public ones that it replaces, and its functions."""

    file: str
    private: tuple[str, ...]
    replaced: tuple[str, ...]
    functions: int


def found_in(file: Path) -> Found:
    """Return what a file of tests uses."""
    tree = ast.parse(file.read_text("utf-8"))
    modules = set(_names_of_ours(tree))
    private, replaced = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
            private |= {each.name for each in node.names if _is_private(each.name)}
        elif isinstance(node, ast.Attribute) and _is_private(node.attr):
            if isinstance(node.value, ast.Name) and node.value.id in modules:
                private.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Call):
            replaced |= set(_replaced(node, modules))
    private |= {name for name in replaced if _is_private(name.rpartition(".")[2])}
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    ]
    name = str(file.relative_to(ROOT))
    return Found(name, tuple(sorted(private)), tuple(sorted(replaced - private)), len(tests))


def _names_of_ours(tree: ast.Module) -> Iterator[str]:
    """Yield the names by which a file knows modules, classes and functions of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
            yield from (each.asname or each.name for each in node.names)


def _replaced(call: ast.Call, modules: set[str]) -> Iterator[str]:
    """Yield what a call of monkeypatch or of mock replaces of ours."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    match call.args:
        case [ast.Constant(value=str(name)), *_] if function in {*REPLACING, "patch"}:
            if _is_ours(name):
                yield name
        case [ast.Name(id=of), ast.Constant(value=str(name)), *_] if function in REPLACING:
            if of in modules:
                yield f"{of}.{name}"


def _is_ours(name: str | None) -> bool:
    return (name or "").partition(".")[0] in OURS


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def main(*arguments: str) -> None:
    files = [found_in(file) for file in sorted((ROOT / "tests").rglob("*.py"))]
    some = [each for each in files if each.private or each.replaced]
    if "--sum" not in arguments:
        for each in some:
            private = f"private: {', '.join(each.private)}" if each.private else ""
            replaced = f"replaced: {', '.join(each.replaced)}" if each.replaced else ""
            words = "; ".join(filter(None, [private, replaced]))
            print(f"{each.file} ({each.functions} functions) {words}")
    with_private = [each for each in some if each.private]
    print(
        f"{sum(each.functions for each in some):,} of {sum(each.functions for each in files):,} "
        f"test functions stand in {len(some)} files that replace or import names of ours, "
        f"{sum(each.functions for each in with_private):,} of them in {len(with_private)} files "
        "with private names"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
