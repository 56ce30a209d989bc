"""Files of other programs that are recognized but not read: the error names the program.

Each is one line of `KNOWN`. They are tried before the formats, so that such a file is not mistaken
for one that can be read: `is_like` must be True only for files of that program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KnownShape:
    """A kind of file that is not read.

    `name` completes "the file is …", such as "an export of Slack". `is_like` gets the JSON value of
    the file, of any type, or a list of the first lines of a JSON Lines file. `instead` is a
    sentence that suggests another way, if there is one.
    """

    name: str
    is_like: Callable[[Any], bool]
    instead: str = ""


def _has(value: Any, *names: str) -> bool:
    """Return whether an object, or the first one of a list, has all these properties."""
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and all(name in value for name in names)


def _within(value: Any, list_name: str, *names: str) -> bool:
    """Return whether an object has a list whose first item has all these properties."""
    return _has(value, list_name) and _has(_first(value)[list_name], *names)


def _first(value: Any) -> dict[str, Any]:
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, dict) else {}


def _lines(value: Any, type: str, *names: str) -> bool:
    """Return whether one of the lines is a record of a type that has these properties."""
    lines = value if isinstance(value, list) else [value]
    return any(_has(each, "type", *names) and each["type"] == type for each in lines if each)


def _is_semantic_kernel(value: Any) -> bool:
    return _within(value, "messages", "role", "items") or _has(value, "role", "items")


def _is_stream_json(value: Any) -> bool:
    return _lines(value, "system", "subtype", "session_id") and not _has(value, "parentUuid")


def _lines_of_tavern(value: Any) -> bool:
    lines = value if isinstance(value, list) else []
    return any(_has(each, "is_user", "mes") for each in lines)


def _is_ultrachat(value: Any) -> bool:
    data = _first(value).get("data")
    return isinstance(data, list) and bool(data) and all(isinstance(each, str) for each in data)


_SESSIONS = "Import the session file of Claude Code, which lies in ~/.claude/projects."

KNOWN: tuple[KnownShape, ...] = (
    KnownShape("a task of Agent2Agent (A2A)", lambda v: _within(v, "history", "kind", "parts")),
    KnownShape(
        "a session of Google's Agent Development Kit (ADK)",
        lambda v: _has(v, "appName", "userId", "events"),
    ),
    KnownShape("training data of Alpaca", lambda v: _has(v, "instruction", "output")),
    KnownShape("the state of an AutoGen agent", lambda v: _has(v, "type", "llm_context")),
    KnownShape("the state of an AutoGen team", lambda v: _has(v, "type", "agent_states")),
    KnownShape("an export of Chatbot UI", lambda v: _has(v, "version", "history", "folders")),
    KnownShape(
        "what Claude Code prints as stream-json",
        _is_stream_json,
        _SESSIONS,
    ),
    KnownShape("`loglines` of Claude Code", lambda v: _has(v, "loglines"), _SESSIONS),
    KnownShape(
        "the screen messages of Cline, Roo Code or Kilo Code (ui_messages.json)",
        lambda v: _has(v, "ts", "type") and not {"say", "ask"}.isdisjoint(_first(v)),
        "Import api_conversation_history.json, which lies beside it.",
    ),
    KnownShape("a session of Continue", lambda v: _within(v, "history", "message")),
    KnownShape(
        "a chat of GitHub Copilot",
        lambda v: _has(v, "responderUsername", "requests") or _within(v, "requests", "requestId"),
    ),
    KnownShape(
        "a channel exported from Discord", lambda v: _has(v, "guild", "channel", "messages")
    ),
    KnownShape("a log of Inspect", lambda v: _within(v, "samples", "messages")),
    KnownShape("an agent file of Letta", lambda v: _within(v, "agents", "in_context_message_ids")),
    KnownShape("a conversation of LM Studio", lambda v: _within(v, "messages", "versions")),
    KnownShape(
        "a session of OpenClaw or pi",
        lambda v: _lines(v, "session", "version", "cwd") or _lines(v, "message", "parentId"),
    ),
    KnownShape(
        "an export of opencode",
        lambda v: _has(v, "info", "messages") and _within(v, "messages", "info", "parts"),
    ),
    KnownShape(
        "preference data (DPO), which has two answers to a question",
        lambda v: _has(v, "preferred_output") or _has(v, "chosen", "rejected"),
    ),
    KnownShape("a chat history of Semantic Kernel", _is_semantic_kernel),
    KnownShape(
        "a chat of SillyTavern",
        lambda v: _within(v, "messages", "is_user", "mes") or _lines_of_tavern(v),
    ),
    KnownShape(
        "a channel of a Slack export",
        lambda v: _has(v, "type", "user", "text", "ts") or _has(v, "type", "ts", "subtype", "text"),
    ),
    KnownShape("messages of Spring AI", lambda v: _has(v, "messageType", "text")),
    KnownShape("simulations of tau2-bench", lambda v: _within(v, "simulations", "messages")),
    KnownShape("a row of UltraChat", _is_ultrachat),
    KnownShape("a session of Zep", lambda v: _within(v, "messages", "role_type", "content")),
)


def known_shape(value: Any) -> KnownShape | None:
    """Return the known shape of a file's value, or None."""
    return next((each for each in KNOWN if each.is_like(value)), None)


def why_unread(shape: KnownShape, called: str) -> str:
    """Return the sentence of a refusal."""
    instead = f" {shape.instead}" if shape.instead else ""
    return f"{called} is {shape.name}, which is not read.{instead}".removesuffix(".")


def shape_of(value: Any) -> str:
    """Describe a file in words for an error."""
    if isinstance(value, list) and value:
        return f"a list that begins with {_kind(value[0])}"
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict) and value:
        is_empty = any(value.get(name) == [] for name in ("messages", "conversations"))
        names = ", ".join(repr(key[:20]) for key in list(value)[:5])
        return f"an object with {names}{' and no messages in it' if is_empty else ''}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return next(words for kind, words in _KINDS if isinstance(value, kind))


_KINDS = (
    (dict, "an empty object"),
    (str, "a string"),
    (bool, "true or false"),
    (int | float, "a number"),
    (object, "null"),
)
