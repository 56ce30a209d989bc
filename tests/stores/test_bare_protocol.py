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
from chatmemory.services import change
from chatmemory.services.protocol import update_messages

pytestmark = pytest.mark.django_db

SYSTEM = SystemMessage("Be brief.")
CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
RESULT = ToolExecutionResultMessage("1", "find", "found")


def users(words: str) -> list[UserMessage]:
    return [UserMessage(word) for word in words]


def left(step: int) -> list[tuple[int, str]]:
    return [(each.seq, each.reason) for each in queries.step("bare", step).change.evicted]


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


def test_departures_have_the_reasons_of_the_policy():
    update_messages("bare", users("ab"))
    change("bare", policy=MessageWindow(2))
    update_messages("bare", users("bc"))
    assert left(3) == [(1, "CAPACITY")]


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
