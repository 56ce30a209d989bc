"""Recognizes files of other programs that cannot be read, so that the error can name the program.

Each kind of file has an entry in `KNOWN`, or in `KNOWN_BEGINNINGS` if it is not JSON. Entries are
tried before the formats. An entry must fit only files of its program, or readable files would be
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chatmemory.messages.json_values import JsonDict, JsonValue


@dataclass(frozen=True)
class KnownShape:
    """A kind of JSON file that is recognized, but cannot be read.

    - `name`: completes "the file is …", such as "an export of Slack".
    - `is_like`: returns whether a value is of this kind. The value is the JSON of the file, or for
      JSON Lines, the list of its first lines.
    - `sign`: describes what `is_like` looks for.
    - `instead`: a sentence that suggests another way, or "".
    """

    name: str
    sign: str
    is_like: Callable[[JsonValue], bool]
    instead: str = ""


@dataclass(frozen=True)
class KnownBeginning:
    """A kind of file that is not JSON, recognized by its first bytes. `name` completes "the file is
    …", and `instead` suggests another way.
    """

    name: str
    beginning: bytes
    instead: str


def _has(value: JsonValue, *names: str) -> bool:
    """Return whether an object has all these properties. Of a list, the first object is
    examined.
    """
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and all(name in value for name in names)


def _within(value: JsonValue, list_name: str, *names: str) -> bool:
    """Return whether the first item of the list under `list_name` has all these properties."""
    return _has(value, list_name) and _has(_first(value)[list_name], *names)


def _first(value: JsonValue) -> JsonDict:
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, dict) else {}


def _lines(value: JsonValue, type: str, *names: str) -> bool:
    """Return whether a line is a record of this type that has these properties."""
    lines = value if isinstance(value, list) else [value]
    return any(_has(each, "type", *names) and each["type"] == type for each in lines if each)


def _is_semantic_kernel(value: JsonValue) -> bool:
    return _within(value, "messages", "role", "items") or _has(value, "role", "items")


def _is_stream_json(value: JsonValue) -> bool:
    return _lines(value, "system", "subtype", "session_id") and not _has(value, "parentUuid")


def _is_amp(value: JsonValue) -> bool:
    return _within(value, "messages", "role", "messageId") and str(
        _first(value).get("id")
    ).startswith("T-")


def _is_deepseek(value: JsonValue) -> bool:
    mapping = _first(value).get("mapping")
    nodes = mapping.values() if isinstance(mapping, dict) else ()
    return any(_has(each, "message") and _has(each["message"], "fragments") for each in nodes)


def _is_dsh(value: JsonValue) -> bool:
    events = ("assistant/message", "user/message", "turn/start")
    return _lines(value, "session", "id", "delegationDepth") or any(
        _lines(value, each, "seq") for each in events
    )


def _lines_of_tavern(value: JsonValue) -> bool:
    lines = value if isinstance(value, list) else []
    return any(_has(each, "is_user", "mes") for each in lines)


def _is_ultrachat(value: JsonValue) -> bool:
    data = _first(value).get("data")
    return isinstance(data, list) and bool(data) and all(isinstance(each, str) for each in data)


_SESSIONS = "Import the session file of Claude Code, which lies in ~/.claude/projects."

KNOWN: tuple[KnownShape, ...] = (
    KnownShape(
        "a task of Agent2Agent (A2A)",
        "`history` whose messages have `kind` and `parts`",
        lambda v: _within(v, "history", "kind", "parts"),
    ),
    KnownShape(
        "a session of Google's Agent Development Kit (ADK)",
        "`appName`, `userId` and `events`",
        lambda v: _has(v, "appName", "userId", "events"),
    ),
    KnownShape(
        "training data of Alpaca",
        "`instruction` and `output`",
        lambda v: _has(v, "instruction", "output"),
    ),
    KnownShape(
        "a thread of Amp",
        "`messages` with `messageId`, and a thread `id` that begins with `T-`",
        _is_amp,
    ),
    KnownShape(
        "the state of an AutoGen agent",
        "`type` and `llm_context`",
        lambda v: _has(v, "type", "llm_context"),
    ),
    KnownShape(
        "the state of an AutoGen team",
        "`type` and `agent_states`",
        lambda v: _has(v, "type", "agent_states"),
    ),
    KnownShape(
        "an export of Chatbot UI",
        "`version`, `history` and `folders`",
        lambda v: _has(v, "version", "history", "folders"),
    ),
    KnownShape(
        "the output of Claude Code in the format stream-json",
        "a line `system` with `subtype` and `session_id`",
        _is_stream_json,
        _SESSIONS,
    ),
    KnownShape("`loglines` of Claude Code", "`loglines`", lambda v: _has(v, "loglines"), _SESSIONS),
    KnownShape(
        "the screen messages of Cline, Roo Code or Kilo Code (ui_messages.json)",
        "`ts`, `type`, and `say` or `ask`",
        lambda v: _has(v, "ts", "type") and not {"say", "ask"}.isdisjoint(_first(v)),
        "Import api_conversation_history.json, which lies beside it.",
    ),
    KnownShape(
        "a session of Continue",
        "`history` whose items have a `message`",
        lambda v: _within(v, "history", "message"),
    ),
    KnownShape(
        "an export of DeepSeek's chat",
        "`mapping` whose messages have `fragments`",
        _is_deepseek,
    ),
    KnownShape(
        "a session of dsh, DeepSeek's harness",
        "a first line `session` with `delegationDepth`, or events such as `assistant/message`",
        _is_dsh,
    ),
    KnownShape(
        "a channel exported from Discord",
        "`guild`, `channel` and `messages`",
        lambda v: _has(v, "guild", "channel", "messages"),
    ),
    KnownShape(
        "a session of Factory's Droid",
        "a first line `session_start` with `id` and `cwd`",
        lambda v: _lines(v, "session_start", "id", "cwd"),
    ),
    KnownShape(
        "a log of Inspect",
        "`samples` with `messages`",
        lambda v: _within(v, "samples", "messages"),
    ),
    KnownShape(
        "an agent file of Letta",
        "`agents` with `in_context_message_ids`",
        lambda v: _within(v, "agents", "in_context_message_ids"),
    ),
    KnownShape(
        "a conversation of LM Studio",
        "`messages` with `versions`",
        lambda v: _within(v, "messages", "versions"),
    ),
    KnownShape(
        "a session of OpenClaw or pi",
        "a first line `session` with `version` and `cwd`, or a line `message` with `parentId`",
        lambda v: _lines(v, "session", "version", "cwd") or _lines(v, "message", "parentId"),
    ),
    KnownShape(
        "preference data (DPO), which has two answers to each question",
        "`preferred_output`, or `chosen` and `rejected`",
        lambda v: _has(v, "preferred_output") or _has(v, "chosen", "rejected"),
    ),
    KnownShape("a chat history of Semantic Kernel", "`role` and `items`", _is_semantic_kernel),
    KnownShape(
        "a chat of SillyTavern",
        "`is_user` and `mes`",
        lambda v: _within(v, "messages", "is_user", "mes") or _lines_of_tavern(v),
    ),
    KnownShape(
        "a channel of a Slack export",
        "`type`, `user`, `text` and `ts`",
        lambda v: _has(v, "type", "user", "text", "ts") or _has(v, "type", "ts", "subtype", "text"),
    ),
    KnownShape(
        "messages of Spring AI",
        "`messageType` and `text`",
        lambda v: _has(v, "messageType", "text"),
    ),
    KnownShape(
        "simulations of tau2-bench",
        "`simulations` with `messages`",
        lambda v: _within(v, "simulations", "messages"),
    ),
    KnownShape("a row of UltraChat", "`data`, a list of texts", _is_ultrachat),
    KnownShape(
        "a session of Zep",
        "`messages` with `role_type`",
        lambda v: _within(v, "messages", "role_type", "content"),
    ),
)

_UNPACK = "Unpack it, and import the JSON files in it."

# Files that are no JSON, by what they begin with.
KNOWN_BEGINNINGS: tuple[KnownBeginning, ...] = (
    KnownBeginning("a ZIP archive", b"PK\x03\x04", _UNPACK),
    KnownBeginning("compressed with gzip", b"\x1f\x8b", _UNPACK),
    KnownBeginning("compressed with xz", b"\xfd7zXZ\x00", _UNPACK),
    KnownBeginning("compressed with zstd", b"(\xb5/\xfd", _UNPACK),
    KnownBeginning("UTF-16", b"\xff\xfe", "Save it as UTF-8."),
    KnownBeginning("UTF-16", b"\xfe\xff", "Save it as UTF-8."),
    KnownBeginning(
        "an SQLite database",
        b"SQLite format 3\x00",
        "The only databases that are read are opencode.db and Goose's sessions.db.",
    ),
    KnownBeginning(
        "a chat history of Aider (.aider.chat.history.md)",
        b"# aider chat started at ",
        "",
    ),
)


def known_beginning(first: bytes) -> str | None:
    """Return the sentence that says why a file with these first bytes cannot be read; None if the
    file is not recognized.
    """
    first = first.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n ")
    for each in KNOWN_BEGINNINGS:
        if first.startswith(each.beginning):
            return _sentence("the file", f"{each.name}, which is not read", each.instead)
    return None


def known_shape(value: JsonValue) -> KnownShape | None:
    """Return the kind of unreadable file that a JSON value is, such as an export of Slack. None if
    no known kind fits.
    """
    return next((each for each in KNOWN if each.is_like(value)), None)


def why_unread(shape: KnownShape, called: str) -> str:
    """Return a sentence that says why a file of this kind is refused. `called` is the name of the
    file.
    """
    return _sentence(called, f"{shape.name}, which is not read", shape.instead)


def _sentence(called: str, what: str, instead: str) -> str:
    return f"{called} is {what}. {instead}".strip().removesuffix(".")


def shape_of(value: JsonValue) -> str:
    """Return a description of a JSON value for an error, such as "an object with 'id', 'title'" or
    "a list that begins with a number".
    """
    if isinstance(value, list) and value:
        return f"a list that begins with {_kind(value[0])}"
    return _kind(value)


def _kind(value: JsonValue) -> str:
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
