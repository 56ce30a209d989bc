"""The terms of the glossary, read from glossary.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Term(NamedTuple):
    """A term and its meaning. `also` are its other names in the API or in tables, or ""."""

    name: str
    meaning: str
    also: str = ""


@cache
def glossary() -> Sequence[Term]:
    """Return all terms in alphabetical order."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return tuple(Term(**each) for each in tomllib.loads(text)["term"])
