"""Rows that are drawn many at a time: their templates see nothing but what their classes name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template.base import Lexer, TokenType
from django.template.loader import get_template

from inspector.conversation.history import HistoryRow
from inspector.conversation.memory import MemoryPaneRow
from inspector.conversation.timeline.labels import Label
from inspector.conversation.timeline.strip import Cell

FOLDER = "inspector/conversation"
ROWS = {
    HistoryRow: "_said.html",
    MemoryPaneRow: "_led.html",
    Cell: "_cell.html",
    Label: "_tape_label.html",
}


def words_of(template: str) -> set[str]:
    """Return the words in the tags and variables of a template, and of those that it includes."""
    text = Path(get_template(template).template.origin.name).read_text("utf-8")
    tokens = Lexer(text).tokenize()
    used = [t.contents for t in tokens if t.token_type in (TokenType.VAR, TokenType.BLOCK)]
    included = [each for tag in used for each in re.findall(r'^include "([^"]+)"', tag)]
    words = {word for tag in used for word in re.findall(r"\w+", tag)}
    return words.union(*map(words_of, included))


@pytest.mark.parametrize("kind", ROWS)
def test_each_name_of_a_row_is_in_its_template(kind):
    """A name that a class draws, such as a column, is otherwise silently not shown."""
    unused = {*kind.drawn} - words_of(f"{FOLDER}/{ROWS[kind]}")
    assert unused == set()
