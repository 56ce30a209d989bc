"""Real exchanges with providers (tests/data/provider_exchanges.json.xz), as calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}
SEVERAL = "test_tool_search_eval"  # cassettes that hold several runs


def exchanges(file: Path) -> Iterator[dict]:
    """The exchanges that are calls, each with its answer as the provider sent it.

    They are in the order in which they happened.
    """
    rows = [each for each in json.loads(file.read_text("utf-8")) if each["format"] in PATHS]
    for row in sorted(rows, key=lambda each: (each["cassette"], each["interaction"])):
        usage = {"usage": row["usage"]} if row["usage"] else {}
        yield {**row, "answer": {**row["response"], **usage}, "path": PATHS[row["format"]]}
