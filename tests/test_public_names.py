from __future__ import annotations

import ast
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

import chatmemory

from . import a_program

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "name",
    [
        "chatmemory",
        "chatmemory.messages.codec",
        "chatmemory.messages.estimators",
        "chatmemory.formats",
        "chatmemory.stores.memory",
    ],
)
def test_public_names_are_sorted_and_exist(name):
    module = import_module(name)
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)
    assert (module.__doc__ or "").strip()


def test_a_program_uses_every_public_name():
    """mypy checks that program, so the types of all public names are right."""
    tree = ast.parse(Path(a_program.__file__).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set(chatmemory.__all__) <= used
    assert (Path(chatmemory.__file__).parent / "py.typed").exists()


def test_no_text_installs_the_other_chatmemory():
    """The name `chatmemory` on PyPI belongs to another project."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    other = re.compile(r"install [^`\n]*(?<![-.\w])chatmemory\b(?!\.)")
    texts = dict(filter(None, map(readable, tracked.split())))
    assert {"README.md", "Makefile", "deploy/chatmemory.service"} <= texts.keys()
    assert not [name for name, text in texts.items() if other.search(text)]


def readable(name: str) -> tuple[str, str] | None:
    """The name and the text of a file of the checkout; None for a file that is not text."""
    try:
        return name, (ROOT / name).read_text("utf-8")
    except UnicodeDecodeError:
        return None
