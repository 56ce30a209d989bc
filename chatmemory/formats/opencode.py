"""opencode: output of `opencode export`, and the sessions of opencode.db. This format is only read.

    {"info": {"id": …, …}, "messages": [{"info": {"role": …, …}, "parts": [{"type": …, …}, …]}, …]}

- The parts of an answer (thoughts, text and tools) come from one or more model calls. The part of a
  tool also has the tool's result.
- A compaction is a message with a part of type `compaction`, and the answer with `"summary": true`
  after it.
- Messages that the user reverted are a branch.

Source of the shapes: anomalyco/opencode, packages/opencode/src/session/message-v2.ts,
session.sql.ts and cli/cmd/export.ts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from chatmemory.formats.account import Account
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript, Transcript
from chatmemory.formats.json_properties import dict_in, dicts_in, list_in, name_of, text_in, type_in
from chatmemory.formats.parts import media_content
from chatmemory.formats.readers_and_writers import answer_of, stand_in
from chatmemory.formats.sessions import SessionReader, branch_of, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    UserMessage,
)

NAME = "opencode"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
# Parts about the work: no words of people, models or tools
_ABOUT = ("step-start", "step-finish", "snapshot", "patch", "agent", "compaction", "retry")


def find(value: JsonValue) -> RawTranscript | None:
    """Return the session's data and its messages, as a list of records. None if the value is in
    another format.
    """
    messages, info = list_in(value, "messages"), dict_in(value, "info")
    if not messages or "id" not in info or not all(map(_is_message, messages)):
        return None
    return RawTranscript(name_of(info, "id"), [info, *messages])


def _is_message(value: JsonValue) -> bool:
    return isinstance(list_in(value, "parts"), list) and "role" in dict_in(value, "info")


def is_empty(value: JsonValue) -> bool:
    is_session = "id" in dict_in(value, "info") and "sessionID" not in dict_in(value, "info")
    return is_session and value.get("messages") == []


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of a record that have words: texts, thoughts, arguments and results. If
    words of these parts are in no message, the words are reported as lost.
    """
    if "info" not in record:
        return _OF_A_SESSION.without(record)
    beside = [Beside().without(record, "info", "parts"), _BESIDE.without(record.get("info"))]
    return [*beside, *map(_said_in, list_in(record, "parts"))]


def _said_in(part: JsonValue) -> JsonValue:
    match type_in(part):
        case "text":
            return None if part.get("ignored") is True else _BESIDE_TEXT.without(part)
        case "reasoning" | "subtask":
            return _BESIDE_TEXT.without(part)
        case "tool":
            return [_OF_A_TOOL.without(part, "state"), _OF_A_STATE.without(part.get("state"))]
        case "file":
            return _OF_A_FILE.without(part)
        case kind if kind in _ABOUT:
            return _BESIDE_STEP.without(part)
    return part


# Properties of sessions, of messages, and of their texts
_OF_A_SESSION = Beside(
    texts=("title", "directory", "slug"),
    wholes=("summary", "share", "revert", "permission"),
)
_BESIDE = Beside(
    texts=("agent", "mode", "finish", "variant"),
    wholes=("summary", "error"),
    inner={"model": Beside(texts=("variant",)), "path": Beside(texts=("cwd", "root"))},
)
_BESIDE_TEXT = Beside(
    texts=("agent", "description", "command"),
    wholes=("model",),
)
_OF_A_FILE = Beside(wholes=("source",))
_OF_A_TOOL = Beside(texts=("tool",))
_OF_A_STATE = Beside(texts=("title",), wholes=("attachments",))
_BESIDE_STEP = Beside(texts=("reason", "hash", "files", "snapshot"), wholes=("error", "source"))


def type_of(record: JsonMap) -> str:
    return str(dict_in(record, "info").get("role")) if "info" in record else "session"


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    account = Account.of(turns)
    back = _first_reverted(turns)
    every = range(len(turns))
    main = every if back is None else range(back)
    read = _along(main, after)(account)
    if back is None:
        return read
    branch, lost = branch_of(account, _along(every), {*every} - {*main}, read, FORMAT)
    return replace(read, losses=(*read.losses, *lost), branches=(branch,))


def _along(
    way: Sequence[int], after: Iterable[ChatMessage] = ()
) -> Callable[[Account], Transcript]:
    return lambda account: _Reader().read_all(account, way, after)


def _first_reverted(turns: Sequence[JsonValue]) -> int | None:
    """Return the index of the first message that the user reverted. None if no message is
    reverted.
    """
    id = dict_in(turns[0] if turns else None, "revert").get("messageID")
    ids = [dict_in(each, "info").get("id") if isinstance(each, dict) else None for each in turns]
    return ids.index(id) if id is not None and id in ids[1:] else None


