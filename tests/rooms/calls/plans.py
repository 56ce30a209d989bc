"""Hot paths: a call finds its conversation among many, and is listed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from inspector.rooms.calls.call import NewCall, SentRequest, Source
from inspector.rooms.calls.models import CallEnd, CallMessage, CallRun, ModelCall
from inspector.rooms.calls.writes import store

START = datetime(2026, 11, 26, tzinfo=UTC)
MODELS = (ModelCall, CallMessage, CallEnd, CallRun)
OWN_MESSAGES = 20  # of each conversation, which only calls sent
INDEXES = {
    "a call is stored": {"calls_by_key", "calls_by_answer", "calls_ends"},
    "calls of a conversation": {"calls_by_start"},
    "newest calls": {"calls_newest"},
    "search of what calls sent": {"texts"},
}


def fill(fleet: int) -> None:
    ids = [f"fleet-{n}" for n in range(fleet)]
    own = {"source": Source.RECORDER, "format": "openai_responses", "model": "m"}
    ModelCall.objects.bulk_create(
        ModelCall(
            memory_id=id, n=n, key=f"{id} {n}", answer_key=f"{id} {n}",
            at=START + timedelta(minutes=n), **own,
        )
        for id in ids
        for n in range(1, 9)
    )  # fmt: skip
    CallMessage.objects.bulk_create(
        CallMessage(memory_id=id, n=n, text=f"sent-{n}-{id}", frame="{}", tokens=1)
        for id in ids
        for n in range(1, OWN_MESSAGES + 1)
    )
    CallRun.objects.bulk_create(CallRun(memory_id=id, calls=8) for id in ids)
    CallEnd.objects.bulk_create(CallEnd(memory_id=id, digest=id, at=START) for id in ids)


def calls(browser, api) -> dict[str, object]:
    request = {"model": "m", "input": "Hello?", "previous_response_id": "resp_1"}
    call = NewCall("key", Source.RECORDER, "openai_responses", SentRequest(request), START)
    return {
        "a call is stored": partial(store, call),
        "calls of a conversation": partial(api.get, "/api/v1/memories/fleet-7/calls/"),
        "newest calls": partial(browser.get, "/calls/"),
        "search of what calls sent": partial(browser.get, "/?q=sent-7-fleet-7"),
    }
