"""Texts that are hostile to patterns: each shape repeats what patterns search for."""

from __future__ import annotations

SHAPES: dict[str, str] = {
    "digits": "1",
    "hexadecimal": "0123456789abcdef",
    "a-": "a-",
    "+1": "+1",
    "@": "a@",
    ".": "1.",
    "quotes": "\"'",
    "brackets": "([{",
    "CJK": "\N{CJK UNIFIED IDEOGRAPH-6F22}\N{CJK UNIFIED IDEOGRAPH-5B57}",
    "spaces": " ",
    "one long word": "a",
    "camel case": "aB",
}
MORE: dict[str, str] = {
    "at signs": "@",
    "addresses": "a@a.",
    "points": ".",
    "open quotes": "\N{LEFT DOUBLE QUOTATION MARK}",
    "nested JSON": '{"a":[',
    "lines": "\n",
    "word and space": "a ",
    "capitals": "A",
    "slashes": "a/",
    "colons": "1:",
    "dashes": "-",
    "underscores": "_",
    "backslashes": "\\",
    "escapes": "\x1b[",
    "backticks": "`",
    "stars": "**a",
    "entities": "&amp;",
    "percents": "%41",
    "months": "March 3, ",
    "dates": "2026-01-02 ",
    "numbers": "order 12345 ",
}


def text_of(shape: str, characters: int) -> str:
    """Return a text of this shape with so many characters, of which the last is another one."""
    unit = {**SHAPES, **MORE}[shape]
    return f"{(unit * (characters // len(unit) + 1))[: characters - 1]}!"
