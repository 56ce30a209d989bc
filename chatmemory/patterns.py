r"""Regular expressions for texts from outside, such as messages, file names and requests.

While a regular expression runs, the interpreter can do nothing else. If its time grows with the
square of the text's length, one long text stops every request of the process. Each pattern is
therefore declared by `declared_pattern`, where it is used. tests/growth/test_patterns.py runs each
pattern over hostile texts. tests/architecture/test_patterns.py names patterns that are not
declared.

A pattern is compiled when it is first used: a process that only lists its commands needs none.

Two things keep the time of a pattern linear. A left boundary such as `(?<![\w-])` prevents a new
search from each character of a long word. A possessive quantifier such as `\w*+` never tries a
shorter match.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, NamedTuple, cast

ANY = 2**30  # characters: as many as a text may have


class Declared(NamedTuple):
    """A declared regular expression for texts of at most `most` characters.

    A pattern that is built at run time, such as from typed words, has a `family` name. Of each
    family, `DECLARED` has only the newest pattern.
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

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # a question of `copy`, `pickle` or the like
            raise AttributeError(name)
        found = self.__dict__[name] = getattr(re.compile(self._source, self._flags), name)
        return found


def declared_pattern(
    source: AnyStr, flags: int = 0, *, most: int = ANY, family: str = ""
) -> re.Pattern[AnyStr]:
    """Declare a regular expression for texts of at most `most` characters, and return the pattern.
    Tests try all declared patterns on hostile texts.

    The pattern is compiled at its first use. That use raises re.error if the expression is invalid.
    A pattern that is built at run time needs a `family` name.
    """
    pattern = cast("re.Pattern[AnyStr]", _Later(source, flags))
    DECLARED[family or f"{source!r} {int(flags)}"] = Declared(pattern, most, family)
    return pattern
