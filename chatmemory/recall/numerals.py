"""Finds numbers written in words, such as "three", and times of day, in the languages of
phrases.toml.

Two times are equal if they look the same on a clock with hands: `18:30` equals `half past six`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from chatmemory.patterns import declared_pattern
from chatmemory.recall.phrases import CJK, HAS_CJK, aligned, numbers

_HALF_A_DAY = 720  # minutes
_MAY_BE_TIME = declared_pattern(
    r"[0-9](?:[:.]| ?h| ?uhr| ?[ap]\.?m|[時时点點])|[时時点點]|half |halb "
    r"| y media| et demi| e mei| e mezz|o'clock",
    re.IGNORECASE,
)


class Time(NamedTuple):
    """A time of day in a text, from index `start` to `end`. Times that look the same on a clock
    with hands, such as 6:30 and 18:30, have the same `key`.
    """

    start: int
    end: int
    key: str


@lru_cache(maxsize=128)
def times_in(text: str) -> Sequence[Time]:
    """Return the times of day in a text, each with its indices in the text."""
    if not _MAY_BE_TIME.search(text):
        return ()
    lowered, places = aligned(text)
    return tuple(
        Time(places[start], places[end], str(minutes % _HALF_A_DAY))
        for start, end, minutes in _found_in(lowered)
        if 0 <= minutes <= 24 * 60
    )


def _found_in(lowered: str) -> Iterator[tuple[int, int, int]]:
    for pattern, minutes in _patterns().items():
        for found in pattern.finditer(lowered):
            hour, behind = 60 * _number(found["hour"]), found.groupdict().get("minutes")
            end = found.end("minutes") if behind else found.end()
            yield found.start(), end, hour + (int(behind) if behind else minutes)


def _number(written: str) -> int:
    return int(written) if written.isdecimal() else numbers()[written]


@cache
def _patterns() -> Mapping[re.Pattern[str], int]:
    """Return the patterns of times. Each has the minutes to add to the hour that it names."""
    words = "|".join(sorted(numbers(), key=len, reverse=True))
    hour = r"(?<![0-9a-z.:,])(?P<hour>[0-9]{1,2})"
    any_hour = rf"(?<![0-9a-z.:,])(?P<hour>[0-9]{{1,2}}|{words})"
    patterns = {
        rf"{hour}(?:[:h]| h | uhr |[時时点點])(?P<minutes>[0-5][0-9])(?![0-9.:])": 0,
        rf"{hour}\.(?P<minutes>[0-5][0-9])(?: ?uhr| ?h| ?[ap]\.?m)(?![0-9a-z])": 0,
        rf"{hour}(?: ?h| ?uhr| ?[ap]\.?m\.?| o'clock|[時时点點](?![0-9半]))(?![0-9a-z])": 0,
        rf"{any_hour}(?: heures)?(?: y media| et demie?| e meia| e mezz[ao]|[時时点點]半)": 30,
        rf"half past {any_hour}(?![0-9a-z])": 30,
        rf"halb {any_hour}(?![0-9a-z])": -30,
    }
    return {declared_pattern(each, family="phrases"): n for each, n in patterns.items()}


_WORDS = declared_pattern(rf"[^\W\d_{CJK}]+|[一二三四五六七八九十两]+")
_THOUSANDS = declared_pattern(
    r"([0-9](?<![0-9.,][0-9])[0-9]{0,2})"  # a digit first: Python then skips to each digit
    r"(?: ?(?:k|tsd)(?![a-z0-9])| (?:thousand|tausend|mil|mille|mila)(?![a-z])|([万千]))"
)


def small_numbers_in(lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers from 2 to 12 that a text writes in words. Each has its start and end in the
    text, and its digits, such as "3" for "three".

    `lowered` is the text in lowercase without accents.
    """
    known = numbers()
    for found in _WORDS.finditer(lowered):
        if found[0] in known:
            yield (*found.span(), str(known[found[0]]))


def numbers_in(lowered: str, words: Iterable[str]) -> Iterator[str]:
    """Yield, in digits, the numbers that a text writes with words, such as "three" or "15
    thousand".

    `lowered` is the text in lowercase without accents, and `words` are all its words.
    """
    if not numbers().keys().isdisjoint(words) or HAS_CJK.search(lowered):
        yield from (digits for _, _, digits in small_numbers_in(lowered))
    for found in _THOUSANDS.finditer(lowered):
        yield found[1] + ("0000" if found[2] == "万" else "000")
