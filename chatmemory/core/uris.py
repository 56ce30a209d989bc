"""Which URLs LangChain4j accepts: what `java.net.URI.create` does (RFC 2396 and its "other"
characters).
"""

from __future__ import annotations

import re

from chatmemory.core.exceptions import InvalidMessage

_ILLEGAL = re.compile(
    r"[\x00-\x20\x7f-\xa0\"<>\\^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SHOWN = 200


def check_uri(text: str) -> None:
    """Raises InvalidMessage in Java's words for a character or escape that no URI may hold."""
    for pattern, complaint in (
        (_ILLEGAL, "Illegal character in {part} at index {index}: {text}"),
        (_BROKEN_ESCAPE, "Malformed escape pair at index {index}: {text}"),
    ):
        found = pattern.search(text)
        if found:
            index = found.start()
            raise InvalidMessage(
                complaint.format(part=_part(text, index), index=index, text=text[:_SHOWN])
            )


def _part(text: str, index: int) -> str:
    if "#" in text[:index]:
        return "fragment"
    return "query" if "?" in text[:index] else "path"
