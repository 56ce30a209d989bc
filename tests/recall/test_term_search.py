"""Which terms a text holds: as a whole, and in one pass the same as one after the other."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory.recall.term_search import Terms, identifying_part, is_found

from ..properties import examples

parts = st.text("a1/.-é ", min_size=1, max_size=12)
many = st.lists(parts, max_size=60, unique=True)


@given(many, st.lists(parts, max_size=20).map("".join))
@examples()
def test_one_pass_finds_what_is_found_one_by_one(terms, text):
    assert Terms(terms).found_in(text) == {term for term in terms if is_found(term, [text])}


@given(st.from_regex(r"[ab1]([ab1.-]{0,5}[ab1])?", fullmatch=True), st.text("ab1.-/ ", max_size=20))
@examples(300)
def test_a_term_is_held_only_as_a_whole(term, text):
    """Slashes separate the parts of a path; other punctuation belongs to a longer term."""
    alone = [part.strip(".-") for part in re.split(r"[/ ]", text)]
    assert is_found(term, [text]) == (term in alone)


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("A-118", "order A-1182", False),
        ("A-118", "order A-118.", True),
        ("A-118", "PRE-A-118", False),
        ("A-118", "https://shop.example/orders/A-118/items", True),
        ("src/app2/main.go", "in app2/main.go, at the end", True),
        ("src/app2/main.go", "the domain.go", False),
        ("src/app2/readme", "the readme", False),
        ("cli/.worktrees/3", "in .worktrees/3/cmd", True),
        ("repos/o/r/comments/2772143680/replies", "comment 2772143680 is answered", True),
        ("repos/o/r/comments/123/replies", "comments 1234", False),
        ("the Fjord", "in the Fjord, and", True),
        ("the Fjord", "in the Fjords", False),
    ],
)
def test_examples(term, text, expected):
    assert is_found(term, [text]) is expected


@pytest.mark.parametrize(
    ("term", "part"),
    [
        ("A-1182", "A-1182"),
        ("src/b22/c33.go", "c33.go"),
        ("x/y2/ab.go", "y2/ab.go"),
        ("repos/o/r/issues/118/comments", "118"),
        ("tree/0a1b2c3d/docs", "0a1b2c3d"),
        ("src/app2/readme", "app2/readme"),
    ],
)
def test_the_part_that_identifies_a_path_or_an_address(term, part):
    assert identifying_part(term) == part
