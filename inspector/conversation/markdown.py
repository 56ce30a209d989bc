"""Renders explanations, such as why a message left memory, as Markdown to paste into a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chatmemory.explain.receipts import Receipt, ReceiptLine, shortened
from chatmemory.explain.wording import amount
from chatmemory.patterns import declared_pattern

_MARKS = declared_pattern(r"([\\`*_\[\]<>|~#@])")
# Texts that GitHub, GitLab and others turn into links: addresses of pages and of people
_LETTER = r"[^\s`|<>@,;]"
_ADDRESS = declared_pattern(
    r"((?:\b[a-z][a-z0-9+.-]{0,30}+://|\bwww\.|\bmailto:)[^\s`|<>]+(?<![.,;:!?)])"
    rf"|(?<!{_LETTER}){_LETTER}++@{_LETTER}[^\s`|<>@,;.]*+\.{_LETTER}++)",
    re.IGNORECASE,
)


def as_markdown(question: str, answers: Iterable[str], lines: Receipt = ()) -> str:
    """Return an explanation as Markdown: the question in bold, the answers as a list, and the
    arithmetic (`lines`) as a table.

    Empty answers are left out. Without `lines`, there is no table.
    """
    parts = [
        f"**{escaped(question)}**",
        "\n".join(f"- {escaped(each)}" for each in answers if each),
    ]
    if lines:
        parts.append(
            "\n".join([f"| | {lines[0].unit} |", "|---|--:|", *map(_row, shortened(lines))])
        )
    return "\n\n".join(parts)


def _row(line: ReceiptLine) -> str:
    sign = "+" if line.kind == "plus" else ""
    return f"| {escaped(line.label)} | {sign}{amount(line.amount)} |"


def escaped(text: str) -> str:
    """Return a text on one line, with Markdown characters escaped.

    URLs and email addresses become code, so that GitHub and others do not turn them into links.
    """
    parts = _ADDRESS.split(" ".join(text.split()))  # every second part is an address
    return "".join(
        f"`{part}`" if n % 2 else _MARKS.sub(r"\\\1", part) for n, part in enumerate(parts)
    )
