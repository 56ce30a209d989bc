"""GitHub Copilot CLI: the events of a session, one JSON record a line. This format is only read.

    {"type": "assistant.message", "data": {"content": …, "toolRequests": […]}, "id": …}

VS Code writes transcripts of Copilot's chat in the same format, but with tool results that have no
text. Source of the shapes: github/copilot-sdk, nodejs/src/generated/session-events.ts, and
published events of versions 0.0.369 to 1.0.88.
"""

from __future__ import annotations

from chatmemory.formats.account import NOTHING
from chatmemory.formats.format import Format, Kinds, RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    name_of,
    text_in,
    type_in,
)
from chatmemory.formats.readers_and_writers import answer_of, stand_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import AiMessage, ToolExecutionRequest, UserMessage

NAME, VERSION = "copilot_cli", "1.0.88"
_SAYING = ("user.message", "assistant.message", "tool.execution_complete")
_UNRECORDED = "lists of tools, which are not recorded"
_LEFT_OUT = {
    "system.message": "system prompts of the program",
    "skill.invoked": "texts of skills",
    "session.error": "errors of the program",
    "session.snapshot_rewind": "rewinds: memory still has the messages that they took back",
}
_OF_SUBAGENTS = "records of subagents, of which only the results came back"
_NOT_RECORDED = stand_in("result", "not recorded")
_CONTEXT = "context that the program added to what the user wrote"
_COPIES = "copies of tool results, made for other programs"
# Records about a session and its turns
SILENT = dict.fromkeys(
    (
        *("session.start", "session.resume", "session.shutdown", "session.idle", "session.info"),
        *("session.warning", "session.model_change", "session.mode_changed", "session.handoff"),
        *("session.permissions_changed", "session.plan_changed", "session.title_changed"),
        *("session.context_changed", "session.usage_info", "session.usage_checkpoint"),
        *("session.truncation", "session.compaction_start", "session.task_complete"),
        *("session.workspace_file_changed", "session.todos_changed", "session.tools_updated"),
        *("assistant.turn_start", "assistant.turn_end", "assistant.usage", "assistant.intent"),
        *("assistant.idle", "abort", "hook.start", "hook.end", "tool.user_requested"),
        *("subagent.started", "subagent.completed", "subagent.selected", "subagent.configured"),
        *("permission.requested", "permission.completed", "pending_messages.modified", "result"),
    ),
    VERSION,
)


def find(value: JsonValue) -> RawTranscript | None:
    records = records_in(value)
    if not records or not all(map(is_record, records)):
        return None
    if not any(type_in(each) in _KNOWN or type_in(each) in SILENT for each in records):
        return None
    start = next((each for each in records if type_in(each) == "session.start"), None)
    return RawTranscript(name_of(dict_in(start, "data"), "sessionId"), records)


def is_record(value: JsonValue) -> bool:
    """Return whether a value is an event: it has a type, an object `data`, and an id or a time.
    Events of the types `abort` and `result` need only the type and a time.
    """
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    if value["type"] in ("abort", "result"):
        return "timestamp" in value
    return ("id" in value or "timestamp" in value) and isinstance(value.get("data"), dict)


