"""Long texts in pieces, each of which is counted in little memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chatmemory.core.exceptions import UnsupportedMessage

# tiktoken takes a run of letters, signs or blanks as one word. It needs some 120 bytes for each of
# its characters, and its regular expressions run out of stack at a million blanks in a row.
LONGEST_RUN = 100_000

# What every encoding ends a word behind: letters and digits before a blank or a sign (but the
# apostrophe of "don't"), the change from one to the other, and blanks before the one that begins a
# word.
_BORDER = re.compile(
    r"[^\W_](?=\s)|[A-Za-z0-9](?=[!-&(-/:-@\[-`{-~])|[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])"
    r"|\s(?= [^\W\d_])"
)
_AHEAD = 2  # characters behind a border that decide whether it is one
_NEAR = 1_000


def pieces(text: str, is_exact: bool) -> Iterator[str]:
    """Yield a text in pieces of up to LONGEST_RUN characters, whose tokens add up to those of the
    text. A cut within a longer run of blanks, letters or signs adds a few tokens.

    Raises UnsupportedMessage for such a run if `is_exact`.
    """
    start = 0
    while len(text) - start > LONGEST_RUN:
        end = _last_border(text, start)
        if end is None and is_exact:
            raise UnsupportedMessage(
                f"the text has a run of over {LONGEST_RUN:,} blanks, letters or signs"
            )
        end = end or start + LONGEST_RUN
        yield text[start:end]
        start = end
    yield text[start:]


def _last_border(text: str, start: int) -> int | None:
    """Return the last border among the next LONGEST_RUN characters, or None."""
    end = start + LONGEST_RUN
    for near in (min(_NEAR, LONGEST_RUN), LONGEST_RUN):
        borders = _BORDER.finditer(text, end - near, end + _AHEAD)
        if found := [border.end() for border in borders if border.end() <= end]:
            return found[-1]
    return None
