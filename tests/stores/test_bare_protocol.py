"""The history and the reasons that are inferred from a client's lists."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
)
from chatmemory.core.policies import MessageWindow
from chatmemory.ledger.verification import verify
from chatmemory.services import change
from chatmemory.services.protocol import delete_messages, update_messages

pytestmark = pytest.mark.django_db

SYSTEM = SystemMessage("Be brief.")
CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
OK = UserMessage("ok")
RESULT = ToolExecutionResultMessage("1", "find", "found")


def users(words: str) -> list[UserMessage]:
    return [UserMessage(word) for word in words]


def left(step: int) -> list[tuple[int, str]]:
    return [(each.seq, each.reason) for each in queries.step("bare", step).change.evicted]


def window(step: int | None = None) -> list[str]:
    return [row.text for row in queries.window("bare", step).rows]


def history() -> list[str]:
    return [row.text for row in queries.history("bare").rows]


def test_all_messages_of_a_first_list_are_said():
    update_messages("bare", [SYSTEM, *users("ab")])
    assert history() == ["Be brief.", "a", "b"]
    assert queries.memory("bare").policy is None
    assert queries.window("bare").load is None


def test_an_appended_message_is_an_add():
    update_messages("bare", users("ab"))
    update_messages("bare", users("abc"))
    assert queries.step("bare", 2).row.kind == "add"


def test_messages_that_slide_out_of_the_head_left_for_capacity():
    update_messages("bare", [SYSTEM, *users("abc")])
    update_messages("bare", [SYSTEM, *users("bcd")])
    assert left(2) == [(2, "CAPACITY")]
    assert history() == ["Be brief.", "a", "b", "c", "d"]


def test_results_slide_out_with_their_call():
    update_messages("bare", [CALL, RESULT, RESULT, *users("a")])
    update_messages("bare", users("ab"))
    assert left(2) == [(1, "CAPACITY"), (2, "ORPHANED"), (3, "ORPHANED")]


def test_a_new_system_message_replaces():
    update_messages("bare", [SYSTEM, *users("a")])
    update_messages("bare", [*users("a"), SystemMessage("Be kind.")])
    assert left(2) == [(1, "REPLACED")]


def test_messages_that_leave_the_middle_have_the_reason_set():
    update_messages("bare", users("abc"))
    update_messages("bare", users("ac"))
    assert left(2) == [(2, "SET")]


def test_an_equal_list_is_not_a_step():
    update_messages("bare", users("ab"))
    assert update_messages("bare", users("ab")).ignored
    assert queries.memory("bare").last_step == 1


def test_injected_context_is_not_part_of_the_history():
    update_messages("bare", users("ab"))
    update_messages("bare", users("axb"))
    assert history() == ["a", "b"]
    assert [row.text for row in queries.window("bare").rows] == ["a", "x", "b"]


def test_a_message_that_returns_before_the_end_has_a_second_stay():
    update_messages("bare", users("abc"))
    update_messages("bare", users("bc"))
    update_messages("bare", users("abc"))
    assert history() == ["a", "b", "c"]
    assert len(queries.message("bare", 1).stays) == 2


def test_the_servers_policy_does_not_decide_what_a_client_did():
    update_messages("bare", users("ab"))
    change("bare", policy=MessageWindow(10))
    update_messages("bare", users("bc"))
    assert left(3) == [(1, "CAPACITY")]
    step = queries.step("bare", 3)
    assert (step.row.by_client, step.row.policy) == (True, MessageWindow(10))


def test_a_message_that_left_at_once_is_an_add_that_nobody_saw():
    update_messages("bare", [SYSTEM, *users("ab")])
    result = update_messages("bare", [SYSTEM])
    assert (result.kind, result.seq, result.arrived) == ("add", None, ())
    assert left(2) == [(2, "CAPACITY"), (3, "CAPACITY")]
    assert history() == ["Be brief.", "a", "b"]


@pytest.mark.parametrize(
    ("said", "back"),
    [
        ([OK, AiMessage("bad")], 1),
        ([SYSTEM, OK, AiMessage("bad")], 2),
        ([OK, AiMessage("bad"), *users("ab")], 1),
        ([OK, AiMessage("good"), OK, AiMessage("bad")], 3),
        ([OK, AiMessage("good"), OK], 1),
        ([OK, OK, OK], 2),
    ],
)
def test_an_answer_that_a_client_takes_back_adds_nothing(said, back):
    update_messages("bare", said)
    result = update_messages("bare", said[:back])
    assert (result.kind, result.arrived) == ("set", ())
    assert left(2) == [(seq, "SET") for seq in range(back + 1, len(said) + 1)]
    assert queries.said("bare") == said
    update_messages("bare", [*said[:back], AiMessage("better")])
    assert queries.said("bare") == [*said, AiMessage("better")]
    assert verify("bare") is None


def test_a_system_message_that_is_kept_first_evicts_the_oldest():
    update_messages("bare", users("abc"))
    result = update_messages("bare", [SYSTEM, *users("bc")])
    assert result.kind == "add"
    assert left(2) == [(1, "CAPACITY")]
    assert window() == ["Be brief.", "b", "c"]
    assert window(1) == ["a", "b", "c"]


def test_messages_leave_on_both_sides_of_a_system_message():
    update_messages("bare", [*users("a"), SYSTEM, *users("bc")])
    update_messages("bare", [SYSTEM, *users("cd")])
    assert left(2) == [(1, "CAPACITY"), (3, "CAPACITY")]


def test_a_system_message_is_replaced_where_an_older_message_is_said_again():
    kind = SystemMessage("Be kind.")
    update_messages("bare", [OK, *users("b")])
    update_messages("bare", [OK, *users("b"), SYSTEM])
    update_messages("bare", [OK, *users("b"), SYSTEM, OK])
    update_messages("bare", [OK, *users("b"), OK, kind])
    assert left(4) == [(3, "REPLACED")]
    assert history() == ["ok", "b", "Be brief.", "ok", "Be kind."]


@pytest.mark.parametrize("words", ["xy", "cxy", "acx", "cab"])
def test_what_is_not_in_a_list_that_was_set_left_by_it(words):
    update_messages("bare", [SYSTEM, *users("abc")])
    update_messages("bare", users(words))
    assert queries.step("bare", 2).row.kind == "set"
    assert {reason for _, reason in left(2)} == {"SET"}


def test_two_messages_that_came_are_no_add():
    update_messages("bare", users("abc"))
    result = update_messages("bare", users("bcxy"))
    assert result.kind == "set"
    assert left(2) == [(1, "SET")]
    assert history() == list("abcxy")


def test_what_stands_before_an_equal_system_message_is_new():
    update_messages("bare", [SYSTEM, *users("ab")])
    update_messages("bare", [*users("xy"), SYSTEM])
    assert history() == ["Be brief.", "a", "b", "x", "y"]


def test_a_message_that_another_list_displaced_returns():
    update_messages("bare", users("ab"))
    update_messages("bare", users("abx"))
    update_messages("bare", users("aby"))  # by a writer that had not seen x
    update_messages("bare", users("abxz"))  # by one that had
    assert left(3) == [(3, "SET")]
    assert history() == list("abxyz")
    assert [stay.reason for stay in queries.message("bare", 3).stays] == ["SET", None]


def test_a_message_that_was_evicted_is_said_again():
    update_messages("bare", users("ab"))
    update_messages("bare", users("bc"))
    update_messages("bare", users("bcad"))
    update_messages("bare", users("adc"))
    assert history() == list("abcadc")


def test_a_message_of_a_cleared_memory_is_said_again():
    update_messages("bare", users("ab"))
    delete_messages("bare")
    update_messages("bare", users("ab"))
    assert history() == list("abab")


def test_what_slides_in_is_said_again_whatever_was_displaced():
    update_messages("bare", users("abcd"))
    update_messages("bare", users("cdef"))
    update_messages("bare", users("efab"))
    assert history() == list("abcdefab")


def test_an_added_message_is_said_even_if_an_equal_one_was_displaced():
    update_messages("bare", users("abc"))
    update_messages("bare", users("ac"))
    update_messages("bare", users("acb"))
    assert history() == list("abcb")


@pytest.mark.parametrize(("older", "said"), [("az", "abcxyz"), ("za", "abcxyza")])
def test_an_older_list_brings_back_all_but_its_last_message(older, said):
    update_messages("bare", users("ab"))
    update_messages("bare", users("bc"))  # a left for want of room
    update_messages("bare", users("xy"))
    update_messages("bare", users(older))
    assert sorted(history()) == sorted(said)


def test_equal_messages_in_one_list_are_two_messages():
    update_messages("bare", users("aa"))
    assert history() == ["a", "a"]


def test_past_windows_of_a_sliding_list_are_read_from_a_short_range():
    for start in range(40):
        update_messages("bare", [SYSTEM, *(UserMessage(str(n)) for n in range(start, start + 3))])
    last = queries.step("bare", 40).row
    assert last.last_stay - last.oldest == 2
    for step in (1, 20, 40):
        texts = [row.text for row in queries.window("bare", step).rows]
        assert texts == ["Be brief.", *(str(n) for n in range(step - 1, step + 2))]


def test_many_insertions_into_one_gap_keep_the_order():
    words = ["start", "end"]
    for number in range(30):
        words.insert(1, str(number))
        update_messages("bare", [UserMessage(word) for word in words])
        assert [row.text for row in queries.window("bare").rows] == words