_KNOWN = (
    *(*_SAYING, *_LEFT_OUT, "tool.execution_start", "assistant.reasoning"),
    *("system.notification", "session.compaction_complete"),
)
# Properties of calls, of results and of events that repeat words, or describe them
_OF_A_CALL = Beside(
    texts=("toolTitle", "mcpServerName", "mcpToolName", "toolDescription", "intentionSummary"),
    wholes=("mcpMeta", "shellToolInfo"),
)
_OF_A_RESULT = Beside(
    texts=("detailedContent",),
    wholes=("contents", "structuredContent", "binaryResultsForLlm", "uiResource", "citableSources"),
)
_BESIDE = Beside(
    texts=(
        *("transformedContent", "reasoningOpaque", "source", "toolTitle", "mcpServerName"),
        *("mcpToolName", "toolDescription", "delivery", "agentMode", "trigger"),
        *("checkpointPath", "customInstructions", "reasoningWireField"),
    ),
    wholes=(
        *("reasoningBlocks", "serverTools", "toolTelemetry", "mcpMeta", "shellToolInfo"),
        *("compactionTokensUsed", "citableSources"),
    ),
    inner={"toolRequests": _OF_A_CALL, "result": _OF_A_RESULT},
)


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of an event that have words of people, models or tools. Empty if events of
    this type have no such words, and None if the type is unknown. If words of these parts are in no
    message, the words are reported as lost.
    """
    kind = type_in(record)
    if kind in SILENT:
        return NOTHING
    if kind not in _KNOWN:
        return None
    return [_BESIDE.without(record.get("data")), Beside().without(record, "data")]


class _Reader(SessionReader):
    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self.miss(_UNRECORDED)
        self._asked: set[str] = set()  # ids of calls
        self._latest: str | None = None  # id of the answer whose calls may follow
        self._thoughts: list[str] = []

    def read(self, record: JsonDict) -> None:
        kind, data = type_in(record), dict_in(record, "data")
        about = {"id": record.get("id"), "timestamp": record.get("timestamp")}
        match kind:
            case _ if data.get("parentToolCallId") or data.get("parentAgentTaskId"):
                self.miss(_OF_SUBAGENTS)
            case "user.message" | "system.notification":
                self.user(data, about, by_program=kind != "user.message")
            case "assistant.reasoning":
                self._thoughts.append(text_in(data, "content") or "")
            case "assistant.message":
                self.assistant(data, about)
            case "tool.execution_start":
                self.call(data)
            case "tool.execution_complete":
                self.tool_result(data, about)
            case "session.compaction_complete":
                self.compaction(data)
            case _:
                self.miss(_LEFT_OUT.get(kind or "", ""), kind in _LEFT_OUT)

    def compaction(self, data: JsonDict) -> None:
        if summary := text_in(data, "summaryContent"):
            before, after = data.get("preCompactionTokens"), data.get("postCompactionTokens")
            tokens = {"tokens_before": before, "tokens_after": after}
            known = {name: each for name, each in tokens.items() if isinstance(each, int)}
            self.compact(UserMessage(summary), **known)

    def user(self, data: JsonDict, about: JsonDict, by_program: bool) -> None:
        self._latest = None
        text = text_in(data, "content") or ""
        self.miss(_CONTEXT, data.get("transformedContent", text) not in (text, None, ""))
        contents: list[Content] = [TextContent(text)] if text else []
        contents += [_attachment(each) for each in dicts_in(data, "attachments")]
        if contents:
            is_injected = by_program or data.get("source") not in (None, "", "user")
            self.add(UserMessage(contents, attributes=self.own(about)), is_injected)

    def assistant(self, data: JsonDict, about: JsonDict) -> None:
        requests = dicts_in(data, "toolRequests")
        calls = [self.request(each, "name") for each in requests]
        thoughts = [text_in(data, "reasoningText") or "\n".join(self._thoughts)]
        self._thoughts = []
        text = text_in(data, "content")
        about |= {"model": data.get("model"), "outputTokens": data.get("outputTokens")}
        if text or calls or any(thoughts):
            self._latest = text_in(data, "messageId")
            part = answer_of([text] if text else [], calls, thoughts, self.own(about))
            self.close(self._latest)  # an answer in chunks has several messages
            self.answer(part, self._latest)

    def request(self, value: JsonDict, name: str) -> ToolExecutionRequest:
        id = text_in(value, "toolCallId")
        self._asked.add(id or "")
        return self.calls.request(id, text_in(value, name), value.get("arguments"))

    def call(self, data: JsonDict) -> None:
        """Add a tool call that is missing in the record of its answer, as in earlier versions."""
        id = text_in(data, "toolCallId")
        if id in self._asked:
            self.account_for_record()
            return
        part = AiMessage(None, [self.request(data, "toolName")])
        self.answer(part, self._latest or id)

    def tool_result(self, data: JsonDict, about: JsonDict) -> None:
        self.close(self._latest)
        self._latest = None
        result = dict_in(data, "result")
        self.miss(_COPIES, any(result.get(name) for name in ("contents", "structuredContent")))
        error = data.get("error")
        failure = arguments_text(error.get("message") if isinstance(error, dict) else error)
        texts = [text_in(result, "content"), text_in(data, "output"), failure]
        contents = [TextContent(each) for each in texts if each] or [_NOT_RECORDED]
        failed = data.get("success") is False
        self.result(text_in(data, "toolCallId"), contents, failed or None, about)


def _attachment(value: JsonDict) -> TextContent:
    """Return a text for an attachment: its name, and the text that the user selected in it."""
    names = ("displayName", "path", "filePath", "title", "url")
    name = next((each for n in names if isinstance(each := value.get(n), str) and each), None)
    line = stand_in("file", name).text
    text = value.get("text")
    return TextContent(f"{line}\n{text}" if isinstance(text, str) and text else line)


def type_of(record: JsonValue) -> str:
    return str(type_in(record))


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    is_record=is_record,
    content_of=content_of,
    kinds=Kinds(type_of, SILENT),
)
