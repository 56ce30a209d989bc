r"""Regular expressions for texts from outside, such as messages, file names and requests.

While a regular expression runs, the process answers no other request. The time of a search must
therefore not grow with the square of the text's length. There are two ways to avoid this:

- A left boundary such as `(?<![\w-])` keeps a search from starting at each character of a long
  word.
- A possessive quantifier such as `\w*+` never tries a shorter match.

Each pattern is declared by `declared_pattern`. tests/growth/test_patterns.py runs all declared
patterns over hostile texts, and tests/architecture/test_patterns.py finds patterns that are not
declared. A pattern is compiled at its first use.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, NamedTuple, cast

ANY = 2**30  # characters: as many as a text may have


class Declared(NamedTuple):
    """A declared regular expression, for texts of at most `most` characters.

    A pattern that is built at run time, such as from the words of a setting, has a `family` name.
    For any other pattern, `family` is empty. `DECLARED` keeps only the newest pattern of a family.
    """

    pattern: re.Pattern[str] | re.Pattern[bytes]
    most: int
    family: str


DECLARED: dict[str, Declared] = {}


class _Later(Generic[AnyStr]):
    """A pattern that is compiled when one of its attributes is first used."""

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
    """Return a pattern for texts of at most `most` characters, and register it: tests try all
    registered patterns on hostile texts.

    The pattern is compiled at its first use, which raises re.error if `source` is invalid. A
    pattern that is built at run time needs a `family` name.
    """
    pattern = cast("re.Pattern[AnyStr]", _Later(source, flags))
    DECLARED[family or f"{source!r} {int(flags)}"] = Declared(pattern, most, family)
    return pattern
