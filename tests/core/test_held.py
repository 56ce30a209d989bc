"""Which terms a text holds: in one pass the same as one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.recall import held
from chatmemory.core.recall.held import Terms, is_held

from ..properties import examples

parts = st.text("a1/.-é ", min_size=1, max_size=12)
many = st.lists(parts, min_size=held._FEW + 1, max_size=held._FEW + 40, unique=True)


@given(many, st.lists(parts, max_size=20).map("".join), st.booleans())
@examples()
def test_one_pass_finds_what_is_found_one_by_one(terms, text, by_ends):
    found = Terms(terms, by_ends=by_ends).held_by(text)
    assert found == {term for term in terms if (is_held(term, [text]) if by_ends else term in text)}


@given(parts, parts)
@examples()
def test_a_term_is_held_if_the_whole_or_any_end_of_a_path_is(term, text):
    ends = [term[n + 1 :] for n, letter in enumerate(term) if letter == "/"]
    ends = [end for end in ends if len(end) >= 6 and ("/" in end or set(end) & set(".1"))]
    assert is_held(term, [text]) == any(each in text for each in [term, *ends])
