"""Gemini CLI: session files. A file is one JSON object or, since 2026, one record a line. This
format is only read.

    {"sessionId": …, "projectHash": …, "messages": [{"id": …, "type": "user", "content": …}, …]}

- A message that changed is written again under its id. `$set` and `$patch` change earlier records.
- `$rewindTo` takes back a message and all messages after it.
- A record of the type `gemini` has the model's text, thoughts and tool calls, and the tool results.
  The text and the calls become one message if the time of the record is before the time of its
  first call. Otherwise the text becomes a message after the results.

Source of the shapes: google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chatmemory.formats import gemini
from chatmemory.formats.account import Account
from chatmemory.formats.format import Format, Kinds, Loss, RawTranscript, Transcript, kind_of
from chatmemory.formats.json_properties import dict_in, dicts_in, list_in, name_of, text_in
from chatmemory.formats.readers_and_writers import answer_of
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, branch_of, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue
from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage

NAME = "gemini_cli"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
BRANCHES = 20  # the most conversations before rewinds
_NOTICES = ("info", "error", "warning", "model")
_TYPES = ("user", "gemini", *_NOTICES)
_CHANGES = ("$set", "$patch", "$rewindTo")


def find(value: JsonValue) -> RawTranscript | None:
    """Return the records of a session file, or the messages if the file is one JSON object. None if
    the value is in another format.
    """
    records = records_in(value)
    head = next(filter(is_head, records), None)
    if head is None or not all(isinstance(each, dict) for each in records):
        return None
    listed = list_in(head, "messages") if len(records) == 1 else []
    return RawTranscript(session_of(head), listed or records)


def session_of(record: JsonValue) -> str | None:
    return name_of(record, "sessionId") if is_head(record) else None


def is_head(value: JsonValue) -> bool:
    return isinstance(value, dict) and {"sessionId", "projectHash"} <= value.keys()


def is_record(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    is_message = isinstance(value.get("type"), str) and {"content", "id"} <= value.keys()
    return is_head(value) or is_message or not value.keys().isdisjoint(_CHANGES)


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of a record that have words: content, thoughts, arguments and results. None
    if the type of the record is unknown. If words of these parts are in no message, the words are
    reported as lost.
    """
    if not type_of(record).startswith(("$", "user", "gemini", "none")):
        return None
    within = [dict_in(record, name) for name in ("$patch", "$set")]
    messages = _listed(record) or [next(filter(None, within), record)]
    beside = _BESIDE.without(record, "messages", "$set", "$patch") if _listed(record) else None
    return [beside, [_said_in(each) for each in messages]]


def _said_in(message: JsonDict) -> JsonList:
    calls = message.get("toolCalls")
    said = map(_BESIDE_CALLS.without, calls) if isinstance(calls, list) else [calls]
    return [_BESIDE.without(message, "toolCalls"), *said]


# Properties of messages, and of calls: what the program shows of them
_BESIDE = Beside(
    texts=("startTime", "lastUpdated", "projectHash", "directories"),
    wholes=("displayContent", "summary", "memoryScratchpad"),
)
_BESIDE_CALLS = Beside(
    texts=("description", "displayName"),
    wholes=("resultDisplay",),
)


def _listed(record: JsonDict) -> list[JsonDict]:
    """Return the messages that a record lists: all messages of an older file, or those of a change
    that replaces all messages.
    """
    return dicts_in(dict_in(record, "$set") or record, "messages")


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    account = Account.of(turns)
    log = _Log(account)
    for n, turn in enumerate(turns):
        if isinstance(turn, dict):
            log.read(n, turn)
    messages, others = log.messages(), log.before_rewinds
    in_main = {*messages.places}
    account.leave(*log.taken_back - in_main)
    del log  # before records are read
    read = _read(account, messages, after)
    losses, branches = [Loss("session", _UNRECORDED), *read.losses], []
    for each in others:
        own = {*each.places} - in_main
        branch, lost = branch_of(account, partial(_read, messages=each), own, read, FORMAT)
        branches.append(branch)
        losses += lost
    return replace(read, losses=tuple(losses), branches=tuple(branches))


def _read(account: Account, messages: _Messages, after: Iterable[ChatMessage] = ()) -> Transcript:
    """Return the session read from messages. `account` has the records from which the messages
    come.
    """
    places, changed = messages.places, Account(messages)
    read = _Reader().read_all(changed, range(len(messages)), after)
    account.take_over(changed, places)
    return replace(
        read,
        losses=tuple(_at(loss, places) for loss in read.losses),
        turns=tuple(places[turn] for turn in read.turns),
    )


def _at(loss: Loss, places: Sequence[int]) -> Loss:
    return loss if loss.turn is None else replace(loss, turn=places[loss.turn])


