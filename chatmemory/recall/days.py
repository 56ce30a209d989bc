"""Finds days in texts, to recognize days that users give as answers. A day is written in digits, or
with the name of a month in a language of phrases.toml.

Unlike `dates`, this module reads `05/06`: as 5 June and as 6 May.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from chatmemory.patterns import declared_pattern
from chatmemory.recall.dates import dates_in
from chatmemory.recall.phrases import aligned, folded, months

_ORDINAL = r"(?:st|nd|rd|th|er|[.ºª°o])?"
_IN_NUMBERS = declared_pattern(
    r"([0-9](?<![A-Za-z0-9._/\-][0-9])[0-9]?)([./\-])([0-9]{1,2})\2(?:[0-9]{4}|[0-9]{2})"
    r"(?![A-Za-z0-9_/]|[.\-][A-Za-z0-9])"
)
_WITHOUT_YEAR = declared_pattern(
    r"(?<![A-Za-z0-9._/\-])([0-9]{1,2})(?:/([0-9]{1,2})|\.([0-9]{1,2})\.)(?![A-Za-z0-9_/]|[.\-][A-Za-z0-9])"
)
_IN_SIGNS = declared_pattern(r"([0-9]{1,2})月([0-9]{1,2})(?:日|号)")
_WORD = declared_pattern(r"[a-z0-9]+")
# What stands beside the name of a month, for a fast first test
_BEFORE_MONTH, _BEHIND_MONTH = declared_pattern(rf"[0-9]{_ORDINAL} "), declared_pattern(r" [0-9]")


class Day(NamedTuple):
    """A day of the year in a text, from index `start` to `end`."""

    start: int
    end: int
    month: int
    day: int

    @property
    def key(self) -> str:
        return f"{self.month}-{self.day}"


@lru_cache(maxsize=128)
def days_in(text: str) -> Sequence[Day]:
    """Return the days that a text names. `04/03/1981` gives two: 4 March and 3 April."""
    return tuple(each for each in _found_in(text) if 1 <= each.month <= 12 and 1 <= each.day <= 31)


def _found_in(text: str) -> Iterator[Day]:
    for date, written in dates_in(text).items():
        start = text.find(written)
        yield Day(start, start + len(written), date.month, date.day)
    for found in _IN_NUMBERS.finditer(text):
        first, second = int(found[1]), int(found[3])
        yield Day(*found.span(), second, first)
        if first != second:
            yield Day(*found.span(), first, second)
    for found in _WITHOUT_YEAR.finditer(text):
        first, second = int(found[1]), int(found[2] or found[3])
        yield Day(*found.span(), second, first)
        if first != second:
            yield Day(*found.span(), first, second)
    for found in _IN_SIGNS.finditer(text):
        yield Day(*found.span(), int(found[1]), int(found[2]))
    yield from _with_months(text)


def _with_months(text: str) -> Iterator[Day]:
    lowered = folded(text)
    if _names_a_month(lowered):
        lowered, places = aligned(text)
        known = months()
        for pattern, month, day in _month_patterns():
            for found in pattern.finditer(lowered):
                start, end = places[found.start()], places[found.end()]
                yield Day(start, end, known[found[month]], int(found[day]))


def _names_a_month(lowered: str) -> bool:
    """Return whether a text can have the name of a month beside a number."""
    if not (_BEFORE_MONTH.search(lowered) or _BEHIND_MONTH.search(lowered)):
        return False
    return not lowered.isascii() or not months().keys().isdisjoint(_WORD.findall(lowered))


@cache
def _month_patterns() -> tuple[tuple[re.Pattern[str], int, int], ...]:
    """Return the patterns of days with a month's name, each with the numbers of its groups for
    month and day.
    """
    names = "|".join(sorted(months(), key=len, reverse=True))
    year = r"(?:,?(?: de| del)? [0-9]{4})?"
    day_first = (
        rf"(?<![a-z0-9])([0-9]{{1,2}}){_ORDINAL}(?: de| di| do)? ({names})(?![a-z0-9]){year}"
    )
    month_first = rf"(?<![a-z0-9])({names}) ([0-9]{{1,2}}){_ORDINAL}(?![a-z0-9]){year}"
    return (
        (declared_pattern(day_first, family="phrases"), 2, 1),
        (declared_pattern(month_first, family="phrases"), 1, 2),
    )
