"""The normal form in which texts are searched for terms to mask. Each position in the normal form
can be converted to a position in the original text.

- ASCII letters stay as they are, because patterns distinguish upper and lower case.
- Other letters are changed by NFKD and case folding: `É` becomes `e` and a combining accent.
- A run of white space becomes one space, and zero-width characters are left out.
- HTML entities, percent-encoded characters and JSON escapes are decoded: `&amp;` becomes `&`.
- Curly quotes become straight quotes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from html import unescape
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

from chatmemory.patterns import declared_pattern

_ZERO_WIDTH = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"
_SPACE = r"\t-\r\x1c-\x20\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_IRREGULAR = declared_pattern(
    rf"[{_SPACE}{_ZERO_WIDTH}]{{2,}}|[{_SPACE.replace('x20', 'x1f')}{_ZERO_WIDTH}]"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|(?:%[0-9a-fA-F]{2})++"
    r"|\\{1,8}u[0-9a-fA-F]{4}|\\[nrt\"/\\]"
    rf"|[^\x00-\x7e{_SPACE}{_ZERO_WIDTH}]"
)
_HAS_SPACE = declared_pattern(rf"[{_SPACE}]")
_IS_ZERO_WIDTH = declared_pattern(rf"\A[{_ZERO_WIDTH}]")
_ESCAPE = declared_pattern(r"(?<!\\)\\++u([0-9a-fA-F]{4})|\\([nrt\"/\\])")
_STRAIGHT = str.maketrans("‘’‚‛“”„‟«»′", '\'\'\'\'""""""\'')


class NormalText(NamedTuple):
    """A text in its normal form, with the positions of the parts whose length has changed. For
    example, `&amp;` became `&`.

    Each list has one item for each of these parts, in order. `starts` and `ends` are positions in
    the normal form. `of_starts` and `of_ends` are positions in the original text.
    """

    text: str
    starts: list[int]
    ends: list[int]
    of_starts: list[int]
    of_ends: list[int]

    @classmethod
    def of(cls, text: str) -> NormalText:
        parts, starts, ends = list[str](), list[int](), list[int]()
        of_starts, of_ends = list[int](), list[int]()
        done = length = 0
        for found in _IRREGULAR.finditer(text):
            start, end = found.span()
            form = normal_part(found[0])
            parts += (text[done:start], form)
            length += start - done
            if len(form) != end - start:
                starts.append(length)
                ends.append(length + len(form))
                of_starts.append(start)
                of_ends.append(end)
            length += len(form)
            done = end
        return cls("".join((*parts, text[done:])), starts, ends, of_starts, of_ends)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Convert the positions `start` and `end` of the normal form to positions in the original
        text. `end` must be greater than `start`.
        """
        return self._place(start, is_end=False), self._place(end, is_end=True)

    def _place(self, place: int, is_end: bool) -> int:
        n = bisect_right(self.starts, place - is_end) - 1
        if n < 0:
            return place
        if place - is_end < self.ends[n]:
            return self.of_ends[n] if is_end else self.of_starts[n]
        return self.of_ends[n] + place - self.ends[n]


@lru_cache(maxsize=4096)
def normal_part(part: str) -> str:
    """Return the normal form of a part of a text: an escape, white space, zero-width characters, or
    a character outside ASCII.

    For example, `&amp;` becomes `&`, and `É` becomes `e` and a combining accent.
    """
    if part[0] == "&":
        decoded = unescape(part)
    elif part[0] == "%":
        decoded = unquote(part)
    elif part[0] == "\\":
        decoded = _ESCAPE.sub(_unescaped, part)
    elif _HAS_SPACE.search(part):
        return " "
    else:
        decoded = "" if _IS_ZERO_WIDTH.match(part) else part
    if decoded != part:
        decoded = _IRREGULAR.sub(lambda found: normal_part(found[0]), decoded)
    return normalize("NFKD", normalize("NFKD", decoded).translate(_STRAIGHT).casefold())


def _unescaped(found: re.Match[str]) -> str:
    code, letter = found[1], found[2]
    if code:
        value = chr(int(code, 16))
        return value if value.isprintable() or value.isspace() else " "
    return " " if letter in "nrt" else str(letter)


def normal_form(text: str) -> str:
    """Return the normal form of a text in lower case, without white space at both ends. `Straße`
    and `STRASSE` become `strasse`.
    """
    return NormalText.of(text).text.casefold().strip()
