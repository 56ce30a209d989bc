"""Patterns that run over texts which others wrote, such as messages, file names and requests.

A regular expression holds the interpreter until it returns, so that one which takes time in
proportion to the square of a text stops every request of its process. Each pattern is therefore
declared by `declared_pattern`, where it is used. tests/growth/test_patterns.py runs each over
hostile texts, and tests/architecture/test_patterns.py names patterns that are not declared.

A pattern is compiled when it is first used: a process that only lists its commands needs none.

What keeps a pattern linear: a left boundary such as `(?<![\\w-])`, so that a run is not searched
from each of its characters, and possessive quantifiers such as `\\w*+`, which give nothing back.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, NamedTuple, cast

ANY = 2**30  # characters: as many as a text may have


class Declared(NamedTuple):
    """A declared pattern, and the maximum length of its texts in characters.

    Patterns built from words, such as typed words, have a `family`, of which the newest pattern is
    remembered.
    """

    pattern: re.Pattern[str] | re.Pattern[bytes]
    most: int
    family: str


DECLARED: dict[str, Declared] = {}


class _Later(Generic[AnyStr]):
    """A pattern that is compiled when the first of its attributes is used. It keeps these."""

    def __init__(self, source: AnyStr, flags: int) -> None:
        self._source: AnyStr = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a question of `copy`, `pickle` or the like
            raise AttributeError(name)
        found = self.__dict__[name] = getattr(re.compile(self._source, self._flags), name)
        return found


def declared_pattern(
    source: AnyStr, flags: int = 0, *, most: int = ANY, family: str = ""
) -> re.Pattern[AnyStr]:
    """Return a pattern for texts of at most `most` characters.

    The pattern is compiled at its first use, which raises re.error if it is not valid.
    """
    pattern = cast("re.Pattern[AnyStr]", _Later(source, flags))
    DECLARED[family or f"{source!r} {int(flags)}"] = Declared(pattern, most, family)
    return pattern
