from __future__ import annotations

import subprocess
import sys

import chatmemory


def test_public_names_are_sorted_and_there():
    assert chatmemory.__all__ == sorted(chatmemory.__all__)
    assert all(hasattr(chatmemory, name) for name in chatmemory.__all__)


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
        "import chatmemory.formats\n"
        "print(len(memory.messages()))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "1\n", run.stderr
