"""Glyphs: the shapes of messages, so that a role can be recognised without its colour."""

from __future__ import annotations

from chatmemory import MessageType

_GLYPHS = {
    MessageType.SYSTEM: "system",
    MessageType.USER: "user",
    MessageType.AI: "ai",
    MessageType.TOOL_EXECUTION_RESULT: "result",
    MessageType.CUSTOM: "system",
}


def glyph(type: MessageType, has_calls: bool = False) -> str:
    """Return system, user, ai, call or result, the name of a message's colour and shape."""
    return "call" if has_calls else _GLYPHS[type]
