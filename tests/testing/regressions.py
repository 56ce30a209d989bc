"""Recorded conversations with one regression of each kind, as files."""

from __future__ import annotations

import json
from pathlib import Path

from ..formats.test_sessions import Claude

ORDER = [
    {"role": "user", "content": "My order is A-1182."},
    {"role": "assistant", "content": "Thank you."},
    {"role": "user", "content": "It is late."},
    {"role": "assistant", "content": "What is your order number?"},
    {"role": "user", "content": "A-1182, as I said."},
    {"role": "assistant", "content": "I see."},
]


def call(id: str) -> dict:
    function = {"name": "find", "arguments": '{"order": "A-1182"}'}
    calls = [{"id": id, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


FETCHED = {"role": "tool", "tool_call_id": "1", "content": '{"parcel": "PX-7"}'}
CALLS = [
    {"role": "user", "content": "Where is A-1182?"},
    *(call("1"), FETCHED),
    {"role": "assistant", "content": "On its way."},
    {"role": "user", "content": "And now?"},
    *(call("2"), FETCHED | {"tool_call_id": "2"}),
    {"role": "assistant", "content": "Still so."},
]
DANGLING = [
    {"role": "user", "content": "Where is it?"},
    call("1"),
    {"role": "user", "content": "Hello?"},
    {"role": "assistant", "content": "One moment."},
]
LONG = [
    {"role": role, "content": f"{role} says {number} {'word ' * 60}"}
    for number in range(40)
    for role in ("user", "assistant")
]


def write(folder: Path) -> None:
    """Write the files `order`, `calls`, `dangling`, `long` and `session` into a folder."""
    folder.mkdir()
    chats = {"order": ORDER, "calls": CALLS, "dangling": DANGLING, "long": LONG}
    for name, chat in chats.items():
        (folder / f"{name}.json").write_text(json.dumps(chat))
    (folder / "session.jsonl").write_text("\n".join(map(json.dumps, _session())))


def _session() -> list[dict]:
    claude = Claude()
    claude.user("1", "The tickets are TK-101 and TK-202.")
    claude.ai("2", "m1", "I look at both.", tokens=30)
    claude.compact("3", "The user named two tickets.", logical="2", trigger="auto")
    claude.ai("4", "m2", "Now TK-101, then TK-202.")
    return claude.records
