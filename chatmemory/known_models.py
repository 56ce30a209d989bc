"""Reads limits and prices of models by their names, from `known_models.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

from chatmemory.data_files import Toml, toml_beside
from chatmemory.patterns import declared_pattern


@dataclass(frozen=True)
class KnownModel:
    """The prompt limit and the prices of all models whose names match a pattern.

    - `names`: the pattern, which is searched in a model's name.
    - `prompt`: the maximum number of tokens of a prompt.
    - `cached`: the price of a token that is read from the prompt cache.
    - `write`: the price of a token that is written to the prompt cache.
    - `source`, `as_of`: the URL from which these values were read, and the day of the reading.

    A price is a share of the input price, such as 0.1 for a tenth. It is None if unknown.
    """

    names: re.Pattern[str]
    prompt: int
    cached: Decimal | None
    write: Decimal | None
    source: str
    as_of: date


@cache
def known_models() -> Sequence[KnownModel]:
    """Return the entries of all known models. If several entries match a model's name, the first
    applies.
    """
    data = toml_beside(__file__, "known_models.toml")
    return tuple(_model(each, data["source"], data["as_of"]) for each in data["models"])


def _model(data: Toml, source: str, as_of: date) -> KnownModel:
    cached, write = (Decimal(data[name]) if name in data else None for name in ("cached", "write"))
    return KnownModel(names_of_models(data["names"]), data["prompt"], cached, write, source, as_of)


def names_of_models(pattern: str) -> re.Pattern[str]:
    """Return a pattern object for `pattern`, a regular expression to search in names of models. The
    object compiles the expression at its first use.
    """
    return declared_pattern(pattern, family="names of models")


def known_model(name: str | None) -> KnownModel | None:
    """Return the limit and prices of the model with this name. None if the model is unknown, or if
    `name` is None or "".
    """
    return next((each for each in known_models() if name and each.names.search(name)), None)


def smallest_prompt(names: Iterable[str]) -> int | None:
    """Return the smallest prompt limit of the models with these names, in tokens. None if one of
    the models is unknown, or if `names` is empty.
    """
    found = [known_model(name) for name in names]
    known = [each.prompt for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None
