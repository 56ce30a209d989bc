from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.alignment import Alignment, align, rearrange, reasons
from chatmemory.core.eviction import Reason
from chatmemory.core.policies import MessageWindow, Policy
from chatmemory.core.window import Entry

CAPACITY, ORPHANED = Reason.CAPACITY, Reason.ORPHANED
REPLACED, SET = Reason.REPLACED, Reason.SET

MESSAGES = {
    "S": SystemMessage("Be brief."),
    "T": SystemMessage("Be kind."),
    "C": AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),)),
    "R": ToolExecutionResultMessage("1", "find", "found"),
}

payloads = st.lists(st.sampled_from("abcd"), max_size=8)
few = st.lists(st.sampled_from("ab"), max_size=10)


def kept(old: str, new: str) -> dict[int, int]:
    return align(old, new).kept


def why(old: str, new: str, policy: Policy | None = None) -> dict[int, Reason]:
    """The reason of each position that left: S and T are system messages, C calls, R answers."""
    before, after = (
        [Entry.of(MESSAGES.get(letter, UserMessage(letter))) for letter in letters]
        for letters in (old, new)
    )
    found = reasons(before, after, align(old, new), policy)
    return {before.index(entry): reason for entry, reason in found.items()}


def test_an_append_keeps_all():
    assert kept("abc", "abcd") == {0: 0, 1: 1, 2: 2}


def test_a_slide_is_matched_from_the_end():
    assert kept("abab", "abx") == {0: 2, 1: 3}


def test_a_slide_is_taken_before_a_longer_match():
    assert kept("ab", "bab") == {0: 1}
    assert kept("Sab", "Sbab") == {0: 0, 1: 2}


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


@settings(max_examples=300)
@given(few, few, st.integers(0, 10))
def test_a_slide_is_found_where_there_is_one_and_only_there(old, appended, first):
    def slide(old, new):
        return next((k for k in range(len(old)) if new[: len(old) - k] == old[k:]), None)

    for new in (appended, old[first:] + appended, old[:1] + old[first:] + appended):
        whole, behind = slide(old, new), slide(old[1:], new[1:])
        if whole is not None:
            expected = Alignment({j: whole + j for j in range(len(old) - whole)}, {})
        elif old[:1] == new[:1] and behind is not None:
            slid = {1 + j: 1 + behind + j for j in range(len(old) - 1 - behind)}
            expected = Alignment({0: 0} | slid, {})
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


def test_what_leaves_while_nothing_is_appended_was_set():
    assert why("abc", "bc") == {0: SET}
    assert why("ab", "") == {0: SET, 1: SET}
    assert why("xbcdef", "bdefc") == {0: SET}  # c has moved to the end


def test_only_an_unbroken_run_from_the_head_left_for_want_of_room():
    assert why("abcde", "cex") == {0: CAPACITY, 1: CAPACITY, 3: SET}
    assert why("abc", "acx") == {1: SET}


def test_a_list_made_anew_evicted_all_of_the_old_one():
    assert why("ab", "x") == {0: CAPACITY, 1: CAPACITY}


def test_the_run_begins_behind_a_system_message_that_stays():
    assert why("Sabc", "Scx") == {1: CAPACITY, 2: CAPACITY}
    assert why("aSb", "Sbx") == {0: CAPACITY}
    assert why("abSc", "acx") == {1: SET, 2: SET}


def test_a_leading_system_message_that_leaves_is_part_of_the_run():
    assert why("Sab", "bx") == {0: CAPACITY, 1: CAPACITY}


def test_only_results_behind_a_call_that_left_are_orphaned():
    assert why("CRRRa", "ax") == {0: CAPACITY, 1: ORPHANED, 2: ORPHANED, 3: ORPHANED}
    assert why("Rab", "bx") == {0: CAPACITY, 1: CAPACITY}
    assert why("CaRb", "bx") == {0: CAPACITY, 1: CAPACITY, 2: CAPACITY}


def test_a_system_message_is_replaced_by_one_that_arrives():
    assert why("Sab", "aTx") == {0: REPLACED, 2: SET}
    assert why("Sab", "bT") == {0: REPLACED, 1: CAPACITY}


def test_a_system_message_that_stays_replaces_nothing():
    assert why("STa", "Ta") == {0: SET}
    assert why("SabTx", "Tabx") == {0: SET}
    assert why("aSb", "abx") == {1: SET}


def test_a_policy_explains_a_list_that_it_would_have_made():
    assert why("SCRa", "Saxy", MessageWindow(4)) == {1: CAPACITY, 2: ORPHANED}
    assert why("Sab", "abT", MessageWindow(3)) == {0: REPLACED}


def test_no_policy_explains_the_leaving_of_a_message_that_only_moved():
    policy = MessageWindow(4, always_keep_system_message_first=True)
    assert align("aab", "Saba").moved == {3: 0}
    assert why("aab", "Saba", policy) == {}


def test_what_a_policy_does_not_explain_was_set():
    assert why("abc", "bcx", MessageWindow(10)) == {0: SET}
    assert why("Sab", "Tb", MessageWindow(10)) == {0: REPLACED, 1: SET}
