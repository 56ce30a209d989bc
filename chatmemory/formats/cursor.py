"""Cursor: transcripts of its agent, one JSON record a line. This format is only read.

    {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": …, "input": …}]}}

Blocks have Anthropic's shape, without ids. Most transcripts have no tool results. Source of the
shapes: published lines of transcripts of 2026, and the code of other programs that read these
transcripts.
"""

from __future__ import annotations

from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    list_in,
    text_in,
    type_in,
)
from chatmemory.formats.parts import runs_of
from chatmemory.formats.readers_and_writers import answer_of, stand_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader
from chatmemory.messages.contents import TextContent
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import UserMessage

NAME = "cursor"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_NO_RESULTS = "results of tools, which are not recorded"
_NOT_RECORDED = stand_in("result", "not recorded")
_QUERY, _END = "<user_query>", "</user_query>"
_TIME, _TIME_END = "<timestamp>", "</timestamp>"
SILENT = {"turn_ended": NOT_KNOWN}


def find(value: JsonValue) -> RawTranscript | None:
    records = records_in(value)
    is_transcript = any(_is_message(each) for each in records) and all(map(is_record, records))
    return RawTranscript(None, records) if is_transcript else None


def is_record(value: JsonValue) -> bool:
    """Return whether a value may be a message or an event: it has a role or a type."""
    return isinstance(value, dict) and any(isinstance(value.get(n), str) for n in ("role", "type"))


def _is_message(value: JsonValue) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {"role", "message", "type", "ts", "id"}:
        return False
    message = value.get("message")
    return value.get("role") in ("user", "assistant") and (
        isinstance(message, dict) and message.keys() <= {"role", "content"} and "content" in message
    )


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of a record that have words: the content of its message, and the properties
    of the record other than `message`. The time and the tags that Cursor writes around a question
    are left out. None if the type of the record is unknown.

    If words of these parts are in no message, the words are reported as lost.
    """
    if record.get("type") not in (None, "turn_ended", "message"):
        return None
    message = dict_in(record, "message")
    beside = {name: each for name, each in record.items() if name != "message"}
    blocks = list_in(message, "content")
    if not blocks or record.get("role") != "user":
        return [message.get("content"), beside] if message else record
    texts = [each["text"] for each in blocks if _is_text(each)]
    others = [each for each in blocks if not _is_text(each)]
    return [_query_in("\n".join(texts))[0], others, beside]


def _is_text(block: JsonValue) -> bool:
    return type_in(block) == "text" and isinstance(block.get("text"), str)


class _Reader(SessionReader):
    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self.miss(_UNRECORDED)
        self._waiting: list[str | None] = []  # ids of calls without a result

    def read(self, record: JsonDict) -> None:
        if record.get("type") == "turn_ended":
            self.end_calls()
            return
        content = dict_in(record, "message").get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else []
        blocks += dicts_in(dict_in(record, "message"), "content")
        for run in runs_of(blocks, lambda block: type_in(block) == "tool_result"):
            if type_in(run[0]) == "tool_result":
                self.tool_result(run[0])
            elif record.get("role") == "user":
                self.user(run)
            else:
                self.assistant(run)

    def user(self, blocks: list[JsonDict]) -> None:
        self.end_calls()
        texts = [text_in(each, "text") or "" for each in blocks if type_in(each) == "text"]
        text, about = _query_in("\n".join(texts))
        if text:
            self.add(UserMessage(text, attributes=self.own(about)))

    def assistant(self, blocks: list[JsonDict]) -> None:
        self.end_calls()
        texts = [text_in(each, "text") or "" for each in blocks if type_in(each) == "text"]
        thoughts = [
            text_in(each, "thinking", "text") for each in blocks if type_in(each) == "thinking"
        ]
        calls = [
            self.calls.request(text_in(each, "id"), text_in(each, "name"), each.get("input"))
            for each in blocks
            if type_in(each) == "tool_use"
        ]
        if any(texts) or calls or any(thoughts):
            self.add(answer_of([*filter(None, texts)], calls, thoughts))
        self._waiting = [each.id for each in calls]

    def tool_result(self, block: JsonDict) -> None:
        id = text_in(block, "tool_use_id") or next(iter(self._waiting), None)
        self._waiting = [each for each in self._waiting if each != id]
        content = block.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [each.get("text") if isinstance(each, dict) else each for each in parts]
        contents = [TextContent(text) for each in texts if (text := arguments_text(each))]
        self.result(id, contents or [_NOT_RECORDED], block.get("is_error") is True or None, {})

    def end_calls(self) -> None:
        """Add a result that says "not recorded" for each tool call without a result, because the
        next record shows that the call has ended.
        """
        self.miss(_NO_RESULTS, len(self._waiting))
        for id in self._waiting:
            self.result(id, [_NOT_RECORDED], None, {})
        self._waiting = []


def _query_in(text: str) -> tuple[str, dict[str, str]]:
    """Return what the user wrote, without Cursor's tags around it, and the time that
    Cursor added.
    """
    about: dict[str, str] = {}
    head, mark, rest = text.partition(_TIME_END)
    if mark and head.strip().startswith(_TIME):
        about["timestamp"] = head.strip().removeprefix(_TIME).strip()
        text = rest
    text = text.strip()
    if text.startswith(_QUERY) and text.endswith(_END) and text.count(_QUERY) == 1:
        text = text.removeprefix(_QUERY).removesuffix(_END).strip()
    return text, about


def type_of(record: JsonValue) -> str:
    return str(record.get("type") or record.get("role"))


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    is_record=is_record,
    content_of=content_of,
    kinds=Kinds(type_of, SILENT),
)
