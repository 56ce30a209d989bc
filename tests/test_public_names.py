from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import chatmemory

from . import a_program

ROOT = Path(__file__).parents[1]
NO_DJANGO = """
import sys
class NoDjango:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('django', 'rest_framework', 'asgiref'):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoDjango())
"""


@pytest.mark.parametrize(
    "name",
    [
        "chatmemory",
        "chatmemory.core.codec",
        "chatmemory.core.estimators",
        "chatmemory.formats",
        "chatmemory.stores.memory",
    ],
)
def test_public_names_are_sorted_and_exist(name):
    module = import_module(name)
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, each) for each in module.__all__)
    assert (module.__doc__ or "").strip()


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_library_works_without_django():
    ran = run(
        NO_DJANGO + "from chatmemory.formats import *\n"
        'assert read_transcripts(b\'[{"role": "user", "content": "hi"}]\').transcripts\n'
        "from tests.a_program import main; main()"
    )
    assert ran.returncode == 0, ran.stderr


def test_the_store_says_that_it_needs_django():
    ran = run(NO_DJANGO + "import chatmemory.stores.database")
    words = "DjangoChatMemoryStore needs Django: pip install '.[django]' in a checkout"
    assert ran.stderr.splitlines()[-1] == f"ImportError: {words}"


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
    """The name and the text of a file of the checkout; None for one that is no text."""
    try:
        return name, (ROOT / name).read_text("utf-8")
    except UnicodeDecodeError:
        return None
