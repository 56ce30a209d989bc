"""The second cue of a message's role, beside its colour."""

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
    """system, user, ai, call or result: names the colour and the shape of a message."""
    return "call" if has_calls else _GLYPHS[type]
