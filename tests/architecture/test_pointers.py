"""What a comment or a docstring points to exists: "see `ledger.numbers`", "see `Policy`"."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("chatmemory", "inspector", "pytest_chatmemory")
# "see `name`", "see the hook `sealing`", "see ledger.recorder", "see docs/rooms.md"
POINTER = re.compile(
    r"\b[Ss]ee (?:the \w+ |also |by )?"
    r"(?:`([^`\n]+)`|((?:\w+/)+[\w.-]+\w)|([a-z_]+(?:\.[a-z_]+)+)\b)"
)


POINTING = re.compile(r"\b[Ss]ee\b")


@cache
def source_of(file: Path) -> str:
    return file.read_text("utf-8")


def texts(file: Path) -> Iterator[str]:
    """Yield the docstrings and the blocks of comments of a file, each as one line."""
    source = source_of(file)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield " ".join((ast.get_docstring(node) or "").split())
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    yield " ".join(comments)


@cache
def modules() -> dict[tuple[str, ...], Path]:
    """Return the files of modules and packages by the parts of their names."""
    found = {}
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[parts[:-1] if parts[-1] == "__init__" else parts] = file
    return found


@cache
def defined(file: Path) -> frozenset[str]:
    """Return the names that a module defines: also those of classes, attributes and arguments."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source_of(file))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return frozenset(found)


def defines(file: Path, names: Collection[str]) -> bool:
    """Return whether a module defines all of these names."""
    return all(name in source_of(file) for name in names) and {*names} <= defined(file)


def is_there(pointed: str) -> bool:
    """Return whether a path exists, or a module, given by its last parts, or a name: one that the
    module before it defines, or any module.
    """
    pointed = pointed.rstrip(".").removesuffix("()")
    if "/" in pointed:
        return (ROOT / pointed).exists() or (ROOT / "docs" / pointed).exists()
    parts = tuple(pointed.split("."))
    if not all(part.isidentifier() for part in parts):
        return True  # a command, an address, or words
    for n in range(len(parts), 0, -1):
        found = [file for name, file in modules().items() if name[-n:] == parts[:n]]
        if found:
            return n == len(parts) or any(defines(file, parts[n:]) for file in found)
    return any(defines(file, parts) for file in modules().values())


def test_what_comments_point_to_exists():
    pointers = {
        (str(file.relative_to(ROOT)), next(filter(None, match.groups())))
        for file in modules().values()
        if "migrations" not in file.parts and POINTING.search(source_of(file))
        for text in texts(file)
        for match in POINTER.finditer(text)
    }
    assert len(pointers) > 50
    assert {(file, name) for file, name in pointers if not is_there(name)} == set()
