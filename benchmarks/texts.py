"""Texts for benchmarks: words of real conversations."""

from __future__ import annotations

import itertools
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = 60
# The conversation of all libraries
MESSAGES = 10_000
WINDOW_TOKENS = 4_000
TOKENS_PER_MESSAGE = 4  # tokens besides its text, as OpenAI counts

_FILE = Path(__file__).parents[1] / "tests/data/tau_bench_airline.openai_chat.json.xz"


def texts() -> Iterator[str]:
    """Yield texts of 60 words of tau-bench without end."""
    endless = itertools.cycle(_words(json.loads(lzma.decompress(_FILE.read_bytes()))))
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
