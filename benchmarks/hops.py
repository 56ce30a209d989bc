"""How many files does a message pass through? Counts for five paths, without times.

    .venv/bin/python -m benchmarks.hops
    .venv/bin/python -m benchmarks.hops --files  # also the files, in the order of their first call

A hop is a call from one file of chatmemory or inspector into another. Functions and lines count
once if they run. The database is a SQLite file in a temporary folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.database import migrated

ROOT = Path(__file__).parents[1]
PACKAGES = (str(ROOT / "chatmemory"), str(ROOT / "inspector"))


class Hops:
    """Counts calls between files, functions and lines while `run` runs."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}  # in the order of their first call
        self.functions: set[CodeType] = set()
        self.lines: set[tuple[str, int]] = set()
        self.count = 0

    def run(self, call: Callable[[], object]) -> None:
        sys.setprofile(self._called)
        sys.settrace(self._traced)
        try:
            call()
        finally:
            sys.settrace(None)
            sys.setprofile(None)

    def _traced(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGES):
            return None
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._traced

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGES) or frame.f_code.co_name == "<module>":
            return
        self.files[file] = None
        self.functions.add(frame.f_code)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGES):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != file:
            self.count += 1


def measure(name: str, call: Callable[[], object]) -> None:
    call()  # imports and caches
    hops = Hops()
    hops.run(call)
    print(
        f"{name}: {len(hops.files)} files, {len(hops.functions)} functions, "
        f"{len(hops.lines)} lines, {hops.count} hops"
    )
    if "--files" in sys.argv:
        for file in hops.files:
            functions = sum(code.co_filename == file for code in hops.functions)
            lines = sum(each == file for each, _ in hops.lines)
            print(f"    {Path(file).relative_to(ROOT)}: {functions} functions, {lines} lines")


def main(folder: str) -> None:
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.test import Client

    from chatmemory import (
        AiMessage,
        MessageWindowChatMemory,
        ToolExecutionRequest,
        ToolExecutionResultMessage,
        UserMessage,
    )
    from chatmemory.stores.database import DjangoChatMemoryStore
    from inspector import demo

    demo.load()
    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_superuser("operator"))
    memory = MessageWindowChatMemory("mine", max_messages=3, store=DjangoChatMemoryStore())
    for n in range(5):
        memory.add(UserMessage(f"message {n}"))
    numbers = iter(range(100))
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "format": "openai_chat"})
    url = "/api/v1/memories/order-7741/messages/"
    file = Path(folder) / "chat.json"

    def import_file() -> None:
        messages = [{"role": "user", "content": f"{next(numbers)}"}]
        file.write_text(json.dumps(messages))
        prefix = f"file-{next(numbers)}-"
        call_command("import_transcripts", str(file), prefix=prefix, stdout=StringIO())

    messages = iter([UserMessage("one more"), UserMessage("and another")])
    measure("add in process", lambda: memory.add(next(messages)))

    def add_turn() -> None:
        for each in turn:
            memory.add(each)

    calls = [ToolExecutionRequest(id="1", name="find", arguments="{}")]
    turn = [
        UserMessage("find it"),
        AiMessage("", calls),
        ToolExecutionResultMessage("1", "find", "x"),
    ]
    measure("a turn with a tool", add_turn)
    measure("POST messages/", lambda: client.post(url, body, content_type="application/json"))
    measure("page ?at=43", lambda: client.get("/c/order-7741/?at=43"))
    measure("import of one message", import_file)


if __name__ == "__main__":
    with migrated() as folder:
        main(folder)
