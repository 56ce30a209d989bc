from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.alignment import align

payloads = st.lists(st.sampled_from("abcd"), max_size=8)


def kept(old: str, new: str) -> dict[int, int]:
    return align(old, new).kept


def test_an_append_keeps_all():
    assert kept("abc", "abcd") == {0: 0, 1: 1, 2: 2}


def test_a_slide_is_matched_from_the_end():
    assert kept("abab", "abx") == {0: 2, 1: 3}


def test_a_slide_behind_a_system_message():
    assert kept("sabc", "sbcd") == {0: 0, 1: 2, 2: 3}


def test_an_insertion_keeps_both_sides():
    assert kept("abc", "axbc") == {0: 0, 2: 1, 3: 2}


def test_reversed_messages_have_moved():
    alignment = align("abcx", "cbax")
    assert alignment.kept == {2: 0, 3: 3}
    assert alignment.moved == {0: 2, 1: 1}


@given(payloads, payloads)
def test_an_alignment_pairs_equal_messages_once(old, new):
    alignment = align(old, new)
    pairs = {**alignment.kept, **alignment.moved}
    assert all(old[i] == new[j] for j, i in pairs.items())
    assert len(set(pairs.values())) == len(pairs)
    in_order = [alignment.kept[j] for j in sorted(alignment.kept)]
    assert in_order == sorted(in_order)


@given(payloads)
def test_an_equal_list_is_kept(items):
    alignment = align(items, items)
    assert len(alignment.kept) == len(items)
    assert not alignment.moved
