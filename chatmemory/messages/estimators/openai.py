"""Counts tokens as LangChain4j's OpenAiTokenCountEstimator does. Contents that LangChain4j refuses
to count are estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from chatmemory.exceptions import InvalidMessage, UnknownEstimator, UnsupportedMessage
from chatmemory.messages.codec import decode_json, write_json
from chatmemory.messages.contents import Content, DetailLevel, Image, ImageContent, TextContent
from chatmemory.messages.estimators.encodings import encoding, is_loaded
from chatmemory.messages.estimators.pictures import picture_rule
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.patterns import declared_pattern

# Tokens that a message costs beside its texts.
PER_MESSAGE = 4
PER_NAME = 1
ANY_CALLS = 6
ONE_CALL = -1
SEVERAL_CALLS = 15
PER_CALL = 7
PER_ARGUMENT = 2

# Characters. tiktoken makes a number of some 40 bytes of each token, three for an emoji; and it has
# no stack for a million blanks, which it takes for one word.
LONGEST_RUN, LONGEST_EXACT = 100_000, 500_000
WORD_ENDS = declared_pattern(r"\S(?= [^\W\d_])")  # every encoding begins a word there
_NEAR = 1_000

_MODEL = declared_pattern(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,99}")
_O200K = declared_pattern(
    r"o[1-9]\d*(-|$)|(chat)?gpt-4o|gpt-4\.|gpt-5|gpt-oss(-|$)|codex-mini(-|$)"
)
_O200K_OF_LANGCHAIN4J = declared_pattern(r"o|gpt-4o|gpt-4\.|gpt-5")
_CL100K = declared_pattern(r"gpt-4(-|$)|gpt-3\.5|gpt-35|text-embedding-(3|ada-002)")


class OpenAiTokenCountEstimator:
    """An estimator that counts with tiktoken, as LangChain4j does for `model_name`.

    - LangChain4j refuses to count some messages. They are estimated here; with `strict`, they raise
      UnsupportedMessage.
    - Pictures are estimated by OpenAI's rule for the model. Other media count as a picture of
      unknown size, and custom messages as their attributes in JSON.
    - A system message that was read from an OpenAI chat can have a name in its attributes. The name
      is counted, except with `strict`.
    - A fine-tuned model (`ft:gpt-4o-mini:…`) counts as its base model. With `strict`, it raises
      UnknownEstimator.
    - A text of more than LONGEST_RUN characters is counted in parts, so its count may be a few
      tokens too high. With `strict`, texts are counted as a whole, and a text of more than
      LONGEST_EXACT characters raises UnsupportedMessage.

    Raises UnknownEstimator for a model whose encoding is unknown.
    """

    def __init__(self, model_name: str, strict: bool = False) -> None:
        if not model_name or not model_name.strip():
            raise UnknownEstimator("modelName cannot be null or blank")
        self.model_name = model_name
        self.strict = strict
        tuned_from = model_name if strict else model_name.removeprefix("ft:")
        self._encoding = _encoding_name(model_name, tuned_from, strict)
        self.overhead = 2 if tuned_from.startswith("o") else 3
        self._per_ai_message = 2 if tuned_from.startswith("o4-mini") else 0
        self._pictures = picture_rule(tuned_from)
        # The name shared by all models for which messages cost the same.
        self.family = f"openai:{self._encoding}"
        if self._per_ai_message:  # only o4-mini's, so that the name need not mention pictures
            self.family += "+2 per AI"
        elif self._pictures.name:
            self.family += f", pictures: {self._pictures.name}"

    @property
    def is_loaded(self) -> bool:
        """Whether the encoding is loaded, so that counting begins without a delay."""
        return is_loaded(self._encoding)

    def estimate_token_count_in_text(self, text: str) -> int:
        if not text:
            return 0
        if self.strict and len(text) > LONGEST_EXACT:
            raise UnsupportedMessage(f"the text has more than {LONGEST_EXACT:,} characters")
        encode = encoding(self._encoding).encode_ordinary
        if self.strict or len(text) <= LONGEST_RUN:
            return len(encode(text))
        return sum(len(encode(part)) for part in text_parts(text))

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int:
        return self.overhead + sum(map(self.estimate_token_count_in_message, messages))

    def estimate_token_count_in_message(self, message: ChatMessage) -> int:
        match message:
            case SystemMessage():
                name = None if self.strict else _name_of(message)
                return PER_MESSAGE + self._name(name) + self._text(message.text)
            case UserMessage():
                return (
                    PER_MESSAGE
                    + self._name(message.name)
                    + sum(map(self._content, message.contents))
                )
            case AiMessage():
                return PER_MESSAGE + self._ai(message)
            case ToolExecutionResultMessage():
                return PER_MESSAGE + self._result(message)
            case CustomMessage() if not self.strict:
                return PER_MESSAGE + self._text(write_json(message.attributes))
        raise UnsupportedMessage(f"Unknown message type: {type(message).__name__}")

    def _text(self, text: str | None) -> int:
        return self.estimate_token_count_in_text(text) if text else 0

    def _name(self, name: str | None) -> int:
        return 0 if name is None else PER_NAME + self._text(name)

    def _content(self, content: Content | None) -> int:
        match content:
            case TextContent():
                return self._text(content.text)
            case ImageContent() if not self.strict:
                return self._pictures.tokens(content.image, content.detail_level)
            case None if not self.strict:
                return 0
        if self.strict:
            raise UnsupportedMessage(f"Unknown content type: {type(content).__name__}")
        return self._pictures.tokens(Image(), DetailLevel.AUTO)

    def _result(self, message: ToolExecutionResultMessage) -> int:
        single = len(message.contents) == 1 and isinstance(message.contents[0], TextContent)
        if self.strict and not single:
            raise UnsupportedMessage(
                "text() cannot be called when contents contains non-text or multiple content "
                "elements. Use contents() instead."
            )
        return sum(map(self._content, message.contents))

    def _ai(self, message: AiMessage) -> int:
        tokens = self._text(message.text) + self._per_ai_message
        calls = [call for call in message.tool_execution_requests if call is not None]
        if not calls:
            return tokens
        if len(calls) == 1:
            name, arguments = self._text(calls[0].name), self._text(calls[0].arguments)
            return tokens + ANY_CALLS + ONE_CALL + 2 * name + arguments
        return tokens + ANY_CALLS + SEVERAL_CALLS + sum(map(self._call, calls))

    def _call(self, call: ToolExecutionRequest) -> int:
        return PER_CALL + self._text(call.name) + self._arguments(call.arguments)

    def _arguments(self, text: str | None) -> int:
        if text is None or not text.strip():
            return 0
        try:
            arguments = decode_json(text)
            if not isinstance(arguments, dict):
                raise InvalidMessage("the arguments of a tool call must be a JSON object")
        except InvalidMessage as error:
            if self.strict:
                raise UnsupportedMessage(str(error)) from error
            return self._text(text)
        return sum(
            PER_ARGUMENT + self._text(name) + self._text(_java_text(value))
            for name, value in arguments.items()
        )


def text_parts(text: str) -> Iterator[str]:
    """Yield a text in parts of at most LONGEST_RUN characters. A part ends at the end of a word, if
    a word ends near the limit.
    """
    start = 0
    while len(text) - start > LONGEST_RUN:
        end = start + LONGEST_RUN
        words = [each.end() for each in WORD_ENDS.finditer(text, max(start, end - _NEAR), end)]
        end = words[-1] if words else end
        yield text[start:end]
        start = end
    yield text[start:]


def _name_of(message: SystemMessage) -> str | None:
    """Return the name of a system message, which came with OpenAI's chat completions and is sent
    again.
    """
    own = message.attributes.get("openai_chat")
    name = own.get("name") if isinstance(own, Mapping) else None
    return name if isinstance(name, str) else None


def _encoding_name(model_name: str, tuned_from: str, strict: bool) -> str:
    if not _MODEL.fullmatch(model_name):
        raise UnknownEstimator("a model name holds letters, digits and . : _ -, 100 at most")
    if (_O200K_OF_LANGCHAIN4J if strict else _O200K).match(tuned_from):
        return "o200k_base"
    if _CL100K.match(tuned_from):
        return "cl100k_base"
    raise UnknownEstimator(
        f"Model {model_name!r} is unknown: name an OpenAI model such as gpt-4o, gpt-4.1, gpt-5, "
        "o3-mini, gpt-4 or gpt-3.5-turbo, or install the package that registers this estimator"
    )


def _java_text(value: JsonValue) -> str:
    """Return a JSON value as Java's `toString` does: maps as {a=1}, lists as [1, 2]."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={_java_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_java_text, value)) + "]"
    return write_json(value)
