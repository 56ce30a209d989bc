"""Reading a text takes memory in line with its length, whatever the text contains."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from string import ascii_letters, digits

import pytest

from chatmemory import AiMessage, MessageWindow, SystemMessage, UserMessage, lint, recall, repair
from chatmemory.formats.building import SessionBuilder
from chatmemory.recall.compactions import compaction_evidence, dropped_terms
from chatmemory.recall.facts import facts_of, words_of
from chatmemory.recall.incidents import incidents_under
from chatmemory.recall.term_search import is_found

from ..peaks import GROWTH_MAX
from .shapes import MOST, TIMES

LONG = 40_000
LEAST = 2**19  # bytes; what takes less tells nothing
WORDS = words_of([], ["-", "A-"])


def base64(size: int) -> str:
    return "".join(random.Random(1).choices(ascii_letters + digits + "+/", k=size))


SHAPES: dict[str, Callable[[int], str]] = {
    "base64": base64,
    "slashes": lambda size: "a1/" * (size // 3),
    "slashes alone": lambda size: "/" * size,
    "one long line": lambda size: "A" * size + "1",
    "punctuation": lambda size: "-" * size,
    "many short lines": lambda size: "\n".join(f"A-{n}" for n in range(size // 8)),
}


def evidence(text: str) -> None:
    builder = SessionBuilder()
    builder.add(UserMessage(text))
    builder.add(UserMessage("x"))
    builder.compact(UserMessage("They talked."))
    builder.add(AiMessage(text))
    compaction_evidence(builder.session(), words=WORDS)


READERS: dict[str, Callable[[str], object]] = {
    "facts": lambda text: facts_of(UserMessage(text), WORDS),
    "a term": lambda text: is_found(text, ["nothing"]),
    "dropped terms": lambda text: dropped_terms([UserMessage(text)], text[::-1], words=WORDS),
    "evidence": evidence,
    "incidents": lambda text: incidents_under(
        MessageWindow(1), [UserMessage(text), AiMessage("no"), UserMessage(text)], WORDS
    ),
    "recall": lambda text: recall(
        [UserMessage(text), AiMessage(text), SystemMessage(text)], [MessageWindow(1)]
    ),
    "lint": lambda text: lint([UserMessage(text)], provider="openai"),
    "repair": lambda text: repair([AiMessage(text), SystemMessage(text)], provider="anthropic"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", READERS)
def test_a_long_text_takes_memory_in_line_with_its_length(reader, shape):
    small, large = (peak_of(READERS[reader], SHAPES[shape](n)) for n in (LONG // TIMES, LONG))
    assert large <= MOST * TIMES * max(small, LEAST)
    assert large <= GROWTH_MAX // 2


def peak_of(read: Callable[[str], object], text: str) -> int:
    """The most bytes that reading a text takes beside it."""
    read(text[:100])  # what is made once
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
