"""Recognizes which providers a conversation uses: by attributes of its messages, and by the IDs of
its tool calls. Nothing here reads the database.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory.lint import PROVIDERS
from chatmemory.lint.turns import ANTHROPIC, BEDROCK, GEMINI, OPENAI, RESPONSES
from chatmemory.messages.message import AiMessage, ChatMessage

# The bit of each provider in a column of bits
BITS = {name: 1 << n for n, name in enumerate(PROVIDERS)}
# Messages without room are looked for among so many of the last steps
LATELY_STEPS = 40

# The namespaces of attributes, which are the formats in which messages came
_FORMATS = {
    "openai_chat": OPENAI,
    "openai_responses": RESPONSES,
    "codex": RESPONSES,
    "anthropic": ANTHROPIC,
    "claude_code": ANTHROPIC,
    "gemini": GEMINI,
    "gemini_cli": GEMINI,
    "bedrock": BEDROCK,
}
_IDS = {"call_": OPENAI, "toolu_": ANTHROPIC, "srvtoolu_": ANTHROPIC, "tooluse_": BEDROCK}


def providers_of(messages: Iterable[ChatMessage]) -> set[str]:
    """Return the names of the providers from which messages come, as their attributes and tool call
    IDs show.

    OpenAI's Chat Completions API and Responses API use the same form of tool call IDs. Such an ID
    means the Chat Completions API, unless a message has the format of the Responses API.
    """
    formats, by_id = set(), set()
    for message in messages:
        attributes = getattr(message, "attributes", None) or {}
        formats |= {_FORMATS[name] for name in attributes if name in _FORMATS}
        calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
        ids = [call.id for call in calls if call and call.id]
        by_id |= {name for id in ids for begin, name in _IDS.items() if id.startswith(begin)}
    return formats | (by_id - {OPENAI} if RESPONSES in formats else by_id)
