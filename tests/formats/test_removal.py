"""A format is a file and one line: without both, all others are as before."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chatmemory.formats import FORMATS

ROOT = Path(__file__).parents[2]
REMOVABLE = (
    *("bedrock", "call_log", "chatgpt", "claude_ai", "gemini_cli", "langfuse", "langgraph"),
    *("langsmith", "librechat", "llama_index_store", "open_webui", "openai_list", "qwen_code"),
    "wrapped",
)
READ = """
import json
from chatmemory.formats import FORMATS, read_transcripts
turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
print(read_transcripts(json.dumps(turns)).format, *FORMATS)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library."""
    copy = tmp_path_factory.mktemp("copy") / "chatmemory"
    shutil.copytree(ROOT / "chatmemory", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize(
    "names", [REMOVABLE, *(pytest.param((each,), marks=pytest.mark.long) for each in REMOVABLE)]
)
def test_formats_are_removed_by_deleting_their_files_and_a_line_for_each(package, names):
    registry = package / "formats/registry.py"
    before = registry.read_text("utf-8")
    files = {package / f"formats/{name}.py": "" for name in names}
    lines = before.splitlines(keepends=True)
    kept = [
        line for line in lines if line.split(":")[0].strip() not in {f'"{name}"' for name in names}
    ]
    assert len(lines) - len(kept) == len(names)
    files = {file: file.read_text("utf-8") for file in files}
    try:
        registry.write_text("".join(kept), "utf-8")
        for file in files:
            file.unlink()
        said = subprocess.run(
            [sys.executable, "-c", READ],
            cwd=package.parent,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    finally:
        registry.write_text(before, "utf-8")
        for file, text in files.items():
            file.write_text(text, "utf-8")
    assert said[0] == "openai_chat"
    assert set(FORMATS) - {*said[1:]} == {*names}


def test_no_other_module_imports_a_removable_format():
    names = "|".join(REMOVABLE)
    imported = re.compile(rf"chatmemory\.formats(?:\.| import .*\b)({names})\b")
    modules = [*(ROOT / "chatmemory").rglob("*.py"), *(ROOT / "inspector").rglob("*.py")]
    found = {str(file): imported.findall(file.read_text("utf-8")) for file in modules}
    assert not {file: names for file, names in found.items() if names}
