"""Whole numbers in an address."""

from __future__ import annotations

from collections.abc import Mapping

DIGITS = 9


def whole_number(text: str) -> int | None:
    """Return the number that a text is, if it has up to 9 digits and nothing else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS
    return int(text) if is_number else None


def wrong_number(given: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return which of these parameters is there and no whole number, by its name on the page."""
    wrong = [
        name
        for each, name in names.items()
        if given.get(each) and whole_number(given[each]) is None
    ]
    return f"{wrong[0]} must be a whole number of up to {DIGITS} digits" if wrong else ""
