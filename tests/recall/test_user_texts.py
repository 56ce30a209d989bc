"""A text that says nothing but a value: the fast test by its telling words agrees with the words
themselves, which texts with other letters than those of English are read by.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.recall.user_texts import user_text

WORDS = st.sampled_from(
    ["it", "is", "Camden", "my", "order", "number", "A-1182", "red,", "no.", "because", "as I said"]
)
BESIDES = st.frozensets(st.sampled_from(["camden", "red", "1182"]))


@given(st.lists(WORDS, min_size=1, max_size=8), st.data(), BESIDES)
def test_the_fast_test_agrees(words, data, besides):
    text = " ".join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    start = len(" ".join(words[:first])) + bool(first)
    end = start + len(words[first])
    fast, slow = user_text(f"{text} ."), user_text(f"{text} …")
    assert not slow._telling_words
    told = slow.has_only(start, end, besides=besides, most=5)
    begins = slow.begins_with(start, end, besides, 5)
    assert fast.has_only(start, end, besides=besides, most=5) is told
    assert fast.begins_with(start, end, besides, 5) is begins
    assert fast.may_begin_with(start, besides) or not (told or begins)
