"""The glossary of the pages, read from glossary.toml: each term has one meaning."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Term(NamedTuple):
    """A term, its meaning as a sentence, and its other names in the API or in tables."""

    name: str
    meaning: str
    also: str = ""


@cache
def glossary() -> Sequence[Term]:
    """Return all terms in alphabetical order."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return tuple(Term(**each) for each in tomllib.loads(text)["term"])