class _Reader(SessionReader):
    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self._system: str | None = None
        self._places: dict[str, int] = {}  # the indices of messages by their ids
        self._compaction: JsonDict = {}

    def read(self, record: JsonDict) -> None:
        if "parts" not in record:
            self.lack(_UNRECORDED)
            return
        info, parts = dict_in(record, "info"), dicts_in(record, "parts")
        self._places.setdefault(str(info.get("id")), len(self.built.messages))
        match info.get("role"):
            case "user":
                self.user(info, parts)
            case "assistant" if info.get("summary") is True and self._compaction:
                self.summary(info, parts)
            case "assistant":
                self.assistant(info, parts)

    def user(self, info: JsonDict, parts: list[JsonDict]) -> None:
        system = text_in(info, "system")
        if system and system.strip() and system != self._system:
            self._system = system
            self.add(SystemMessage(system))
        for part in parts:
            if type_in(part) == "compaction":
                self._compaction = part
        contents = [each for part in parts for each in _contents(part)]
        if contents:
            said = [part for part in parts if type_in(part) == "text"]
            by_program = bool(said) and all(part.get("synthetic") for part in said)
            self.add(UserMessage(contents, attributes=self.about(info)), by_program)

    def summary(self, info: JsonDict, parts: list[JsonDict]) -> None:
        text = "\n".join(_texts(parts, "text")) or "[no summary]"
        compaction, self._compaction = self._compaction, {}
        first = self._places.get(str(compaction.get("tail_start_id")))
        kept = [each for each in self.built.window if first is not None and each >= first]
        trigger = "auto" if compaction.get("auto") else "manual"
        self.compact(UserMessage(text, attributes=self.about(info)), kept=kept, trigger=trigger)

    def assistant(self, info: JsonDict, parts: list[JsonDict]) -> None:
        for step in _steps(parts):
            tools = [part for part in step if type_in(part) == "tool"]
            calls = [self.call(part) for part in tools]
            texts, thoughts = _texts(step, "text"), _texts(step, "reasoning")
            if texts or thoughts or calls:
                place = self.add(answer_of(texts, calls, thoughts, self.about(info)))
                self.count(place, step)
            for part in tools:
                self.tool_result(part, dict_in(part, "state"))
        self.miss("errors of a provider, given in place of an answer", bool(info.get("error")))

    def call(self, part: JsonDict) -> ToolExecutionRequest:
        arguments = dict_in(part, "state").get("input")
        return self.calls.request(text_in(part, "callID"), text_in(part, "tool"), arguments)

    def count(self, place: int, step: list[JsonDict]) -> None:
        for part in step:
            tokens = dict_in(part, "tokens")
            cache = dict_in(tokens, "cache")
            counts = (tokens.get("input"), cache.get("read"), cache.get("write"))
            if found := sum(whole(each) or 0 for each in counts):
                self.built.count_prompt(place, found)

    def tool_result(self, part: JsonDict, state: JsonDict) -> None:
        status, time = state.get("status"), dict_in(state, "time")
        about = {"id": part.get("id"), "time": time}
        contents: list[Content] = []
        if text := text_in(state, "output", "error"):
            contents.append(TextContent(text))
        contents += [each for file in dicts_in(state, "attachments") for each in _contents(file)]
        if status in ("completed", "error"):
            is_error = True if status == "error" else None
            place = self.result(text_in(part, "callID"), contents, is_error, about)
            if time.get("compacted"):
                self.built.clear([place])

    def about(self, info: JsonDict) -> JsonDict:
        names = ("id", "time", "agent", "mode", "modelID", "providerID", "tokens", "finish")
        return self.own({name: info.get(name) for name in names})


def _steps(parts: Iterable[JsonDict]) -> Iterator[list[JsonDict]]:
    """Yield the parts of each model call in an answer."""
    step: list[JsonDict] = []
    for part in parts:
        goes_on = type_in(part) in ("text", "reasoning") and "tool" in map(type_in, step)
        if step and (goes_on or type_in(part) == "step-start"):
            yield step
            step = []
        step.append(part)
    if step:
        yield step


def _texts(parts: Iterable[JsonDict], type: str) -> list[str]:
    found = (text_in(part, "text") for part in parts if type_in(part) == type)
    return [text for text in found if text]


def _contents(part: JsonDict) -> Iterator[Content]:
    match type_in(part):
        case "text":
            text = text_in(part, "text")
            if text and not part.get("ignored"):
                yield TextContent(text)
        case "subtask":
            yield TextContent(text_in(part, "prompt") or "")
        case "file":
            url, mime = text_in(part, "url") or "", text_in(part, "mime")
            if url.startswith("data:"):
                yield media_content("file", url, None, mime)
            else:
                yield stand_in("file", text_in(part, "filename") or url)


FORMAT = Format(
    NAME,
    find,
    parse,
    content_of=content_of,
    kinds=Kinds(type_of, {"session": NOT_KNOWN}),
    is_empty=is_empty,
    is_whole=True,
)
