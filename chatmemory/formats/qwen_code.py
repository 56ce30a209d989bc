"""Qwen Code: session files, one JSON record a line. This format is only read.

- Each record names its parent, as in files of Claude Code. Its message is in Gemini's format.
- A record `chat_compression` is a compaction, and has the new window. Messages of the new window
  that the old window did not have are the summary.

Source of the shapes: QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from sys import intern

from chatmemory.formats import gemini
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, Loss, RawTranscript, Transcript
from chatmemory.formats.json_properties import dict_in, dicts_in, list_in, name_of, type_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, whole
from chatmemory.formats.trees import path_to
from chatmemory.formats.words import Beside
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    UserMessage,
    text_of,
    with_attributes,
)

NAME = "qwen_code"
COMPRESSION = "chat_compression"
_KEYS = ("uuid", "parentUuid", "sessionId", "type")
_SAYING = ("user", "assistant", "tool_result")
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_LEFT = "messages that are not on the path to the last message"


def find(value: JsonValue) -> RawTranscript | None:
    """Return the records of a session file, or None if the file is in another format.

    All records must be objects. At least one record must have a parent, and a message with parts.
    """
    records = records_in(value)
    named = next(filter(_has_parts, records), None)
    if named is None or not all(isinstance(each, dict) for each in records):
        return None
    return RawTranscript(session_of(named), records)


def session_of(record: JsonValue) -> str | None:
    return name_of(record, "sessionId")


def is_record(value: JsonValue) -> bool:
    is_named = isinstance(value, dict) and all(key in value for key in _KEYS)
    return is_named and (_has_parts(value) or not dict_in(value, "message"))


def _has_parts(value: JsonValue) -> bool:
    return isinstance(dict_in(value, "message").get("parts"), list) and "parentUuid" in value


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    path, behind = _path(turns)
    reader = _Reader()
    reader.miss(_LEFT, len(behind), *behind)
    read = reader.read_all(turns, path, after)
    return replace(read, losses=(Loss("session", _UNRECORDED), *read.losses))


def _path(turns: Sequence[JsonValue]) -> tuple[Sequence[int], set[int]]:
    """Return the records on the path to the last record with text, and the other records with text.

    A record whose parent is unknown has the record before it as parent.
    """
    records: dict[str, int] = {}
    parents: dict[str, str | None] = {}
    saying: list[str] = []
    before: str | None = None
    for n, each in enumerate(turns):
        if not _is_node(each) or each["uuid"] in records:  # a repeated record is read once
            continue
        id, named = intern(each["uuid"]), each.get("parentUuid")
        records[id] = n
        parents[id] = intern(named) if isinstance(named, str) else None
        saying += [id] if each.get("type") in _SAYING else []
    for id in records:
        if parents[id] not in records:
            parents[id] = before
        before = id
    path = array("L", (records[id] for id in path_to(saying[-1] if saying else None, parents)))
    return path, {records[id] for id in saying} - {*path}


def content_of(record: JsonValue) -> JsonValue:
    """Return the properties of a record that may have words of people, models or tools. None for a
    record that is neither a message nor a `chat_compression`.

    Words in these properties that are in no message are reported as lost.
    """
    is_compression = record.get("subtype") == COMPRESSION
    is_known = record.get("type") in _SAYING or is_compression or "message" in record
    return _BESIDE.without(record) if is_known else None


# Properties of records. The program shows results, and their errors, beside the message.
_BESIDE = Beside(
    texts=("cwd", "gitBranch", "subtype"),
    inner={"toolCallResult": Beside(wholes=("resultDisplay", "error"))},
)


def _is_node(record: JsonValue) -> bool:
    return isinstance(record, dict) and isinstance(record.get("uuid"), str)


class _Reader(SessionReader):
    format = NAME

    def read(self, record: JsonDict) -> None:
        message = dict_in(record, "message")
        if record.get("type") == "system":
            if record.get("subtype") == COMPRESSION:
                self.compressed(dict_in(record, "systemPayload"))
            return
        if not list_in(message, "parts"):
            self.lack("records without content", record.get("type") in _SAYING)
            return
        about = {name: record.get(name) for name in ("uuid", "timestamp", "model")}
        by_program = record.get("subtype") in ("notification", "cron")
        for read in _read(message):
            place = self.add_message(read, about, by_program)
            tokens = whole(dict_in(record, "usageMetadata").get("promptTokenCount"))
            if tokens and isinstance(read, AiMessage):
                self.built.count_prompt(place, tokens)

    def add_message(self, read: ChatMessage, about: JsonDict, by_program: bool) -> int:
        attributes = getattr(read, "attributes", {})
        return self.add(with_attributes(read, {**attributes, **self.own(about)}), by_program)

    def compressed(self, payload: JsonDict) -> None:
        """Read the new window after a compaction. Messages that the old window had are kept, and
        all other messages are the summary.
        """
        free = {_key(self.built.messages[place]): place for place in self.built.window}
        kept: set[int] = set()
        texts: list[str] = []
        ahead = 0
        for content in dicts_in(payload, "compressedHistory"):
            for message in _read(content) if list_in(content, "parts") else ():
                place = free.pop(_key(message), None)
                if place is not None:
                    kept.add(place)
                    ahead += not texts
                elif isinstance(message, UserMessage) or not kept:
                    texts.append(text_of(message))
        info = dict_in(payload, "info")
        self.compact(
            UserMessage("\n\n".join(texts) or "[no summary]"),
            kept=kept,
            ahead=ahead,
            tokens_before=whole(info.get("originalTokenCount")),
            tokens_after=whole(info.get("newTokenCount")),
        )


def _read(message: JsonDict) -> Sequence[ChatMessage]:
    """Return the messages of a message in Gemini's format. A message with tool results becomes
    several messages.
    """
    read = gemini.FORMAT.parse([message], ())
    return read.messages


def _key(message: ChatMessage) -> tuple[MessageType, str]:
    return message.type, text_of(message)


def type_of(record: JsonValue) -> str:
    """Return the type of a record, with its subtype if it has one: `type/subtype`."""
    sub = record.get("subtype")
    return f"{type_in(record)}/{sub}" if isinstance(sub, str) else type_in(record)


FORMAT = Format(
    NAME,
    find,
    parse,
    is_record=is_record,
    session_of=session_of,
    content_of=content_of,
    kinds=Kinds(type_of, {"system/ui_telemetry": NOT_KNOWN}),
)
