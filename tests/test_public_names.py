from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest


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


def test_the_library_works_without_django():
    program = (
        "import sys\n"
        "class NoDjango:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('django', 'rest_framework'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoDjango())\n"
        "from chatmemory import *\n"
        "memory = TokenWindowChatMemory(max_tokens=100)\n"
        "memory.add(UserMessage('hello'))\n"
        "from chatmemory.formats import *\n"
        'assert read_transcripts(b\'[{"role": "user", "content": "hi"}]\').transcripts\n'
        "print(len(memory.messages()))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "1\n", run.stderr
