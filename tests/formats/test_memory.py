"""A file of 16 MB adds at most 160 MB to a process while it is read, one of lines at most 40 MB.

Each is read in a process of its own. `make attack` reads all of them, `make test` the first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ..peaks import MEGABYTE

FILE = 16 * MEGABYTE
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards brew some tea " * 6
LETTERS = "".join(Random(1).choices("abcdefghijklm nopqrstuvwxyz ", k=2**17))
READ = """
import sys
from io import BytesIO
from pathlib import Path
from chatmemory.formats import read_transcripts, stream_transcripts
def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024
read_transcripts('[{"role": "user", "content": "warm"}]')
with open(sys.argv[1], "rb") as file:  # a few lines load their format, and compile its patterns
    lines = file.read(100_000).rpartition(b"\\n")[0]
    if lines:  # a document has no lines
        list(stream_transcripts(BytesIO(lines)).conversations)
Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
with open(sys.argv[1], "rb") as file:
    found = sum(1 for _ in stream_transcripts(file).conversations)
print(found, memory("VmHWM") - before)
"""


def varied_words(n: int) -> str:
    """Return words that are not said again soon, which would take little memory packed."""
    place = 197 * n % (len(LETTERS) - 200)
    return f"{n} {LETTERS[place : place + 200]}"


def chat(n: int, turns: int = 4) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[k % 2], "content": f"{n} {k} {WORDS}"} for k in range(turns)]


def call(n: int) -> dict[str, Any]:
    *asked, answer = chat(n)
    response = {"object": "chat.completion", "choices": [{"index": 0, "message": answer}]}
    return {"request": {"model": "m", "messages": asked}, "response": response}


def observation(n: int) -> dict[str, Any]:
    *asked, answer = chat(n)
    about = {"type": "GENERATION", "traceId": f"t{n}", "sessionId": f"s{n}", "startTime": "1"}
    return {**about, "input": asked, "output": answer}


def checkpoint(n: int) -> dict[str, Any]:
    types = {"user": "human", "assistant": "ai"}
    said = [{"type": types[each["role"]], "content": each["content"]} for each in chat(n // 2)]
    config = {"configurable": {"thread_id": f"t{n // 2}"}}
    return {"values": {"messages": said[: 2 + n % 2 * 2]}, "config": config}


def chatgpt(n: int) -> dict[str, Any]:
    nodes: dict[str, Any] = {}
    for k, each in enumerate(chat(n)):
        content = {"content_type": "text", "parts": [each["content"]]}
        message = {"author": {"role": each["role"]}, "content": content, "metadata": {}}
        parent = str(k - 1) if k else None
        nodes[str(k)] = {"id": str(k), "parent": parent, "message": message, "children": []}
    return {"conversation_id": f"c{n}", "mapping": nodes, "current_node": "3"}


def converse(n: int) -> dict[str, Any]:
    turns = [{"role": each["role"], "content": [{"text": each["content"]}]} for each in chat(n)]
    return {"modelId": "m", "messages": turns}


def gemini_cli(n: int) -> dict[str, Any]:
    session, k = divmod(n, 5)
    if not k:
        return {"sessionId": f"s{session}", "projectHash": "h"}
    type = ("gemini", "user")[k % 2]
    return {"id": f"m{k}", "timestamp": f"{k}", "type": type, "content": f"{n} {WORDS}"}


def qwen_code(n: int) -> dict[str, Any]:
    session, k = divmod(n, 4)
    record = {"uuid": f"{n}", "parentUuid": f"{n - 1}" if k else None, "sessionId": f"s{session}"}
    message = {"role": ("user", "model")[k % 2], "parts": [{"text": f"{n} {WORDS}"}]}
    return {**record, "type": ("user", "assistant")[k % 2], "message": message}


def claude_code(n: int) -> dict[str, Any]:
    role = ("user", "assistant")[n % 2]
    message = {"role": role, "content": [{"type": "text", "text": varied_words(n)}]}
    about = {"sessionId": "s", "cwd": "/home", "version": "2.1.42", "timestamp": f"{n}"}
    parent = f"{n - 1}" if n else None
    return {**about, "uuid": f"{n}", "parentUuid": parent, "type": role, "message": message}


def codex(n: int) -> dict[str, Any]:
    if not n:
        return {"timestamp": "0", "type": "session_meta", "payload": {"id": "s"}}
    role, kind = (("assistant", "output_text"), ("user", "input_text"))[n % 2]
    content = [{"type": kind, "text": varied_words(n)}]
    payload = {"type": "message", "role": role, "content": content}
    return {"timestamp": f"{n}", "type": "response_item", "payload": payload}


def gemini_cli_session(n: int) -> dict[str, Any]:
    if not n:
        return {"sessionId": "s", "projectHash": "h"}
    content = varied_words(n)
    return {
        "id": f"m{n}",
        "timestamp": f"{n}",
        "type": ("gemini", "user")[n % 2],
        "content": content,
    }


def qwen_code_session(n: int) -> dict[str, Any]:
    record = {"uuid": f"{n}", "parentUuid": f"{n - 1}" if n else None, "sessionId": "s"}
    message = {"role": ("user", "model")[n % 2], "parts": [{"text": varied_words(n)}]}
    return {**record, "type": ("user", "assistant")[n % 2], "message": message}


def openhands(n: int) -> dict[str, Any]:
    about = {"id": n, "timestamp": f"{n}", "source": ("agent", "user")[n % 2], "message": ""}
    return {**about, "action": "message", "args": {"content": varied_words(n)}}


def message_of_one(n: int) -> dict[str, Any]:
    return {"role": ("user", "assistant")[n % 2], "content": varied_words(n)}


# A whole file of lines is one session, whose records have about 0.3 kB each
SESSIONS: dict[str, Callable[[int], Any]] = {
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli_session,
    "qwen_code": qwen_code_session,
    "openhands": openhands,
    "openai_chat": message_of_one,
}
VALUES: dict[str, Callable[[int], Any]] = {
    "call_log": call,
    "langfuse": observation,
    "langgraph": checkpoint,
    "chatgpt": chatgpt,
    "bedrock": converse,
    "gemini_cli": gemini_cli,
    "qwen_code": qwen_code,
}


def pieces(value: Callable[[int], Any], between: str, most: int = FILE) -> Iterator[str]:
    size = 0
    for n in count():
        piece = json.dumps(value(n))
        size += len(piece) + len(between)
        if size > most - 100:
            return
        yield f"{between if n else ''}{piece}"


def write_parts(file: Path, parts: Iterable[str]) -> Path:
    with file.open("w") as opened:
        opened.writelines(parts)
    return file


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param(name, most, marks=() if (name, most) == ("call_log", 40) else pytest.mark.long)
        for name in VALUES
        for most in (40, 160)
    ],
)
def test_the_memory_that_a_file_takes(name, most, tmp_path):
    values = pieces(VALUES[name], "\n" if most == 40 else ",")
    parts = values if most == 40 else ["[", *values, "]"]
    found, grown = read_in_a_process(write_parts(tmp_path / "large.json", parts))
    assert found > 1_000
    assert grown <= most * MEGABYTE, f"{grown / MEGABYTE:.0f} MB more"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("claude_code", 4),
        *(pytest.param(name, 1, marks=pytest.mark.long) for name in SESSIONS),
    ],
)
def test_the_memory_that_one_session_takes(name, part, tmp_path):
    """It is in line with the file: what takes most is tried with a quarter of it, too."""
    file = write_parts(tmp_path / "large.jsonl", pieces(SESSIONS[name], "\n", FILE // part))
    found, grown = read_in_a_process(file)
    assert found == 1
    assert grown <= 40 * MEGABYTE // part, f"{grown / MEGABYTE:.1f} MB more"


def read_in_a_process(file: Path) -> tuple[int, int]:
    """Return the number of conversations that a new process reads from a file, and its memory in
    bytes.
    """
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak memory of a process is read from /proc")
    told = subprocess.run(
        [sys.executable, "-c", READ, str(file)], capture_output=True, text=True, check=True
    ).stdout
    found, grown = map(int, told.split())
    return found, grown
