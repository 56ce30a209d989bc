"""Looks up formats by name, and reads and writes lists of messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from chatmemory.exceptions import InvalidValue, UnreadableTranscript
from chatmemory.formats.account import refusing_faults
from chatmemory.formats.difference import names_in
from chatmemory.formats.format import Format, Rendered, Rendering, Transcript
from chatmemory.formats.json_properties import plain_values
from chatmemory.messages.json_values import JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import ChatMessage, chat_message, chat_messages, message_list
from chatmemory.registry import Registry

# The title of each built-in format by its name, which is also the name of its module. If several
# formats find the same number of conversations in a file, the first one is used.
_BUILT_IN = {
    "langchain4j": "LangChain4j messages",
    "call_log": "log or batch of model calls",
    "langfuse": "Langfuse traces",
    "langsmith": "LangSmith runs",
    "langgraph": "LangGraph checkpoints",
    "llama_index_store": "LlamaIndex chat store",
    "openai_list": "OpenAI threads and conversations",
    "opencode": "opencode sessions",
    "goose": "Goose sessions",
    "copilot_chat": "GitHub Copilot chat of VS Code",
    "copilot_cli": "GitHub Copilot CLI session",
    "cursor": "Cursor agent transcript",
    "wrapped": "messages of any format inside an object",
    "chatgpt": "ChatGPT export",
    "claude_ai": "Claude.ai export",
    "open_webui": "Open WebUI export",
    "librechat": "LibreChat export",
    "gemini_cli": "Gemini CLI session",
    "qwen_code": "Qwen Code session",
    "bedrock": "Amazon Bedrock Converse messages",
    "claude_code": "Claude Code session",
    "codex": "Codex CLI session",
    "openhands": "OpenHands events",
    "anthropic": "Anthropic messages",
    "gemini": "Gemini contents",
    "openai_responses": "OpenAI Responses items",
    "otel_genai": "OpenTelemetry GenAI messages",
    "langchain": "LangChain messages",
    "pydantic_ai": "Pydantic AI messages",
    "llama_index": "LlamaIndex messages",
    "vercel_ui": "AI SDK UI messages",
    "vercel_model": "AI SDK model messages",
    "openai_chat": "OpenAI chat completions",
    "sharegpt": "ShareGPT conversations",
    "markdown": "Markdown text for people",
}


def _built_in(name: str) -> Format:
    found: Format = import_module(f"chatmemory.formats.{name}").FORMAT
    return found


FORMATS: Registry[Format] = Registry(
    "chatmemory.formats",
    dict.fromkeys(_BUILT_IN),  # without the titles
    accepts=lambda item: isinstance(item, Format),
    loads=_built_in,
)


def format_named(name: str) -> Format:
    """Return the format with this name. Raises InvalidValue for an unknown name. The error lists
    the names of the installed formats.
    """
    if name not in FORMATS:
        raise InvalidValue(f"unknown format {name!r}: use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def format_title(name: str) -> str:
    """Return the title of a format, such as `Claude Code session`. For a format of another package,
    return its name.
    """
    return _BUILT_IN.get(name, name)


def readable_formats() -> dict[str, Format]:
    """Return the formats that can be read, by name. Text formats, such as `markdown`, are left out,
    because they are only written.
    """
    return {name: each for name, each in FORMATS.items() if not each.is_text}


def writable_formats() -> dict[str, Format]:
    """Return the formats that can be written, by name."""
    return {name: each for name, each in FORMATS.items() if each.render is not None}


def two_way_formats() -> dict[str, Format]:
    """Return the formats that can be both read and written, by name."""
    return {name: each for name, each in writable_formats().items() if not each.is_text}


def parse_messages(
    values: JsonValue, format: str = "langchain4j", after: Iterable[ChatMessage] = ()
) -> Transcript:
    """Read a list of messages, given as JSON values of a format. Tool results may answer tool calls
    of the earlier messages in `after`.

    Raises UnreadableTranscript with the `index` of a message that cannot be read.
    """
    if not isinstance(values, list):
        raise UnreadableTranscript(-1, "messages must be a list")
    return format_named(format).parse(values, chat_messages(after))


def parse_objects(
    values: LibraryValue, format: str, after: Iterable[ChatMessage] = ()
) -> Transcript:
    """Read objects of a provider's library: a message, a list of messages, a response, or their
    JSON values.

    Tool results may answer tool calls of the earlier messages in `after`. Raises
    UnreadableTranscript with the `index` of a message that cannot be read. An unexpected exception
    is logged, and becomes an UnreadableTranscript.
    """
    with refusing_faults(f"values of the format {format!r}"):
        return _parse_objects(values, format_named(format), format, after)


def _parse_objects(
    values: LibraryValue, known: Format, format: str, after: Iterable[ChatMessage]
) -> Transcript:
    if not (known.reads_streams and isinstance(values, Iterator)):
        _refuse_streams(values)
    plain = (known.plain or plain_values)(values)
    found = known.find(plain)
    if found is None:
        return _parse_unfound(values, plain, format, after)
    read = known.parse(found.turns, chat_messages(after))
    return replace(read, losses=found.losses + read.losses)


def _parse_unfound(
    values: LibraryValue, plain: JsonValue, format: str, after: Iterable[ChatMessage]
) -> Transcript:
    """Read values in which a format finds no conversation: single messages. Raises
    UnreadableTranscript that names what the values are.
    """
    fitting = [name for name, each in two_way_formats().items() if each.find(plain)]
    if fitting and isinstance(plain, dict):
        raise _unfitting(values, format, fitting[0])
    try:
        return parse_messages(plain if isinstance(plain, list) else [plain], format, after)
    except UnreadableTranscript as error:
        if fitting:
            raise _unfitting(values, format, fitting[0]) from error
        raise


def _unfitting(values: LibraryValue, format: str, fitting: str) -> UnreadableTranscript:
    what = type(values).__name__
    return UnreadableTranscript(
        -1,
        f"this {what} has no messages in the format {format!r}: name the format {fitting!r}",
    )


def _refuse_streams(values: LibraryValue) -> None:
    """Raise UnreadableTranscript for a stream or an awaitable, which has not been received yet."""
    what = type(values).__name__
    if isinstance(values, Awaitable):
        raise UnreadableTranscript(
            -1, f"this {what} is not received yet: await it, and give the result"
        )
    is_stream = isinstance(values, Iterator | AsyncIterator)
    if is_stream or hasattr(values, "__enter__") or hasattr(values, "__aenter__"):
        raise UnreadableTranscript(
            -1,
            f"this {what} is a stream: read it to its end, and add the whole answer, such as "
            "stream.get_final_completion(), get_final_response() or get_final_message(), or for "
            "gemini a list of all its chunks",
        )


def render_messages(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendered:
    """Return messages as JSON values of a format, with the losses of writing them.

    Raises InvalidMessage for a message that cannot be written, and InvalidValue for a format that
    is only read.
    """
    return render_each(messages, format).whole()


def render_each(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendering:
    """Return messages as a stream of JSON values of a format. Most formats iterate over all
    messages once before the first value, to collect the ids of tool calls.

    Raises InvalidValue for a format that is only read. Raises InvalidMessage for a message that
    cannot be written, perhaps only when the stream reaches this message.
    """
    render = format_named(format).render
    if render is None:
        raise InvalidValue(
            f"messages cannot be written in the format {format!r}, which can only be read"
        )
    return render(_Checked(messages))


class _Checked(Iterable[ChatMessage]):
    """Messages that can be iterated several times, and are checked during each iteration."""

    def __init__(self, messages: Iterable[ChatMessage]) -> None:
        self._messages = (
            list(messages) if isinstance(messages, Iterator) else message_list(messages)
        )

    def __iter__(self) -> Iterator[ChatMessage]:
        return map(chat_message, self._messages)


def kept_in(attributes: JsonMap) -> dict[str, list[str]]:
    """Return the names of the details that each format has kept in a message's attributes, such as
    `{"openai_chat": ["annotations"]}`.
    """
    return {
        name: [kept for part, value in own.items() for kept in _names(part, value)]
        for name, own in attributes.items()
        if name in FORMATS and isinstance(own, Mapping)
    }


def _names(part: str, value: JsonValue) -> Iterable[str]:
    match part:
        case "differs":
            return names_in(value)
        case "response":
            return value if isinstance(value, Mapping) else ()
        case "joins":
            return ()
    return (part,)
