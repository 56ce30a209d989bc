"""Builds parts of messages in providers' formats, for the examples of rules."""

from __future__ import annotations

from chatmemory.lint.rules import Law
from chatmemory.messages.contents import ImageContent, PdfFile, PdfFileContent
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

CHAT_PAGE = "https://platform.openai.com/docs/api-reference/chat/create"
RESPONSES_PAGE = "https://platform.openai.com/docs/api-reference/responses/create"
PICTURES_PAGE = "https://platform.claude.com/docs/en/build-with-claude/vision"
CONTENT_PAGE = "https://ai.google.dev/api/generate-content"
FUNCTION_CALL_PAGE = "https://ai.google.dev/api/python/google/generativeai/protos/FunctionCall"
CONVERSE_PAGE = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"
DEEPSEEK_PAGE = "https://api-docs.deepseek.com/api/create-chat-completion"
GITHUB = "https://github.com/"
MISTRAL_CHECKS = (
    f"{GITHUB}mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py"
)


def refused(error: str, source: str, date: str = "", conflict: str = "") -> Law:
    return Law("refused", error, _address(source), date=date, conflict=conflict)


def mishandled(source: str, error: str = "", date: str = "", conflict: str = "") -> Law:
    return Law("mishandled", error, _address(source), date=date, conflict=conflict)


def _address(source: str) -> str:
    """Return the address of a source. A source that is no address is a thread on GitHub."""
    return source if source.startswith("https://") else GITHUB + source


# Messages of the examples


def call(*ids: str | None, arguments: str = "{}") -> AiMessage:
    return AiMessage(None, [ToolExecutionRequest(id, "find", arguments) for id in ids])


def result(id: str | None) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "find", "found")


def developer_message() -> SystemMessage:
    edit = {"at": "system#0", "=": {"content": {"$": ["text", 0, 9, 9]}, "role": "developer"}}
    return SystemMessage("Be brief.", {"openai_chat": {"differs": {"items": [edit]}}})


def reasoned(answer: JsonValue) -> AiMessage:
    """Return an AI message of OpenAI Responses with two items: a reasoning item, then the item
    `answer`.
    """
    reasoning = {"=": {"id": "rs_1", "summary": [], "type": "reasoning"}}
    inner = {"items": {"items": [reasoning, answer]}}
    differs = {"items": [{"at": "items#0", "in": inner}]}
    return AiMessage("It is due.", attributes={"openai_responses": {"differs": differs}})


def sound_as_file() -> ToolExecutionResultMessage:
    url = "https://example.org/a.mp3"
    parts = {"=": [{"file_url": url, "type": "input_file"}], "was": 945589691}
    edit = {"at": "function_call_output#0", "in": {"output": parts}}
    own = {"openai_responses": {"differs": {"items": [edit]}}}
    return ToolExecutionResultMessage("1", "find", f"[file {url}]", attributes=own)


def image_message(name: str) -> UserMessage:
    return UserMessage([ImageContent(f"https://example.org/{name}")])


BE_BRIEF = SystemMessage("Be brief.")
HELLO = UserMessage("Hello")
DUE = UserMessage("When is it due?")
HI = AiMessage("Hi")
PDF = PdfFileContent(PdfFile("https://example.org/a.pdf"))
PAIR: list[ChatMessage] = [DUE, call("1"), result("1")]

# In JSON of providers
ASKED: JsonDict = {"role": "user", "content": "When is it due?"}


def call_item(id: str) -> JsonDict:
    """Return a tool call as an item of OpenAI Responses."""
    return {"type": "function_call", "call_id": id, "name": "find", "arguments": "{}"}


def call_turn(id: str, *before: JsonDict) -> JsonDict:
    """Return a tool call as a message in Anthropic's format. The blocks `before` come first."""
    use = {"type": "tool_use", "id": id, "name": "find", "input": {}}
    return {"role": "assistant", "content": [*before, use]}


def result_turn(id: str, **others: object) -> JsonDict:
    """Return a tool result as a message in Anthropic's format. `others` are further properties of
    the result.
    """
    block = {"type": "tool_result", "tool_use_id": id, "content": "found", **others}
    return {"role": "user", "content": [block]}


def picture(media_type: str) -> JsonDict:
    """Return a PNG image as a block in Anthropic's format, declared as an image of the type
    `media_type`.
    """
    source = {"type": "base64", "media_type": media_type, "data": "iVBORw0KGgoAAAANSUhEUg=="}
    return {"type": "image", "source": source}
