"""Which facts are shown as examples: ids before names before dates.

Parts of something, prices and short numbers count as facts, and are no examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

DATE = re.compile(r"\d{4}[-./]\d{1,2}[-./]\d{1,2}(T.*)?|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}")
_PRICE = re.compile(r"\d+\.\d{1,2}")
_AMOUNT = re.compile(r"\d+([.]\d+)?[A-Za-z]{1,2}")  # 20th, 10am, 15kg
_NAME = re.compile(r"\D+|.+@.+")
SHORTEST_NUMBER = 6  # digits of a number without letters that is an id


class _OfFact(Protocol):
    @property
    def fact(self) -> str: ...


_Of = TypeVar("_Of", bound=_OfFact)


def example_rank(fact: str) -> int | None:
    """Return 0 for an id, 1 for a name, 2 for a date; None for what is no example."""
    if DATE.fullmatch(fact):
        return 2
    if _NAME.fullmatch(fact):
        return 1
    if _PRICE.fullmatch(fact) or _AMOUNT.fullmatch(fact):
        return None
    has_letter = any(map(str.isalpha, fact))
    is_long = sum(map(str.isdigit, fact)) >= SHORTEST_NUMBER
    return 0 if has_letter or is_long else None


def examples_first(found: Iterable[_Of]) -> Iterator[_Of]:
    """Yield what is an example, in order: ids before names before dates."""
    ranked = [(rank, each) for each in found if (rank := example_rank(each.fact)) is not None]
    yield from (each for _, each in sorted(ranked, key=lambda pair: pair[0]))
