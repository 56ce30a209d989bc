"""What a start does not import: it is what people wait for before a command says anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = "sys.argv[1:] = {!r}\nfrom inspector.command import main\nmain()"
# Modules that take long and that a start does not need
OF_LIBRARY = [
    *("asyncio", "logging", "importlib.resources", "importlib.metadata", "tempfile", "hashlib"),
    *("imagesize", "tiktoken", "tomllib", "django"),
    *("chatmemory.formats", "chatmemory.lint.catalog", "chatmemory.recall.compactions"),
    "chatmemory.messages.quotes",
]
OF_A_LIST = [
    "rest_framework.fields",
    "tiktoken",
    "chatmemory.api.responses",
    "chatmemory.formats.claude_code",
]


STARTS = [
    pytest.param("import chatmemory", OF_LIBRARY, id="the library"),
    pytest.param(COMMAND.format(["--help"]), OF_LIBRARY, id="--help"),
]


@pytest.fixture(autouse=True)
def new_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("CHATMEMORY_VAR", str(tmp_path))


def said_at_the_end(code: str, expression: str) -> str:
    """Run code in a new process, and return what an expression is when it ends."""
    last = f"print({expression}, file=sys.stderr)"
    code = f"import atexit, gc, sys\natexit.register(lambda: {last})\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.strip()


@pytest.mark.parametrize(("code", "names"), STARTS)
def test_a_start_does_not_import(code, names):
    assert said_at_the_end(code, f"[each for each in {names} if each in sys.modules]") == "[]"


def test_a_list_imports_no_serializers_and_collects_garbage_afterwards():
    said = said_at_the_end(
        COMMAND.format(["list"]),
        f"[each for each in {OF_A_LIST} if each in sys.modules], gc.isenabled(), "
        "gc.get_freeze_count() > 0",
    )
    assert said == "[] True True"
