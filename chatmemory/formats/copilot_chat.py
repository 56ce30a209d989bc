"""GitHub Copilot's chat in VS Code: exports by *Chat: Export Chat…*, and session files. This format
is only read.

    {"responderUsername": …, "requests": [{"message": {"text": …}, "response": […], "result": …}]}

For one answer, an agent calls the model in several rounds. `result.metadata` has the rounds, with
tool calls and results. `response` has the answer as displayed. Source of the shapes: an export of
version 0.32.3, published by its author, and the code of other programs that read such exports.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.formats.format import Format, Kinds, RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    list_in,
    name_of,
    text_in,
    type_in,
)
from chatmemory.formats.readers_and_writers import answer_of
from chatmemory.formats.sessions import SessionReader
from chatmemory.formats.words import Beside
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import UserMessage

NAME = "copilot_chat"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_FILES = "files beside a question, of which only names are recorded"
_STEPS = "steps of tools whose calls are not recorded"
_ERRORS = "errors of the program"
_TEXTS = (None, "markdownContent", "markdownVuln", "text")


def find(value: JsonValue) -> RawTranscript | None:
    if not isinstance(value, dict):
        return None
    requests = dicts_in(value, "requests")
    is_chat = "responderUsername" in value or any("requestId" in each for each in requests)
    if not requests or not is_chat or not all("message" in each for each in requests):
        return None
    return RawTranscript(name_of(value, "sessionId"), list_in(value, "requests"))


def is_empty(value: JsonValue) -> bool:
    return isinstance(value, dict) and "responderUsername" in value and value.get("requests") == []


# Properties of requests, results and answers that repeat words, or describe them
_BESIDE = Beside(
    wholes=(
        *("variableData", "agent", "followups", "contentReferences", "codeCitations"),
        *("responseMarkdownInfo", "editedFileEvents", "modeInfo", "modelState", "slashCommand"),
    )
)
_BESIDE_RESULT = Beside(texts=("details",), wholes=("timings", "errorDetails"))
_BESIDE_ANSWER = Beside(
    texts=("cacheKey", "command", "resolvedModel"),
    wholes=("codeBlocks", "renderedUserMessage", "renderedGlobalContext"),
)
_BESIDE_REFERENCE = Beside(
    texts=("scheme", "authority", "fsPath", "external", "query", "fragment", "$mid"),
    wholes=("range",),
)
_BESIDE_STEP = Beside(
    texts=("generatedTitle", "resolveId", "state"),
    wholes=(
        *("invocationMessage", "pastTenseMessage", "originMessage", "toolSpecificData", "source"),
        *("resultDetails", "confirmationMessages", "edits", "title", "command", "data"),
        *("buttons", "references", "treeData", "uri", "progress", "presentation"),
    ),
)
_OF_TEXTS = {"kind", "value", "supportThemeIcons", "supportHtml", "baseUri", "isTrusted", "uris"}
# Parts of an answer that say what a tool or the editor did
_STEP_KINDS = (
    *("toolInvocation", "toolInvocationSerialized", "prepareToolInvocation", "inlineReference"),
    *("codeblockUri", "textEditGroup", "notebookEditGroup", "undoStop", "mcpServersStarting"),
    *("progressTask", "progressTaskSerialized", "progressMessage", "confirmation", "command"),
    *("warning", "elicitation", "elicitationSerialized", "references", "treeData", "move"),
)


def content_of(request: JsonValue) -> JsonValue:
    """Return the parts of a request that may have words: the user's text, the displayed answer in
    `response`, and the model calls in `result`, if they are recorded.

    Words in these parts are reported as lost if no message has them.
    """
    known = _BESIDE.without(request)
    if not isinstance(known, dict):
        return known
    if not _variables(request):
        known["variableData"] = request.get("variableData")
    result = known.get("result")
    if isinstance(result, dict):
        metadata = dict_in(result, "metadata")
        beside = _BESIDE_RESULT.without(result, "metadata")
        known["result"] = [beside, _BESIDE_ANSWER.without(metadata)]
    if isinstance(known.get("response"), list):
        known["response"] = [
            _step_text(each) if type_or_kind(each) in _STEP_KINDS else each
            for each in known["response"]
        ]
    return known


def _is_text(part: JsonValue) -> bool:
    return (
        isinstance(part, dict) and part.keys() <= _OF_TEXTS and isinstance(part.get("value"), str)
    )


def _step_text(part: JsonValue) -> JsonValue:
    """Return the words of a part of an answer. Of a reference to a file, these are its name and
    address.
    """
    if type_or_kind(part) != "inlineReference":
        return _BESIDE_STEP.without(part)
    reference = part.get("inlineReference")
    uri = dict_in(reference, "uri")
    return [
        _shown_text(part),
        _BESIDE_REFERENCE.without(reference, "uri"),
        _BESIDE_REFERENCE.without(uri),
    ]


def _variables(request: JsonValue) -> list[JsonDict]:
    """Return the files that the user attached to a question."""
    return dicts_in(dict_in(request, "variableData"), "variables")


class _Reader(SessionReader):
    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self.miss(_UNRECORDED)

    def read(self, record: JsonDict) -> None:
        about = {"requestId": record.get("requestId"), "modelId": record.get("modelId")}
        message = record.get("message")
        question = message if isinstance(message, str) else _question(dict_in(record, "message"))
        self.miss(_FILES, len(_variables(record)))
        if question:
            self.add(UserMessage(question, attributes=self.own(about)))
        result = dict_in(record, "result")
        metadata = dict_in(result, "metadata")
        rounds = dicts_in(metadata, "toolCallRounds")
        for each in rounds:
            self.round(each, dict_in(metadata, "toolCallResults"))
        if not rounds:
            self.shown(list_in(record, "response"))
        self.miss(_ERRORS, bool(dict_in(result, "errorDetails").get("message")))

    def round(self, value: JsonDict, results: JsonDict) -> None:
        """Add one round: an answer with its tool calls, and their results."""
        calls = dicts_in(value, "toolCalls")
        asked = [
            self.calls.request(text_in(each, "id"), text_in(each, "name"), each.get("arguments"))
            for each in calls
        ]
        text, thoughts = text_in(value, "response"), [*_strings(dict_in(value, "thinking"))]
        about = {"id": value.get("id"), "timestamp": value.get("timestamp")}
        if text or asked or thoughts:
            self.add(answer_of([text] if text else [], asked, thoughts, self.own(about)))
        for each in calls:
            id = text_in(each, "id")
            texts = [*_strings(results.get(id or "", {}))]
            self.result(id, "".join(texts), None, {})

    def shown(self, parts: JsonList) -> None:
        """Add the answer as displayed, for a request whose rounds are not recorded."""
        texts = [_shown_text(each) for each in parts]
        thoughts = [
            "".join(_strings({"text": each.get("value")}))
            for each in parts
            if isinstance(each, dict) and each.get("kind") == "thinking"
        ]
        steps = [each for each in parts if "toolInvocation" in str(type_or_kind(each))]
        self.miss(_STEPS, len(steps))
        text = "".join(texts)
        if text or any(thoughts):
            self.add(answer_of([text] if text else [], (), thoughts))


def type_or_kind(part: JsonValue) -> JsonValue:
    return part.get("kind") if isinstance(part, dict) else None


def _question(message: JsonDict) -> str:
    parts = "".join(text_in(each, "text") or "" for each in dicts_in(message, "parts"))
    return text_in(message, "text") or parts


def _shown_text(part: JsonValue) -> str:
    """Return the text of a part of an answer: Markdown, or the name of a file that the answer
    mentions.
    """
    if isinstance(part, str):
        return part
    kind = type_or_kind(part)
    if not isinstance(part, dict) or kind not in (*_TEXTS, "inlineReference"):
        return ""
    if kind == "inlineReference":
        reference = dict_in(part, "inlineReference")
        path = reference.get("path") or dict_in(reference, "uri").get("path")
        name = part.get("name") or reference.get("name")
        file = path.rpartition("/")[2] if isinstance(path, str) else ""
        return f"`{name if isinstance(name, str) else file}`"
    value = part.get("value", part.get("content"))
    found = value.get("value") if isinstance(value, dict) else value
    return found if isinstance(found, str) else ""


def _strings(value: JsonValue) -> Iterator[str]:
    """Yield the strings of a thought or of a result. Its parts may be nodes of a tree."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        held = [
            value[name]
            for name in ("text", "value", "content", "node", "children")
            if name in value
        ]
        if held:
            for each in held:
                yield from _strings(each)
        elif value and "$mid" not in value and type_in(value) is None:
            yield arguments_text(value) or ""


def type_of(request: JsonValue) -> str:
    return "request"


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    content_of=content_of,
    kinds=Kinds(type_of),
    is_empty=is_empty,
    is_whole=True,
)
