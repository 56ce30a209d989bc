"""Windows smaller than their largest turn; which providers conversations were seen with."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, MessageWindow, SystemMessage, UserMessage
from chatmemory.models import Step
from inspector.rooms.doctor.largest import short_windows
from inspector.rooms.doctor.providers import providers_of
from inspector.rooms.doctor.reads import conversations_by_provider

from ...conversations import BRIEF, HI, call, create_and_add, result
from ...inspector.markup import words
from .diagnosed import diagnosed


def test_what_messages_tell_of_their_provider():
    assert providers_of([HI, AiMessage("Hm.")]) == set()
    assert providers_of([call("call_1"), call("toolu_1")]) == {"openai", "anthropic"}
    own = UserMessage("Hi", attributes={"openai_responses": {}, "mine": {}})
    assert providers_of([own, call("call_1")]) == {"openai_responses"}


@pytest.mark.django_db
@pytest.mark.database
def test_a_limit_that_is_smaller_than_the_largest_turn_is_a_line_of_the_page(operator_client):
    said = [BRIEF, HI, call("call_1"), result("call_1"), call("call_2"), result("call_2")]
    create_and_add("short", MessageWindow(4), said)
    create_and_add("long", MessageWindow(9), said)
    diagnosed("short", "long")
    assert [(each.memory_id, each.needed) for each in short_windows()] == [("short", 6)]
    assert short_windows()[0].at == Step.objects.get(memory="short", n=5).at
    page = words(operator_client.get("/doctor/").content)
    assert "A limit smaller than the largest recorded turn" in page
    assert "the largest turn and the system message need 6 messages, but the limit is 4." in page
    assert "used by 2 conversations" in page
    assert conversations_by_provider()["openai"] == 2


@pytest.mark.django_db
@pytest.mark.database
def test_the_system_message_of_a_long_conversation_needs_room_too(monkeypatch):
    monkeypatch.setattr("inspector.rooms.doctor.largest.RECORDED", 5)
    turn = [HI, call("call_1"), result("call_1"), call("call_2"), result("call_2")]
    create_and_add("begins", MessageWindow(5), [BRIEF, *turn])
    create_and_add("none", MessageWindow(5), [HI, *turn])
    create_and_add("another", MessageWindow(5), [BRIEF, HI, SystemMessage("Be kind."), *turn])
    diagnosed("begins", "none", "another")
    found = {each.memory_id: each.needed for each in short_windows()}
    assert found == {"begins": 6, "another": 6}
