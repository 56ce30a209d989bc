"""Limits and prices of models, by their names, from `known_models.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from chatmemory.data_files import toml_beside
from chatmemory.patterns import declared_pattern


@dataclass(frozen=True)
class KnownModel:
    """Models whose names match the pattern `names`: the most tokens of a prompt, and the shares of
    the input price that a cached and a written token cost, None if unknown.

    `source` is a URL, which was read on the day `as_of`.
    """

    names: re.Pattern[str]
    prompt: int
    cached: Decimal | None
    write: Decimal | None
    source: str
    as_of: date


@cache
def known_models() -> Sequence[KnownModel]:
    """Return all known models. The first entry whose pattern matches a model applies."""
    data = toml_beside(__file__, "known_models.toml")
    return tuple(_model(each, data["source"], data["as_of"]) for each in data["models"])


def _model(data: Mapping[str, Any], source: str, as_of: date) -> KnownModel:
    cached, write = (Decimal(data[name]) if name in data else None for name in ("cached", "write"))
    return KnownModel(names_of_models(data["names"]), data["prompt"], cached, write, source, as_of)


def names_of_models(pattern: str) -> re.Pattern[str]:
    """Return the pattern of some names of models."""
    return declared_pattern(pattern, family="names of models")


def known_model(name: str | None) -> KnownModel | None:
    """Return the entry of a known model, or None."""
    return next((each for each in known_models() if name and each.names.search(name)), None)


def smallest_prompt(names: Iterable[str]) -> int | None:
    """Return the largest prompt, in tokens, that all of the models accept; None if a model is
    unknown, or none is named.
    """
    found = [known_model(name) for name in names]
    known = [each.prompt for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None
