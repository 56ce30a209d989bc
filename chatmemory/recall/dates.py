"""Finds dates in texts: dates in ISO order, such as `2026-03-04`, and dates with the name of a
month. `05/06` is no date here, because the order of day and month is unknown.

`4 March` and `2026-03-04` count as the same date. Two dates with different years do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chatmemory.patterns import declared_pattern

_MONTHS = "january february march april may june july august september october november december"
_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS.split(), 1)}
# "may" is also a verb: as a month it has a capital.
_MONTH = (
    r"((?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)|May|MAY)\.?"
)
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
# A digit first: a search for it is fast, and what is before it is tested afterwards.
_FIRST_DIGIT = r"[0-9](?<![A-Za-z0-9._@/+\-][0-9])"
_TIME = r"[0-9]?:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]+)?(?:Z|[+\-][0-9]{1,2}(?::?[0-9]{2})?)?"
_ISO = declared_pattern(
    rf"({_FIRST_DIGIT}[0-9]{{3}})([-/.])([0-9]{{1,2}})\2([0-9]{{1,2}})"
    r"(?:T[0-9:.]{2,20}(?:Z|[+\-][0-9:]{2,5})?)?(?![A-Za-z0-9_@/]|[.+\-][A-Za-z0-9])"
)
_MONTH_FIRST = declared_pattern(rf"\b{_MONTH} {_DAY}\b(?:,? ([0-9]{{4}})\b)?")
_DAY_FIRST = declared_pattern(rf"\b{_DAY} (?:of )?{_MONTH}\b(?:,? ([0-9]{{4}})\b)?")
# Parts that every date or time has, for a fast first test
_YEAR_FIRST, _TIME_SIGN = declared_pattern(r"[0-9]{4}[-/.][0-9]"), declared_pattern(r"[0-9]:[0-9]")
_DAY_BY_WORD = declared_pattern(r"[A-Za-z.] [0-9]|[0-9](?:st|nd|rd|th)? [A-Za-z]")
_TIME_ALONE = declared_pattern(_FIRST_DIGIT + _TIME)


class Date(NamedTuple):
    month: int
    day: int
    year: int | None = None

    def is_same_day(self, other: Date) -> bool:
        years = {self.year, other.year} - {None}
        return self[:2] == other[:2] and len(years) < 2


def dates_in(text: str) -> dict[Date, str]:
    """Return a dict from each date in a text to its spelling there, such as `4 March`, without the
    time. Of several spellings, ISO order is preferred, then a spelling with the month first, such
    as `March 4`.
    """
    found: dict[Date, str] = {}
    if _YEAR_FIRST.search(text):
        for each in _ISO.finditer(text):
            written = each[0].partition("T")[0]
            _add(found, each[3], each[4], each[1], written)
    if not (_names_a_month(text) and _DAY_BY_WORD.search(text)):
        return found
    for each in _MONTH_FIRST.finditer(text):
        _add(found, _number(each[1]), each[2], each[3], each[0])
    for each in _DAY_FIRST.finditer(text):
        _add(found, _number(each[2]), each[1], each[3], each[0])
    return found


def _names_a_month(text: str) -> bool:
    return any(map(text.lower().__contains__, _NUMBERS))  # a generator takes four times as long


def _number(month: str) -> int:
    return _NUMBERS[month[:3].lower()]


def _add(
    found: dict[Date, str], month: str | int, day: str, year: str | None, written: str
) -> None:
    date = Date(int(month), int(day), int(year) if year else None)
    if 1 <= date.month <= 12 and 1 <= date.day <= 31:
        found.setdefault(date, written)


def without_times(text: str) -> str:
    """Return a text in which a space replaces each time of day and each date in ISO order."""
    text = _ISO.sub(" ", text) if _YEAR_FIRST.search(text) else text
    return _TIME_ALONE.sub(" ", text) if _TIME_SIGN.search(text) else text


class Dates:
    """Gives each date of a conversation one name, such as `2026-03-04`, however the date is
    written.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], dict[int | None, str]] = {}

    def name(self, date: Date) -> str:
        """Return the name of a date, such as `2026-03-04`.

        A date without a year gets the name that this method returned last for the same day and
        month. After `2026-03-04`, this is also the name of `4 March`.

        If `4 March` comes first, its name is `03-04`. The next 4 March with a year, such as
        `2026-03-04`, then has the name `03-04`, too.
        """
        known = self._names.setdefault((date.month, date.day), {})
        if date.year in known:
            known[date.year] = known.pop(date.year)
        elif date.year is not None and [*known] == [None]:
            known[date.year] = known.pop(None)
        elif date.year is not None or not known:
            known[date.year] = _name(date)
        return [*known.values()][-1]


def _name(date: Date) -> str:
    day = f"{date.month:02}-{date.day:02}"
    return day if date.year is None else f"{date.year:04}-{day}"


def date_names(dates: Mapping[Date, str], known: Dates) -> dict[str, str]:
    """Return a dict from the name of each date in a text to the date as the text writes it. The
    keys of `dates` are the dates themselves, and `known` gives their names.

        {Date(3, 4, 2026): "4 March"} -> {"2026-03-04": "4 March"}
    """
    ordered = sorted(dates, key=lambda date: (date.year is None, date))
    return {known.name(date): dates[date] for date in ordered}
