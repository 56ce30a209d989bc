"""A reading is kept for short texts alone, so that what a process keeps is bounded."""

from __future__ import annotations

from chatmemory.recall.kept_readings import LONGEST_KEPT
from chatmemory.recall.reminded import reminded_in
from chatmemory.recall.user_texts import user_text
from chatmemory.recall.value_search import searched

SHORT, LONG = "As I said, A-1182.", "a" * (LONGEST_KEPT + 1)


def test_a_short_text_is_read_once():
    assert user_text(SHORT) is user_text(SHORT)
    assert reminded_in(user_text(SHORT)) is reminded_in(user_text(SHORT))
    assert searched(SHORT) is searched(SHORT)


def test_a_long_text_is_not_kept():
    text = user_text(LONG)
    assert text is not user_text(LONG)
    assert reminded_in(text) is not reminded_in(text)
    assert searched(LONG) is not searched(LONG)
