from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.client_lists import Alignment, align, rearrange

from ..properties import examples

payloads = st.lists(st.sampled_from("abcd"), max_size=8)
few = st.lists(st.sampled_from("ab"), max_size=10)


def kept(old: str, new: str) -> dict[int, int]:
    return align(old, new).kept


def test_an_append_keeps_all():
    assert kept("abc", "abcd") == {0: 0, 1: 1, 2: 2}


def test_a_slide_is_matched_from_the_end():
    assert kept("abab", "abx") == {0: 2, 1: 3}


def test_a_slide_is_taken_before_a_longer_match():
    assert kept("abc", "bcabc") == {0: 1, 1: 2}
    assert kept("Sabc", "Sbcabc") == {0: 0, 1: 2, 2: 3}


def test_one_message_in_common_is_no_slide():
    assert kept("ab", "bab") == {1: 0, 2: 1}
    assert kept("Sab", "Sbab") == {0: 0, 2: 1, 3: 2}


def test_one_message_that_all_others_follow_stays():
    assert kept("a", "aab") == {0: 0}
    assert kept("Sa", "Saab") == {0: 0, 1: 1}


def test_a_list_slides_if_its_head_has_left_and_not_if_it_only_grew():
    assert align("abc", "bcxy").slides
    assert align("Sabc", "Sbcxy").slides
    assert not align("abc", "abcxy").slides
    assert not align("abc", "axc").slides


def test_a_slide_is_as_short_as_it_can_be():
    assert kept("aabaab", "aabaabx") == {j: j for j in range(6)}
    assert kept("xaabaab", "aabx") == {0: 4, 1: 5, 2: 6}
    assert kept("abaa", "aab") == {0: 2, 1: 3}
    assert kept("aabaaabaaa", "aabaaax") == {j: 4 + j for j in range(6)}


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


@examples(300)
@given(few, few, st.integers(0, 10))
def test_a_slide_is_found_where_there_is_one_and_only_there(old, appended, first):
    def slide(old, new):
        shortest = min(2, len(old))
        shifts = (k for k in range(len(old)) if new[: len(old) - k] == old[k:])
        return next((k for k in shifts if len(old) - k >= shortest), None)

    for new in (appended, old[first:] + appended, old[:1] + old[first:] + appended):
        whole, behind = slide(old, new), slide(old[1:], new[1:])
        if new == old[: len(new)]:
            expected = Alignment({j: j for j in range(len(new))}, {})
        elif whole is not None:
            expected = Alignment({j: whole + j for j in range(len(old) - whole)}, {}, whole > 0)
        elif old[:1] == new[:1] and behind is not None:
            slid = {1 + j: 1 + behind + j for j in range(len(old) - 1 - behind)}
            expected = Alignment({0: 0} | slid, {}, behind > 0)
        else:
            expected = rearrange(old, new)
        assert align(old, new) == expected


@given(payloads, payloads)
def test_what_is_kept_of_a_rearranged_list_is_the_longest_that_can_be(old, new):
    longest = [0] * (len(new) + 1)
    for item in old:
        above = longest
        longest = [0]
        for j, other in enumerate(new):
            longest.append(above[j] + 1 if item == other else max(above[j + 1], longest[j]))
    assert len(rearrange(old, new).kept) == longest[-1]


@given(payloads, payloads)
def test_equal_messages_stay_as_often_as_both_lists_have_them(old, new):
    alignment = rearrange(old, new)
    pairs = alignment.kept | alignment.moved
    stayed = sorted(new[j] for j in pairs)
    assert stayed == sorted(
        letter for letter in set(old) for _ in range(min(old.count(letter), new.count(letter)))
    )


def test_a_rearranged_list_keeps_the_later_of_equal_messages():
    assert rearrange("aa", "a").kept == {0: 1}
    assert rearrange("a", "aa").kept == {1: 0}


def test_of_equal_messages_the_later_ones_move():
    assert rearrange("aabc", "bcya").moved == {3: 1}
    assert rearrange("abc", "bcaa").moved == {3: 0}
    assert rearrange("aabcd", "bcdaa").moved == {3: 0, 4: 1}


def test_what_moved_has_not_left():
    assert align("abcx", "cbax").left(4) == []
    assert rearrange("abc", "cxa").left(3) == [1]


def test_a_later_one_of_equal_messages_at_the_head_is_kept():
    assert rearrange("aab", "ac").kept == {0: 1}
    assert rearrange("ab", "aac").kept == {1: 0}


@pytest.mark.parametrize("kinds", [1, 2, 8, 10_000])
def test_thousands_of_messages_are_aligned_however_often_they_repeat(kinds):
    old = [str(n * n % kinds) for n in range(3_000)]
    alignment = rearrange(old, ["before", *old[:1_000], *old[1_500:], "behind"])
    assert len(alignment.kept) == 2_500
    assert all(i - j == 499 for j, i in alignment.kept.items() if j > 2_400)
