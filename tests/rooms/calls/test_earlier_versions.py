"""What earlier versions recorded stays readable, and goes on."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.ledger import protocol
from chatmemory.models import Memory
from inspector.rooms.calls.call import ReceivedAnswer
from inspector.rooms.calls.models import CallRun, ModelCall
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.writes import store

from .test_beside import SENT, a_call, rows_of

pytestmark = pytest.mark.database
MIGRATION = import_module("inspector.rooms.calls.migrations.0004_lists_of_calls")


def migrate() -> None:
    CallRun.objects.update(last_step=0)  # the new column
    MIGRATION._find_last_steps(apps, SimpleNamespace(connection=connection))


def test_a_conversation_that_calls_began_goes_on(db):
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Ok"}}]}
    store(a_call(1, SENT[1:2], received=ReceivedAnswer(answer)))
    migrate()
    assert CallRun.objects.get().last_step == Memory.objects.get().last_step == 2
    store(a_call(2, [SENT[1], AiMessage("Ok"), SENT[2]]))
    assert [each.step for each in ModelCall.objects.order_by("n")] == [1, 3]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_list_of_a_client_that_counted_as_begun_by_calls_does_not(db, is_deleted):
    """Earlier, any conversation without a policy did. If its first calls are gone, nobody knows."""
    protocol.update_messages("m", [UserMessage("Hello"), AiMessage("Hi")])
    _recorded_by_an_earlier_version(SENT[1:3], is_own=True, calls=1 + is_deleted)
    migrate()
    assert CallRun.objects.get().is_own is is_deleted
    before = rows_of("m")
    stored = store(a_call(2, SENT[1:4]))
    assert (rows_of("m") == before) is not is_deleted
    assert one_call("m", 1).request == a_call(1, SENT[1:3]).sent.request
    assert one_call("m", stored.n).request == a_call(2, SENT[1:4]).sent.request


def test_a_call_whose_window_was_restored_is_read_from_its_step(db, operator_client):
    services.create("m", MessageWindow(4))
    services.add("m", [UserMessage("Hello"), AiMessage("Hi")])
    _recorded_by_an_earlier_version(SENT[:3], is_own=False, calls=1)
    migrate()
    store(a_call(2, SENT))
    first, second = one_call("m", 1), one_call("m", 2)
    assert first.request == a_call(1, SENT[:3]).sent.request
    assert first.seqs == [3, 4, 5]
    assert second.request == a_call(2, SENT).sent.request
    assert (second.row.step, second.row.places) == (None, "3-5,~1")
    assert "Changed since call 1" in operator_client.get("/c/m/calls/2/").text


def _recorded_by_an_earlier_version(sent: list, is_own: bool, calls: int) -> None:
    """A call whose list replaced the window, which was then restored where others decide it."""
    window = protocol.get_messages("m")
    protocol.update_messages("m", sent)
    step = Memory.objects.get(pk="m").last_step
    if not is_own:
        services.set_messages("m", window)
    request = a_call(1, sent).sent.request
    ModelCall.objects.create(
        memory_id="m",
        n=1,
        key="k",
        source="recorder",
        format="openai_chat",
        at=a_call(1, sent).at,
        step=step,
        difference=_difference(request),
    )
    CallRun.objects.create(memory_id="m", calls=calls, is_own=is_own)


def _difference(request) -> str:
    added = {name: {"v": request[name]} for name in ("model", "temperature")}
    return json.dumps({"k": [*request], "c": added})