class _Log:
    """The messages of a session by id, after all changes.

    Each message has the index of its last record. The message itself is only stored if it differs
    from that record.
    """

    def __init__(self, records: Sequence[JsonValue]) -> None:
        self._records = records
        self._places: dict[str, int] = {}
        self._changed: dict[str, JsonDict] = {}
        self.taken_back: set[int] = set()
        self.before_rewinds: list[_Messages] = []

    def read(self, n: int, record: JsonDict) -> None:
        for each in _listed(record):
            self.put(n, each)
        if "$rewindTo" in record:
            self.rewind(record["$rewindTo"])
        elif patch := dict_in(record, "$patch"):
            self.put(n, patch)
        elif "type" in record:
            self.put(n, record, is_whole=True)

    def put(self, n: int, message: JsonDict, is_whole: bool = False) -> None:
        """Store a message of the record with index `n`. If the message was written before, its new
        parts replace the old ones, and other old parts stay.

        With `is_whole`, the record itself is the message.
        """
        id = name_of(message, "id") or f"message {len(self._places) + 1}"
        known = self._known(id)
        merged = _merged(known, message)
        self._changed.pop(id, None)
        self._places[id] = n
        if merged is not message or not is_whole:
            self._changed[id] = merged

    def _known(self, id: str) -> JsonDict:
        if id in self._changed or id not in self._places:
            return self._changed.get(id, {})
        found: JsonDict = self._records[self._places[id]]
        return found

    def messages(self) -> _Messages:
        changed = {k: self._changed[id] for k, id in enumerate(self._places) if id in self._changed}
        return _Messages(self._records, array("L", self._places.values()), changed)

    def rewind(self, id: JsonValue) -> None:
        ids = [*self._places]
        if len(self.before_rewinds) < BRANCHES and ids:
            self.before_rewinds.append(self.messages())
        for each in ids[ids.index(id) :] if id in self._places else ids:
            self.taken_back.add(self._places.pop(each))
            self._changed.pop(each, None)


class _Messages(Sequence[JsonValue]):
    """The messages of a session in order, after all changes."""

    def __init__(
        self, records: Sequence[JsonValue], places: Sequence[int], changed: Mapping[int, JsonDict]
    ) -> None:
        self._records, self.places, self._changed = records, places, changed

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, k: Any) -> JsonValue:  # its base class allows slices
        return self._changed[k] if k in self._changed else self._records[self.places[k]]


def _merged(known: JsonDict, newer: JsonDict) -> JsonDict:
    """Return a message that was written again. Parts that only the older version has are added."""
    told = {name: each for name, each in newer.items() if each not in (None, "", [], {})}
    calls = {name_of(each, "id"): each for each in dicts_in(known, "toolCalls")}
    for each in dicts_in(newer, "toolCalls"):
        id = name_of(each, "id")
        calls[id] = {**calls.get(id, {}), **each}
    merged = {**known, **told, **({"toolCalls": [*calls.values()]} if calls else {})}
    return newer if all(merged[name] == newer.get(name) for name in merged) else merged


class _Reader(SessionReader):
    format = NAME

    def read(self, record: JsonDict) -> None:
        match record.get("type"):
            case "user":
                contents = _contents(record)
                results = [each for each in _parts(record) if "functionResponse" in each]
                if contents:
                    self.add(UserMessage(contents, attributes=self.about(record)))
                elif not results:  # results are also beside their calls
                    self.lack("messages without content")
            case "gemini":
                self.model(record)
            case kind if kind in _NOTICES:
                self.miss(f"messages of the program to the user, of type {kind!r}")

    def model(self, record: JsonDict) -> None:
        calls = dicts_in(record, "toolCalls")
        contents, thoughts = _texts(record), _thoughts(record)
        first = calls[0].get("timestamp") if calls else None
        is_before = bool(contents and calls) and str(record.get("timestamp")) < str(first)
        requests = [
            self.calls.request(text_in(each, "id"), text_in(each, "name"), each.get("args"))
            for each in calls
        ]
        about = self.about(record)
        if requests:
            self.counted(
                answer_of(contents if is_before else [], requests, thoughts, about), record
            )
            thoughts = []
            for each in calls:
                self.result_of(each)
        if (contents and not is_before) or thoughts or not requests:
            if contents or thoughts:
                self.counted(answer_of(contents, (), thoughts, about), record)
            else:
                self.lack("answers without content")

    def counted(self, message: AiMessage, record: JsonMap) -> None:
        place = self.add(message)
        if tokens := whole(dict_in(record, "tokens").get("input")):
            self.built.count_prompt(place, tokens)

    def result_of(self, call: JsonMap) -> None:
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

    def about(self, record: JsonMap) -> JsonDict:
        return self.own({name: record.get(name) for name in ("id", "timestamp", "model", "tokens")})


def _parts(record: JsonMap) -> list[JsonDict]:
    content = record.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [{"text": each} if isinstance(each, str) else each for each in parts]
    return [each for each in texts if isinstance(each, dict)]


def _contents(record: JsonMap) -> list[Content]:
    parts = [each for each in _parts(record) if "functionResponse" not in each and any(each)]
    parts = [each for each in parts if each.get("text") != ""]
    if not parts:
        return []
    (message,) = gemini.FORMAT.parse([{"role": "user", "parts": parts}], ()).messages
    return [each for each in getattr(message, "contents", ()) if each]


def _texts(record: JsonMap) -> list[str]:
    parts = [each for each in _parts(record) if not each.get("thought")]
    return [each["text"] for each in parts if isinstance(each.get("text"), str) and each["text"]]


def _thoughts(record: JsonMap) -> list[str]:
    thoughts = [each for each in _parts(record) if each.get("thought")]
    found = [text_in(each, "text") or "" for each in thoughts]
    for each in dicts_in(record, "thoughts"):
        texts = [text_in(each, "subject"), text_in(each, "description")]
        found.append(": ".join(filter(None, texts)))
    return [*filter(None, found)]


def type_of(record: JsonValue) -> str:
    """Return the type of a record: the type of its message, or the name of its change, such as
    `$set`.
    """
    return next((each for each in _CHANGES if each in record), "") or kind_of(record)


FORMAT = Format(
    NAME,
    find,
    parse,
    is_record=is_record,
    session_of=session_of,
    content_of=content_of,
    kinds=Kinds(type_of),
    is_whole=True,
)
