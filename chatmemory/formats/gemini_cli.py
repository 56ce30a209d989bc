"""Gemini CLI: session files, one JSON object, or since 2026 one record a line. They are only read.

    {"sessionId": …, "projectHash": …, "messages": [{"id": …, "type": "user", "content": …}, …]}

A message that changed is written again under its id. `$set` and `$patch` change what was written,
`$rewindTo` takes back a message and all behind it. A message of the model holds its thoughts, its
calls and their results: words that are older than the first call were said before it.
Source of the shapes: google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chatmemory.core.contents import Content, TextContent
from chatmemory.core.messages import AiMessage, ChatMessage, UserMessage
from chatmemory.formats import gemini
from chatmemory.formats.conversion import (
    answer_of,
    dict_in,
    dicts_in,
    name_of,
    text_in,
)
from chatmemory.formats.format import Format, RawTranscript, Transcript
from chatmemory.formats.sessions import SessionReader, whole

NAME = "gemini_cli"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_TYPES = ("user", "gemini", "info", "error", "warning")


def find(value: Any) -> RawTranscript | None:
    """Return the records of a file: the first one names session and project."""
    records = value if isinstance(value, list) else [value]
    heads = [each for each in records if is_head(each)]
    if not heads or not all(isinstance(each, dict) for each in records):
        return None
    return RawTranscript(name_of(heads[0], "sessionId"), records)


def is_head(value: Any) -> bool:
    return isinstance(value, dict) and {"sessionId", "projectHash"} <= value.keys()


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    log = _Log()
    for turn in turns:
        if isinstance(turn, dict):
            log.read(turn)
    reader = _Reader()
    reader.miss(_UNRECORDED)
    reader.miss("messages that a rewind took back", log.taken_back)
    messages = [*log.messages.values()]
    return reader.read_all(messages, range(len(messages)), after)


class _Log:
    """The messages of a session by their ids, after all changes of them."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.taken_back = 0

    def read(self, record: dict[str, Any]) -> None:
        changed = dict_in(record, "$set") or record
        for each in dicts_in(changed, "messages"):
            self.put(each)
        if "$rewindTo" in record:
            self.rewind(record["$rewindTo"])
        elif patch := dict_in(record, "$patch"):
            self.put({**self.messages.get(str(patch.get("id")), {}), **_patched(self, patch)})
        elif "type" in record and "id" in record:
            self.put(record)

    def put(self, message: dict[str, Any]) -> None:
        self.messages[name_of(message, "id") or f"message {len(self.messages) + 1}"] = message

    def rewind(self, id: Any) -> None:
        ids = [*self.messages]
        taken = ids[ids.index(id) :] if id in self.messages else ids
        self.taken_back += len(taken)
        for each in taken:
            del self.messages[each]


def _patched(log: _Log, patch: dict[str, Any]) -> dict[str, Any]:
    """Return a patch whose calls have what was known of them."""
    known = log.messages.get(str(patch.get("id")), {})
    calls = {name_of(each, "id"): each for each in dicts_in(known, "toolCalls")}
    changed = [
        {**calls.get(name_of(each, "id"), {}), **each} for each in dicts_in(patch, "toolCalls")
    ]
    return {**patch, "toolCalls": changed} if changed else patch


class _Reader(SessionReader):
    format = NAME

    def read(self, record: dict[str, Any]) -> None:
        match record.get("type"):
            case "user":
                contents = _contents(record)
                results = [each for each in _parts(record) if "functionResponse" in each]
                if contents:
                    self.add(UserMessage(contents, attributes=self.about(record)))
                elif not results:  # results stand with their calls, too
                    self.miss("messages without content")
            case "gemini":
                self.model(record)
            case kind:
                self.miss(f"messages of the program to the user, of type {kind!r}")

    def model(self, record: dict[str, Any]) -> None:
        calls = dicts_in(record, "toolCalls")
        said, thoughts = _texts(record), _thoughts(record)
        first = calls[0].get("timestamp") if calls else None
        is_before = bool(said and calls) and str(record.get("timestamp")) < str(first)
        requests = [
            self.calls.request(text_in(each, "id"), text_in(each, "name"), each.get("args"))
            for each in calls
        ]
        about = self.about(record)
        if requests:
            self.counted(answer_of(said if is_before else [], requests, thoughts, about), record)
            thoughts = []
            for each in calls:
                self.result_of(each)
        if (said and not is_before) or thoughts or not requests:
            if said or thoughts:
                self.counted(answer_of(said, (), thoughts, about), record)
            else:
                self.miss("answers without content")

    def counted(self, message: AiMessage, record: Mapping[str, Any]) -> None:
        place = self.add(message)
        if tokens := whole(dict_in(record, "tokens").get("input")):
            self.built.count_prompt(place, tokens)

    def result_of(self, call: Mapping[str, Any]) -> None:
        result, parts = call.get("result"), dicts_in(call, "result")
        is_error = True if call.get("status") == "error" else None
        about = {name: call.get(name) for name in ("status", "timestamp")}
        contents: list[Content] = []
        if parts:
            read = gemini.FORMAT.parse([{"role": "user", "parts": parts}], ())
            for message in read.messages:
                contents += [each for each in getattr(message, "contents", ()) if each]
        elif isinstance(result, str):
            contents = [TextContent(result)]
        if contents or call.get("status") != "cancelled":
            self.result(text_in(call, "id"), contents, is_error, about)
        else:
            self.miss("calls that were cancelled")

    def about(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return self.own({name: record.get(name) for name in ("id", "timestamp", "model", "tokens")})


def _parts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = record.get("content")
    given = content if isinstance(content, list) else [content]
    texts = [{"text": each} if isinstance(each, str) else each for each in given]
    return [each for each in texts if isinstance(each, dict)]


def _contents(record: Mapping[str, Any]) -> list[Content]:
    parts = [each for each in _parts(record) if "functionResponse" not in each and any(each)]
    parts = [each for each in parts if each.get("text") != ""]
    if not parts:
        return []
    (message,) = gemini.FORMAT.parse([{"role": "user", "parts": parts}], ()).messages
    return [each for each in getattr(message, "contents", ()) if each]


def _texts(record: Mapping[str, Any]) -> list[str]:
    parts = [each for each in _parts(record) if not each.get("thought")]
    return [each["text"] for each in parts if isinstance(each.get("text"), str) and each["text"]]


def _thoughts(record: Mapping[str, Any]) -> list[str]:
    thoughts = [each for each in _parts(record) if each.get("thought")]
    found = [text_in(each, "text") or "" for each in thoughts]
    for each in dicts_in(record, "thoughts"):
        told = [text_in(each, "subject"), text_in(each, "description")]
        found.append(": ".join(filter(None, told)))
    return [*filter(None, found)]


FORMAT = Format(NAME, find, parse)
