"""The flags for dangling tool calls and oversized messages follow every kind of change."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    explain,
    queries,
    services,
)
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import protocol

from .conversations import create_and_add

HI = UserMessage("hi")
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


def test_a_call_dangles_no_more_when_what_parted_it_from_its_result_is_replaced(conversation):
    services.add(conversation, [call("1"), SystemMessage("s"), result("1")])
    assert queries.memory(conversation).is_dangling
    services.add(conversation, [SystemMessage("t")])
    assert not queries.memory(conversation).is_dangling


def test_a_result_without_a_call_is_not_counted(conversation):
    services.add(conversation, [result("0")])
    assert Memory.objects.get(pk=conversation).missing_results == 0


@pytest.mark.parametrize(
    ("messages", "is_dangling"),
    [
        ([HI, call("1")], False),
        ([HI, call("1"), result("1"), HI], False),
        ([HI, call("1"), HI], True),
        ([HI, call("1", "2"), result("1"), HI], True),
        ([HI, call("1", "2"), result("1"), result("2"), HI], False),
        ([HI, call("1"), HI, call("2"), result("2")], True),
        ([HI, call("1"), SystemMessage("s")], True),
        ([result("1"), HI], False),
    ],
)
def test_a_call_dangles_if_another_message_follows(conversation, messages, is_dangling):
    services.add(conversation, messages)
    assert queries.memory(conversation).is_dangling is is_dangling
    services.set_messages(conversation, [HI])
    assert not queries.memory(conversation).is_dangling
    services.set_messages(conversation, messages)
    assert queries.memory(conversation).is_dangling is is_dangling


def test_a_call_that_left_does_not_dangle(conversation):
    services.add(conversation, [HI, call("1"), HI, HI, HI, HI])
    assert queries.memory(conversation).is_dangling
    services.add(conversation, [HI, HI])
    assert not queries.memory(conversation).is_dangling


def test_clearing_removes_the_flag(conversation):
    services.add(conversation, [call("1"), HI])
    services.clear_messages(conversation)
    assert not queries.memory(conversation).is_dangling


def test_a_list_from_the_client_updates_the_flags(db):
    protocol.update_messages("bare", [HI, call("1"), HI])
    assert queries.memory("bare").is_dangling
    protocol.update_messages("bare", [HI, call("1"), result("1"), HI])
    assert not queries.memory("bare").is_dangling


def test_a_message_too_big_is_flagged_for_a_while(db):
    create_and_add("m", TokenWindow(20), [HI, UserMessage("much too long " * 20)])
    assert queries.memory("m").is_oversized
    assert [row.memory.id for row in queries.overview(FLAGGED).rows] == ["m"]
    services.add("m", [HI] * 40)
    assert not queries.memory("m").is_oversized
    assert queries.count(FLAGGED) == 0


def test_a_wrong_flag_is_found_by_verification(conversation):
    services.add(conversation, [call("1"), HI])
    Memory.objects.update(dangling_call=None)
    assert "dangling_call" in str(verify(conversation))
    Memory.objects.update(dangling_call=1)
    assert verify(conversation) is None
    Memory.objects.update(oversized_step=2)
    assert "oversized_step" in str(verify(conversation))
    Memory.objects.update(oversized_step=None)


def test_every_message_is_oversized_for_a_window_that_the_system_message_fills(db):
    create_and_add("one", MessageWindow(1), [SystemMessage("Be brief."), HI])
    assert queries.memory("one").is_oversized
    assert verify("one") is None
    why = explain.why_left(queries.step("one", 2).change, 2)
    assert why.summary == (
        "The system message alone fills the limit. It takes 1 of 1 messages: nothing else can stay."
    )


def test_a_message_in_a_window_of_one_is_not_too_big(db):
    create_and_add("one", MessageWindow(1), [HI, HI])
    services.set_messages("one", [HI, UserMessage("you")])
    assert not queries.memory("one").is_oversized
    assert verify("one") is None
