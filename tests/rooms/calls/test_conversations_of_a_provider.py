"""Requests of OpenAI's Responses API that name a conversation, whose items the provider keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatmemory.messages.message import text_of
from chatmemory.models import Memory
from inspector.rooms.calls.bodies import RESPONSES, session_in
from inspector.rooms.calls.call import NewCall, ReceivedAnswer, SentRequest, Source
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.writes import store

START = datetime(2026, 11, 26, tzinfo=UTC)


def a_call(n: int, text: str, answer: str = "", session: str | None = None, **more) -> NewCall:
    request = {"model": "gpt-4o", "input": text, **more}
    said = {"type": "message", "role": "assistant", "content": []}
    said["content"] = [{"type": "output_text", "text": answer, "annotations": []}]
    response = {"id": f"resp_{n}", "object": "response", "output": [said]}
    return NewCall(
        key=f"key {n}",
        source=Source.RECORDER,
        format=RESPONSES,
        sent=SentRequest(request),
        received=ReceivedAnswer(response) if answer else ReceivedAnswer(error="500"),
        at=START + timedelta(seconds=n),
        session=session_in(request) if session is None else session,
    )


@pytest.mark.parametrize("named", ["conv_7", {"id": "conv_7"}])
@pytest.mark.parametrize("session", [None, "desk"])
def test_calls_of_one_conversation_are_one_conversation(db, named, session):
    asked = [
        ("A flight?", "To where?"),
        ("To Denver.", ""),
        ("Denver!", "NK204."),
        ("Book it.", "Ok"),
    ]
    for n, (text, answer) in enumerate(asked, 1):
        store(a_call(n, text, answer, session, conversation=named))
    (memory,) = Memory.objects.all()
    assert memory.pk == (session or "conv_7")
    calls = [one_call(memory.pk, n) for n in range(1, 5)]
    assert [each.request for each in calls] == [
        {"model": "gpt-4o", "input": text, "conversation": named} for text, _ in asked
    ]
    assert not any(each.row.is_exact for each in calls)  # there may be items from before them
    sent = [[text_of(row.message) for row in each.rows] for each in calls]
    assert sent[2] == ["A flight?", "To where?", "Denver!"]  # what failed is in no conversation
    assert sent[3] == [*sent[2], "NK204.", "Book it."]


def test_other_conversations_are_others(db):
    store(a_call(1, "Hi", "Hello", conversation="conv_1"))
    store(a_call(2, "Hi", "Hello", conversation="conv_2"))
    store(a_call(3, "Hi", "Hello", session="desk", conversation="conv_1"))
    store(a_call(4, "And?", "Hm", session="desk", conversation="conv_2"))
    assert [each.memory_id for each in ModelCall.objects.order_by("at")] == [
        "conv_1", "conv_2", "desk", "desk",
    ]  # fmt: skip
    assert len(one_call("desk", 2).rows) == 1


@pytest.mark.parametrize("named", [None, "", {}, {"id": 7}, 7, ["conv"]])
def test_what_names_no_conversation_begins_one_of_its_own(db, named):
    stored = store(a_call(1, "Hi", "Hello", conversation=named))
    assert stored.memory_id.startswith("call-")
    assert ModelCall.objects.get().is_exact


def test_a_member_of_chat_completions_names_nothing():
    assert session_in({"messages": [], "conversation": "conv_1"}) == ""
