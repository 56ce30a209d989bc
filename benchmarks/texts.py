"""Texts for benchmarks: words of real conversations."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = 60
# The conversation in which all libraries take turns
MESSAGES = 10_000
WINDOW_TOKENS = 4_000
TOKENS_PER_MESSAGE = 4  # beside its text, as OpenAI counts

_FILE = Path(__file__).parents[2] / "shared/data/tau_bench_airline.openai_chat.json"
_LINE = "the customer would like to change the flight of reservation 8JX2WO and keep both bags"


def texts() -> Iterator[str]:
    """Yield texts of 60 words without end, of tau-bench where its file is, else of one sentence."""
    words = list(_words(json.loads(_FILE.read_text()))) if _FILE.exists() else _LINE.split()
    endless = itertools.cycle(words)
    while True:
        yield " ".join(itertools.islice(endless, WORDS))


def _words(value: Any) -> Iterator[str]:
    """Yield the words of all contents in a decoded file."""
    if isinstance(value, dict):
        content = value.get("content")
        yield from content.split() if isinstance(content, str) else ()
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _words(each)
