"""Finds the provider rule that an error from a provider is about, by the known texts of errors."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from chatmemory.lint.answers import place_in
from chatmemory.lint.catalog import RULES
from chatmemory.lint.rules import Law, Rule
from chatmemory.lint.texts import texts_in
from chatmemory.patterns import declared_pattern

_NO_LETTERS = declared_pattern(r"\{\w+\}|[\W\d_]")
_PIECE = declared_pattern(r"\{(\w+)\}|(content\.|parts\[|tool_calls\[|member\.)\d+|\s+")
_NUMBERS = ("at", "call", "other", "length", "most", "n")
_SPECIFIC = 12  # letters of an answer by which it can be recognized


class Recognized(NamedTuple):
    """A provider rule whose known error text matches a provider's error. `at` is the index of the
    message that the error names, or None.

    `law` says how the `provider` treats a window that breaks the rule.
    """

    rule: Rule
    provider: str
    law: Law
    at: int | None


def recognized(error: str) -> list[Recognized]:
    """Return the rules whose known error texts match a provider's error best; [] if no rule
    matches. Rules about mishandled requests are left out if other rules match equally well.

    `error` is the text of the error, or JSON with this text in a string.
    """
    texts, place = list(texts_in(error)), place_in(error)
    found: dict[tuple[str, str], tuple[int, Recognized]] = {}
    for rule in RULES.values():
        for provider, law in rule.laws.items():
            for text in texts:
                if (match := _matched(law.error, text)) is not None:
                    length, at = match
                    at = place.at if at is None and place else at
                    found[rule.id, provider] = length, Recognized(rule, provider, law, at)
    longest = max((length for length, _ in found.values()), default=0)
    best = [each for length, each in found.values() if length == longest]
    refusing = [each for each in best if each.law.severity != "mishandled"]
    return refusing or best


def _matched(answer: str, text: str) -> tuple[int, int | None] | None:
    """Return how many letters of a known error text match `text`, and the index of the message that
    `text` names, or None. None if the error text does not match.
    """
    pattern, length = _pattern(answer)
    if length < _SPECIFIC or not (found := pattern.search(text)):
        return None
    at = found.groupdict().get("at")
    return length, None if at is None else int(at)


@cache
def _pattern(answer: str) -> tuple[re.Pattern[str], int]:
    """Return a pattern that matches an answer with any values, and its number of letters."""
    parts, done, names = [], 0, set()
    for each in _PIECE.finditer(answer):
        parts.append(re.escape(answer[done : each.start()]))
        done = each.end()
        name, list_of = each[1], each[2]
        if name is not None:
            value = r"\d+" if name in _NUMBERS else r".{0,300}?"
            is_first = name == "at" and name not in names
            names.add(name)
            parts.append(f"(?P<at>{value})" if is_first else f"(?:{value})")
        else:
            parts.append(rf"{re.escape(list_of)}\d+" if list_of else r"\s+")
    parts.append(re.escape(answer[done:].rstrip(".")))
    letters = len(_NO_LETTERS.sub("", answer))
    return declared_pattern("".join(parts), re.IGNORECASE, family="an answer"), letters
