"""No part of a sentence stands alone in a function, outside of the brackets of its text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def texts_alone(source: str) -> list[int]:
    """Return the lines of texts that are statements, and no docstrings."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for body in (getattr(node, name, ()) for name in ("body", "orelse", "finalbody")):
            for place, each in enumerate(body if isinstance(body, list) else ()):
                is_docstring = place == 0 and isinstance(node, DOCUMENTED)
                if isinstance(each, ast.Expr) and not is_docstring:
                    is_text = isinstance(each.value, ast.Constant | ast.JoinedStr)
                    found += [each.lineno] if is_text and ast.unparse(each) != "..." else []
    return found


@pytest.mark.parametrize("folder", ["chatmemory", "inspector", "pytest_chatmemory"])
def test_no_text_stands_alone(folder):
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (lines := texts_alone(path.read_text("utf-8")))
    }
    assert found == {}


def test_a_text_that_stands_alone_is_found():
    assert texts_alone('"doc"\n\ndef f():\n    "doc"\n    x = ("a ")\n    "b"\n') == [6]
