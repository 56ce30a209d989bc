"""Who speaks: what users and tools state is told from what others repeat of it, or ask."""

from __future__ import annotations

from enum import IntEnum

from chatmemory.core.messages import MessageType


class Speaker(IntEnum):
    """Who said a message, those first whose words count first as knowledge.

    A role is all that tells: a user's question is a statement here too.
    """

    OTHERS = 0
    ASSISTANT = 1
    SYSTEM = 2
    CLIENT = 3


_SPEAKERS = {
    MessageType.USER: Speaker.OTHERS,
    MessageType.TOOL_EXECUTION_RESULT: Speaker.OTHERS,
    MessageType.CUSTOM: Speaker.ASSISTANT,
    MessageType.AI: Speaker.ASSISTANT,
    MessageType.SYSTEM: Speaker.SYSTEM,
}


def speaker_of(type: MessageType, is_injected: bool = False) -> Speaker:
    """Return who said a message; CLIENT if it was never said, but put into the window."""
    return Speaker.CLIENT if is_injected else _SPEAKERS[type]
