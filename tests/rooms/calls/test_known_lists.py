"""A process that knows the newest lists stores the same as one that knows nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, UserMessage, services
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.codec import stored_json
from chatmemory.messages.message import text_of
from chatmemory.models import Message, Stay, Step
from inspector.rooms.calls import known, newest, reads, recording, repeated
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI, RESPONSES, made_of, messages_in
from inspector.rooms.calls.call import NewCall, ReceivedAnswer, SentRequest, Source
from inspector.rooms.calls.known import (
    NOT_RENDERED,
    keep_list,
    read_list,
    rendered_after,
    spell,
)
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.spelling import written
from inspector.rooms.calls.writes import store

from ...properties import examples
from .exchanges import exchanges

pytestmark = pytest.mark.database
START = datetime(2026, 11, 26, tzinfo=UTC)
KEPT = (known._NEWEST, recording._WINDOWS, reads._NEWEST, repeated._NEWEST)
FORMATS = {
    "/v1/chat/completions": OPENAI,
    "/v1/messages": ANTHROPIC,
    "/v1/responses": RESPONSES,
}


def forget_all() -> None:
    """As a process that has just begun."""
    for each in KEPT:
        each.__init__()


@pytest.fixture(autouse=True)
def _knows_nothing() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


words = st.sampled_from(["a", "b", "a longer text", "\N{SLOTH}"])
ids = st.sampled_from(["c1", "c2", "c3", "c4"])


def of_openai(role: str, text: str, id: str, name: str) -> list[dict]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": '{"n": 1}'}}
    match role:
        case "call":
            return [{"role": "assistant", "content": None, "tool_calls": [call]}]
        case "done":
            asked = {"role": "assistant", "content": text, "tool_calls": [call], "refusal": None}
            return [asked, {"role": "tool", "tool_call_id": id, "content": text}]
        case "tool":
            return [{"role": "tool", "tool_call_id": id, "content": text}]
    return [{"role": role, "content": text}]


def of_anthropic(role: str, text: str, id: str, name: str) -> list[dict]:
    call = {"type": "tool_use", "id": id, "name": name, "input": {"n": 1.0}}
    result = {"type": "tool_result", "tool_use_id": id, "content": text}
    match role:
        case "call":
            return [{"role": "assistant", "content": [{"type": "text", "text": text}, call]}]
        case "done":
            return [
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result, {"type": "text", "text": text}]},
            ]
        case "tool":
            return [{"role": "user", "content": [result]}]
        case "system":
            return [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
                    ],
                }
            ]
    return [{"role": role, "content": text}]


def of_responses(role: str, text: str, id: str, name: str) -> list[dict]:
    call = {"type": "function_call", "call_id": id, "name": name, "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": id, "output": text}
    match role:
        case "call":
            return [{"type": "reasoning", "id": f"rs_{id}", "summary": []}, call]
        case "done":
            return [call, output]
        case "tool":
            return [output]
    return [{"role": role, "content": text}]


MAKERS = {OPENAI: of_openai, ANTHROPIC: of_anthropic, RESPONSES: of_responses}
roles = st.sampled_from(["user", "assistant", "call", "done", "tool", "system"])
turns = st.tuples(roles, words, ids, st.sampled_from(["find", "book"]))
# How the next list differs from the one before: turns that it loses at its end, and new ones
changes = st.tuples(st.integers(0, 3), st.lists(turns, max_size=4))


def request_of(format: str, listed: list) -> dict:
    items = [item for each in listed for item in MAKERS[format](*each)]
    request = {"model": "m", (made_of((), format) and "x") or "stream": True}
    if format == RESPONSES:
        return {**request, "input": items}
    system = {"system": "Be brief."} if format == ANTHROPIC else {}
    return {**request, **system, "messages": items}


def lists_of(first: list, following: list) -> Iterator[list]:
    listed = first
    yield listed
    for lost, new in following:
        listed = [*listed[: max(0, len(listed) - lost)], *new]
        yield listed


@examples(200)
@given(
    st.sampled_from([*MAKERS]),
    st.lists(turns, min_size=4, max_size=14),
    st.lists(changes, max_size=4),
)
def test_a_list_is_read_in_part_as_it_is_as_a_whole(format, first, following):
    forget_all()
    for listed in lists_of(first, following):
        request = request_of(format, listed)
        whole = messages_in(request, format)
        read = read_list(request, format)
        assert (read.messages if read else None) == (whole or (read and ()))
        if read is None:
            continue
        assert [*map(stored_json, read.messages)] == [*map(stored_json, whole)]
        rendered = rendered_after(read.rendered, read.messages, format)
        if rendered is not None:
            made = made_of(read.messages, format)
            name = "input" if format == RESPONSES else "messages"
            assert json.dumps(rendered.items) == json.dumps(made.pop(name))
            assert rendered.spelled == [*map(spell, rendered.items)]
            assert rendered.beside == made
        keep_list(read, rendered or NOT_RENDERED)


def a_call(n: int, format: str, request: dict, answer: dict | None = None) -> NewCall:
    return NewCall(
        key=f"key {n}",
        source=Source.RECORDER,
        format=format,
        sent=SentRequest(request, style="compact"),
        received=ReceivedAnswer(answer),
        at=START + timedelta(seconds=n),
        session="m",
    )


def stored_rows() -> list:
    """What was stored, without times, salts and digests."""
    calls = ModelCall.objects.order_by("n").values_list(
        "n", "step", "answer_step", "shared", "again", "is_broken", "counted", "style"
    )
    stays = Stay.objects.order_by("n").values_list(
        "n", "seq", "entered_step", "left_step", "reason", "rank", "tokens"
    )
    said = Message.objects.order_by("seq").values_list("seq", "text", "frame", "origin")
    steps = Step.objects.order_by("n").values_list("n", "kind", "by_client", "count_after")
    return [*calls, *stays, *said, *steps]


@examples(24)
@given(
    st.sampled_from([*MAKERS]),
    st.lists(turns, min_size=2, max_size=8),
    st.lists(changes, min_size=1, max_size=4),
    st.booleans(),
)
def test_what_is_stored_does_not_depend_on_what_is_known(db, format, first, following, redacts):
    found = []
    for knows in (False, True):
        forget_all()
        if ModelCall.objects.exists():
            services.delete("m")
        requests = [request_of(format, each) for each in lists_of(first, following)]
        for n, request in enumerate(requests, 1):
            if not knows:
                forget_all()
            store(a_call(n, format, request))
            if redacts and n == 1:
                services.redact("m", 1)
        for n, request in enumerate(requests, 1):
            rebuilt = one_call("m", n)
            if rebuilt.row.is_exact:
                assert json.dumps(rebuilt.request) == json.dumps(request)
                assert rebuilt.body == written(request, "compact")
        assert verify("m") is None
        found.append(stored_rows())
    assert found[0] == found[1]


def test_real_runs_are_stored_alike(transactional_db, data_file):
    """Exchanges of real programs, whose answers come back in another spelling."""
    rows = [*exchanges(data_file("provider_exchanges.json"))][:60]
    found = []
    for knows in (False, True):
        forget_all()
        for n, row in enumerate(rows, 1):
            if not knows:
                forget_all()
            call = a_call(n, FORMATS[row["path"]], row["request"], row["answer"])
            stored = store(replace(call, session=row["cassette"]))
            rebuilt = one_call(stored.memory_id, stored.n)
            assert rebuilt.request == row["request"]
            assert rebuilt.response == row["answer"]
            assert rebuilt.body == written(call.sent.request, call.sent.style)
        calls = ModelCall.objects.order_by("at")
        found.append([*calls.values_list("memory_id", "n", "step", "answer_step", "counted")])
        for memory_id in {each.memory_id for each in calls}:
            services.delete(memory_id)
    assert found[0] == found[1]


def test_a_change_by_another_process_is_seen(db):
    """What this process knows is that of its own last call."""
    asked = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    store(a_call(1, OPENAI, {"model": "m", "messages": asked[:1]}))
    protocol.update_messages("m", [UserMessage("a"), AiMessage("by another")])
    before = Step.objects.count()
    store(a_call(2, OPENAI, {"model": "m", "messages": asked}))
    assert Step.objects.count() == before
    assert one_call("m", 2).seqs == [1, None]


def test_a_system_message_at_the_end_takes_no_place_of_another(db):
    """The add of one message to a memory would replace the other."""
    asked = [
        {"role": role, "content": role} for role in ("system", "user", "assistant", "developer")
    ]
    store(a_call(1, OPENAI, {"model": "m", "messages": asked[:3]}))
    store(a_call(2, OPENAI, {"model": "m", "messages": asked}))
    assert [text_of(row.message) for row in one_call("m", 2).rows] == [
        each["content"] for each in asked
    ]
    assert ModelCall.objects.get(n=2).is_broken is False


def test_a_deleted_conversation_is_not_known(db):
    asked = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    store(a_call(1, OPENAI, asked))
    services.delete("m")
    store(a_call(2, OPENAI, asked))
    assert [(each.n, each.step) for each in ModelCall.objects.all()] == [(1, 1)]


def test_what_is_known_is_bounded(transactional_db, monkeypatch):
    monkeypatch.setattr(newest, "NUMBER", 3)
    for n in range(1, 9):
        request = {"model": "m", "messages": [{"role": "user", "content": f"text {n}"}]}
        store(replace(a_call(n, OPENAI, request), session=f"m{n}"))
    assert [len(each.values()) for each in KEPT[:3]] == [3, 3, 3]
    monkeypatch.setattr(newest, "SIZE", 0)
    store(a_call(9, OPENAI, request))
    assert not any(each.values() for each in KEPT)
