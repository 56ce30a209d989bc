"""The figures that were recorded, as docs/strategies.md has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("recorded.json")

Rows = Mapping[str, Mapping[str, Any]]  # by the name of a strategy


def recorded() -> dict[str, Any]:
    """Return `versions` of packages, `example`, and the rows of each corpus by their run."""
    if not FILE.exists():
        return {"versions": {}, "example": {}, "corpora": {}}
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def record(found: Mapping[str, Any]) -> None:
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
