"""The flags for dangling tool calls and oversized messages follow every kind of change."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    explain,
    queries,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import protocol

from .conversations import create_and_add

HI = UserMessage("hi")
BRIEF = SystemMessage("Be brief.")
FLAGGED = queries.MemoryFilter(flag=queries.Flag.ANY)


def call(*ids: str) -> AiMessage:
    return AiMessage(None, tuple(ToolExecutionRequest(id, "find", "{}") for id in ids))


def result(id: str) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "find", "found")


@pytest.fixture
def conversation(db) -> str:
    services.create("m", MessageWindow(6))
    yield "m"
    assert verify("m") is None


def is_dangling() -> bool:
    return queries.memory("m").is_dangling


@pytest.mark.parametrize(
    ("messages", "dangles"),
    [
        ([HI, call("1")], False),
        ([HI, call("1"), result("1"), HI], False),
        ([HI, call("1"), HI], True),
        ([HI, call("1", "2"), result("1"), HI], True),
        ([HI, call("1", "2"), result("1"), result("2"), HI], False),
        ([HI, call("1"), HI, call("2"), result("2")], True),
        ([HI, call("1"), BRIEF], True),
        ([result("1"), HI], False),
    ],
)
def test_a_call_dangles_if_another_message_follows(conversation, messages, dangles):
    services.add(conversation, messages)
    assert is_dangling() is dangles
    services.set_messages(conversation, [HI])
    assert not is_dangling()
    services.set_messages(conversation, messages)
    assert is_dangling() is dangles
    services.clear_messages(conversation)
    assert not is_dangling()
    protocol.update_messages("theirs", messages)
    assert queries.memory("theirs").is_dangling is dangles


def test_a_call_dangles_no_more_when_what_parted_it_from_its_result_is_replaced(conversation):
    services.add(conversation, [call("1"), SystemMessage("s"), result("1")])
    assert is_dangling()
    services.add(conversation, [SystemMessage("t")])
    assert not is_dangling()


def test_a_call_that_left_does_not_dangle(conversation):
    services.add(conversation, [HI, call("1"), HI, HI, HI, HI])
    assert is_dangling()
    services.add(conversation, [HI, HI])
    assert not is_dangling()


def test_a_result_without_its_call_is_flagged(conversation):
    services.add(conversation, [HI, result("0")])
    orphaned = queries.MemoryFilter(flag=queries.Flag.ORPHANED)
    assert [queries.count(which) for which in (orphaned, FLAGGED)] == [1, 1]
    services.add(conversation, [call("1"), result("1")])
    assert Memory.objects.get(pk=conversation).waiting_call is None


def test_a_message_too_big_is_flagged_for_a_while(db):
    create_and_add("m", TokenWindow(20), [HI, UserMessage("much too long " * 20)])
    assert queries.memory("m").is_oversized
    assert [row.memory.id for row in queries.overview_page(FLAGGED).rows] == ["m"]
    services.add("m", [HI] * 40)
    assert not queries.memory("m").is_oversized
    assert queries.count(FLAGGED) == 0


def test_a_message_that_left_as_it_came_was_never_in_memory(db):
    """Neither is too big for the limit, but the call had to go for the result."""
    found = ToolExecutionResultMessage("1", "find", "found " * 26)
    create_and_add("m", TokenWindow(40), [HI, call("1"), found, HI])
    assert queries.memory("m").missed_step == 3
    assert not queries.memory("m").is_oversized
    told = explain.caption(queries.step("m", 3).change).summary
    assert told.startswith("Tool result #3 never reached the model +")
    never = queries.MemoryFilter(flag=queries.Flag.NEVER_IN_MEMORY)
    assert [queries.count(which) for which in (never, FLAGGED)] == [1, 1]
    services.add("m", [HI] * 40)
    assert queries.memory("m").missed_step is None
    assert [queries.count(which) for which in (never, FLAGGED)] == [0, 0]
    assert verify("m") is None


def test_a_wrong_flag_is_found_by_verification(conversation):
    services.add(conversation, [call("1"), HI])
    for name, wrong, right in (
        ("problems", "", ",call_after_model,dangling_call,first_not_user,"),
        ("refused_by", 0, 15),
        ("waiting_call", 2, None),
        ("oversized_step", 2, None),
        ("missed_step", 2, None),
    ):
        Memory.objects.update(**{name: wrong})
        assert name in str(verify(conversation))
        Memory.objects.update(**{name: right})


def test_in_a_window_of_one_only_the_system_message_makes_others_oversized(db):
    create_and_add("one", MessageWindow(1), [BRIEF, HI])
    assert queries.memory("one").is_oversized
    why = explain.why_left(queries.step("one", 2).change, 2)
    assert why.summary == (
        "The system message alone fills the limit. It takes 1 of 1 messages: nothing else can stay."
    )
    create_and_add("other", MessageWindow(1), [HI, HI])
    services.set_messages("other", [HI, UserMessage("you")])
    assert not queries.memory("other").is_oversized
    assert [verify(memory_id) for memory_id in ("one", "other")] == [None, None]
