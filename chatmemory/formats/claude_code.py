"""Claude Code: session files, one JSON record a line. They are only read.

Each record names its parent. Rewinds leave records from which the last one does not descend, and
these were not seen any more. A record holds one content block: an answer of the model is several
records with one `message.id`. A boundary and the summary behind it are a compaction.
Source of the shapes: files of Claude Code 2.0.76 to 2.1.42, and those that other readers test with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.contents import Content, TextContent
from chatmemory.core.messages import (
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.formats.anthropic import blocks_of
from chatmemory.formats.conversion import (
    answer_of,
    dict_in,
    list_in,
    name_of,
    object_in,
    stand_in,
    text_in,
)
from chatmemory.formats.format import Format, RawTranscript, Transcript
from chatmemory.formats.parts import media_content
from chatmemory.formats.sessions import SessionReader, whole

NAME = "claude_code"
BOUNDARY, CLEARING = "compact_boundary", "microcompact_boundary"
# How users' records begin that the program wrote.
BY_PROGRAMS = ("<task-notification", "<local-command-stdout", "<bash-stdout", "<system-reminder")
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_PUT_BACK = "compactions of which it is not recorded what was put back, such as files read last"


def find(value: Any) -> RawTranscript | None:
    """Return the records of a file: some of them have an id, a parent and a session."""
    records = value if isinstance(value, list) else [value]
    named = next(filter(_is_record, records), None)
    if named is None or not all(isinstance(each, dict) for each in records):
        return None
    return RawTranscript(name_of(named, "sessionId"), records)


def _is_record(value: Any) -> bool:
    keys = ("uuid", "parentUuid", "sessionId", "type")
    return isinstance(value, dict) and all(key in value for key in keys)


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    chain = _Chain(turns)
    kept = {
        turns[n]["uuid"]: [turns[each]["uuid"] for each in kept] for n, kept in chain.kept.items()
    }
    reader = _Reader(kept)
    reader.miss(_UNRECORDED)
    reader.miss("records of subagents, of which only the results came back", chain.sidechains)
    live = chain.live()
    reader.miss("records that a rewind left behind", chain.messages - sum(map(chain.says, live)))
    return reader.read_all(turns, live, after)


# The order of the records


class _Chain:
    """The records of a file by their parents.

    Records that a compaction kept may be written anew behind it, as children of the summary: they
    stand before the boundary here.
    """

    def __init__(self, turns: Sequence[Any]) -> None:
        self._turns = turns
        nodes = [
            n
            for n, each in enumerate(turns)
            if isinstance(each, dict) and isinstance(each.get("uuid"), str)
        ]
        main = [n for n in nodes if not turns[n].get("isSidechain")]
        self._nodes = main or nodes  # the file of a subagent has only its own records
        self.sidechains = len(nodes) - len(self._nodes)
        self._by_id = {turns[n]["uuid"]: n for n in self._nodes}
        self.kept = {
            n: self._kept(n) for n in self._nodes if turns[n].get("subtype") == BOUNDARY
        }  # of each boundary, in order
        self._boundary = {n: boundary for boundary, kept in self.kept.items() for n in kept}
        self._nodes.sort(key=self._place)
        self._before = dict(zip(self._nodes[1:], self._nodes, strict=False))
        self._summaries = {before: n for n, before in self._before.items() if before in self.kept}
        self.messages = sum(map(self.says, self._nodes))

    def says(self, n: int) -> bool:
        return self._turns[n].get("type") in ("user", "assistant")

    def _place(self, n: int) -> tuple[int, bool, int]:
        boundary = self._boundary.get(n, n)
        return min(n, boundary), n <= boundary and n not in self._boundary, n

    def _kept(self, boundary: int) -> list[int]:
        about = dict_in(self._turns[boundary], "compactMetadata")
        match about.get("preservedMessages"), about.get("preservedSegment"):
            case {"uuids": [*ids]}, _:
                return [self._by_id[id] for id in ids if isinstance(id, str) and id in self._by_id]
            case _, {"headUuid": str(head), "tailUuid": str(tail)}:
                return self._segment(self._by_id.get(head), self._by_id.get(tail))
        return []

    def _segment(self, head: int | None, tail: int | None) -> list[int]:
        """Return the records from one to another that descends from it."""
        found: list[int] = []
        while tail is not None and tail not in found:
            found.append(tail)
            parent = self._turns[tail].get("parentUuid")
            tail = self._by_id.get(parent) if tail != head and isinstance(parent, str) else None
        return found[::-1] if found and found[-1] == head else []

    def live(self) -> list[int]:
        """Return the records from which the last one descends, and what belongs to their answers:
        parallel calls are siblings.
        """
        found = set()
        last = self._nodes[-1] if self._nodes else None
        while last is not None:
            found.add(last)
            last = self._previous(last)
        answers = {id for n in found if (id := _answer_of(self._turns[n]))}
        found |= {n for n in self._nodes if _answer_of(self._turns[n]) in answers}
        called = {id for n in found for id in _ids(self._turns[n], "tool_use", "id")}
        for n in self._nodes:
            if not called.isdisjoint(_ids(self._turns[n], "tool_result", "tool_use_id")):
                found.add(n)
        return [n for n in self._nodes if n in found]

    def _previous(self, n: int) -> int | None:
        """Return the record before one; the one before in the file where the parent is missing."""
        record = self._turns[n]
        named = record.get("parentUuid") or record.get("logicalParentUuid")
        if named is None and not self.kept.get(n):
            return None
        parent = self._parent(n, named)
        is_before = parent is not None and self._place(parent) < self._place(n)
        return parent if is_before else self._before.get(n)

    def _parent(self, n: int, named: Any) -> int | None:
        if self.kept.get(n):
            return self.kept[n][-1]
        parent = self._by_id.get(named) if isinstance(named, str) else None
        boundary = self._boundary.get(parent) if parent is not None else None
        if boundary is not None and n > boundary and n not in self._boundary:
            return self._summaries.get(boundary)  # what follows the kept ones follows the summary
        return parent


def _answer_of(record: Mapping[str, Any]) -> str | None:
    id = dict_in(record, "message").get("id") if record.get("type") == "assistant" else None
    return id if isinstance(id, str) else None


def _ids(record: Mapping[str, Any], type: str, name: str) -> Iterator[str]:
    for block in list_in(dict_in(record, "message"), "content"):
        is_wanted = isinstance(block, dict) and block.get("type") == type
        if is_wanted and isinstance(block.get(name), str):
            yield block[name]


# What each record says


class _Reader(SessionReader):
    format = NAME

    def __init__(self, kept: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._kept = kept  # the ids of what each boundary kept, by its id
        self._boundary: dict[str, Any] = {}
        self._places: dict[str, list[int]] = {}

    def read(self, record: dict[str, Any]) -> None:
        match record.get("type"), record.get("subtype"):
            case "user", _:
                self.user(record, _message(record))
            case "assistant", _:
                self.assistant(record, _message(record))
            case "system", subtype if subtype == BOUNDARY:
                self.miss("boundaries without a summary", bool(self._boundary))
                self._boundary = record
            case "system", subtype if subtype == CLEARING:
                self.clear(object_in(record.get("microcompactMetadata"), "nothing to clear"))
            case "attachment", _:
                self.miss("attachments")

    def clear(self, about: dict[str, Any]) -> None:
        ids = list_in(about, "compactedToolIds")
        for place, each in enumerate(self.built.messages):
            if isinstance(each, ToolExecutionResultMessage) and each.id in ids:
                self.built.clear([place])

    def user(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        about = {name: record.get(name) for name in ("uuid", "timestamp", "isMeta")}
        contents: list[Content] = []
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                is_error = block.get("is_error") is True or None
                said = list(map(_content, _blocks(block)))
                place = self.result(text_in(block, "tool_use_id"), said, is_error, about)
                self.placed(record, place)
            else:
                contents.append(_content(block))
        if not contents:
            return
        read = UserMessage(contents, attributes=self.own(about))
        if record.get("isCompactSummary"):
            self.summary(read)
        else:
            text = text_of(read).lstrip()
            by_program = bool(record.get("isMeta")) or text.startswith(BY_PROGRAMS)
            self.placed(record, self.add(read, by_program))

    def placed(self, record: dict[str, Any], place: int) -> None:
        self._places.setdefault(record["uuid"], []).append(place)

    def summary(self, read: UserMessage) -> None:
        boundary, self._boundary = self._boundary, {}
        about = dict_in(boundary, "compactMetadata")
        ids = self._kept.get(boundary.get("uuid", ""), ())
        self.miss(_PUT_BACK)
        self.compact(
            read,
            kept={place for id in ids for place in self._places.get(id, ())},
            trigger=text_in(about, "trigger"),
            tokens_before=whole(about.get("preTokens")),
            tokens_after=whole(about.get("postTokens")),
        )

    def assistant(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        if message.get("model") == "<synthetic>":
            self.miss("answers that the program gave in place of the model")
            return
        texts, thoughts, calls = [], [], []
        about = {name: record.get(name) for name in ("uuid", "timestamp")}
        about |= {name: message.get(name) for name in ("id", "model", "stop_reason", "usage")}
        for block in _blocks(message):
            match block.get("type"):
                case "text":
                    texts.append(text_in(block, "text") or "")
                case "thinking":
                    thoughts.append(text_in(block, "thinking"))
                    about["signature"] = block.get("signature")
                case "tool_use":
                    id, name = text_in(block, "id"), text_in(block, "name")
                    calls.append(self.calls.request(id, name, block.get("input")))
                case kind:
                    self.miss(f"blocks of type {kind!r} in answers")
        part = answer_of(texts, calls, thoughts, self.own(about))
        place = self.answer(part, text_in(message, "id"))
        self.placed(record, place)
        usage = dict_in(message, "usage")
        if tokens := sum(whole(usage.get(name)) or 0 for name in _PROMPT):
            self.built.count_prompt(place, tokens)


def _message(record: dict[str, Any]) -> dict[str, Any]:
    return object_in(record.get("message"), "a record needs a message")


def _blocks(holder: Mapping[str, Any]) -> list[dict[str, Any]]:
    return blocks_of(holder.get("content") or None)


def _content(block: dict[str, Any]) -> Content:
    source = dict_in(block, "source")
    data, url = text_in(source, "data"), text_in(source, "url")
    match block.get("type"):
        case "text":
            return TextContent(text_in(block, "text") or "")
        case "image" if data or url:
            return media_content("image", url, data, text_in(source, "media_type"), "low")
        case "document" if data or url:
            return media_content("file", url, data, None)
    return stand_in(str(block.get("type")), text_in(block, "title"))


def said(record: Any) -> Any:
    """Return the content of a record's message; results stand beside it once more, as values."""
    return dict_in(record, "message").get("content")


def _may_be_record(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


FORMAT = Format(NAME, find, parse, is_record=_may_be_record, said=said)
