"""Random conversations, turn by turn, of everything that a format can express."""

from __future__ import annotations

import json
from functools import cache

from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    AudioContent,
    ChatMessage,
    ImageContent,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
)
from chatmemory.formats import render_messages
from chatmemory.messages.contents import Audio, DetailLevel, Image, PdfFile, Video

LINK, DATA = "https://example.org/a", "QQ=="
# Formats that keep arguments as the model wrote them, also if they are no JSON.
LITERAL = {"openai_chat", "openai_responses", "otel_genai", "pydantic_ai"}
words = st.text(max_size=20)
said = words.filter(lambda text: text.strip() > " ")
arguments = st.dictionaries(words, words | st.integers(), max_size=2).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
Turn = list[ChatMessage]


@cache  # Hypothesis validates each new strategy, which takes longer than an example
def conversations(format: str) -> st.SearchStrategy[list[ChatMessage]]:
    """Return lists of messages of which each turn by itself loses nothing in the format."""
    turns = st.lists(_turns(format), max_size=4)
    first = st.builds(lambda text: [SystemMessage(f"s{text}")], words) | st.just([])
    return st.builds(lambda first, turns: _sayable(format, [first, *turns]), first, turns)


def _sayable(format: str, turns: list[Turn]) -> list[ChatMessage]:
    kept = [turn for turn in turns if turn and not render_messages(turn, format).losses]
    return [message for turn in kept for message in turn]


def _turns(format: str) -> st.SearchStrategy[Turn]:
    contents = st.lists(st.builds(TextContent, said) | _media(format), min_size=1, max_size=3)
    user = st.builds(UserMessage, contents, st.none() | words.filter(bool))
    answer = st.builds(AiMessage, said, st.just(()), st.none() | said)
    return st.one_of(
        st.builds(lambda message: [message], user | answer), *[_exchanges(format, contents)] * 2
    )


def _media(format: str) -> st.SearchStrategy[object]:
    """Gemini tells the type of a link; others have no place for it."""
    link = Image(LINK, None, "image/png" if format == "gemini" else None)
    images = st.sampled_from([link, Image(None, DATA, "image/png")])
    others = [
        AudioContent(Audio(None, DATA, "audio/wav")),
        VideoContent(Video(LINK, None, "video/mp4")),
        PdfFileContent(PdfFile(f"{LINK}.pdf")),
        PdfFileContent(PdfFile(None, DATA)),
    ]
    levels = st.sampled_from([DetailLevel.AUTO, DetailLevel.HIGH])
    return st.builds(ImageContent, images, levels) | st.sampled_from(others)


def _exchanges(format: str, contents: st.SearchStrategy[object]) -> st.SearchStrategy[Turn]:
    """Return calls and their results, the last first where a format has them apart."""

    def exchange(ids, given, text, thinking, result, is_error) -> Turn:
        calls = [ToolExecutionRequest(id, f"f{id}", given) for id in ids]
        answered = ids if format == "vercel_ui" else reversed(ids)
        results = [ToolExecutionResultMessage(id, f"f{id}", result, is_error) for id in answered]
        return [AiMessage(text, calls, thinking), *results]

    return st.builds(
        exchange,
        st.lists(words.filter(bool), min_size=1, max_size=3, unique=True),
        arguments | said if format in LITERAL else arguments,
        st.none() | said,
        st.none() | said,
        words if format == "gemini" else words | contents,
        st.sampled_from([None, None, True]),
    )
