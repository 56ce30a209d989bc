"""A call changes nothing of a conversation that it did not begin, and comes back as it was sent."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    UserMessage,
    services,
)
from chatmemory.exceptions import ChatMemoryError
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import CustomMessage, ToolExecutionResultMessage, text_of
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading import windows
from chatmemory.signals import vacuuming
from chatmemory.windows.clearing import STUB
from inspector.rooms.calls.beside import views_of
from inspector.rooms.calls.bodies import ANTHROPIC, OPENAI, made_of, messages_in
from inspector.rooms.calls.call import NewCall, ReceivedAnswer, SentRequest, Source
from inspector.rooms.calls.matching import matched
from inspector.rooms.calls.models import CallMessage, CallRun, KnownMessage, ModelCall
from inspector.rooms.calls.places import Reference, decoded, encoded
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.spelling import style_of, written
from inspector.rooms.calls.writes import store

from ...ledger.test_any_changes import changes, make, messages
from ...properties import examples

pytestmark = pytest.mark.database

START = datetime(2026, 11, 26, tzinfo=UTC)
ROWS = (Memory, Message, Stay, Step)


def rows_of(memory_id: str) -> list:
    """All columns of a conversation's rows: window, stays, counters, digests and history."""
    found = []
    for model in ROWS:
        key = "id" if model is Memory else "memory_id"
        names = [field.attname for field in model._meta.fields]
        rows = model.objects.filter(**{key: memory_id}).values_list(*names)
        found += sorted((model.__name__, *map(repr, row)) for row in rows)
    window = windows.window(memory_id)
    found.append([(row.seq, row.pinned, row.text) for row in window.in_order])
    return [*found, window.hidden, protocol.get_messages(memory_id)]


def a_call(
    n: int, sent: list, format: str = OPENAI, session: str = "m", note: str = "", **more
) -> NewCall:
    request = {"model": "gpt-4o", **made_of(sent, format), "temperature": 0.5}
    request |= {"note": note} if note else {}
    return NewCall(
        key=f"key {session} {n}",
        source=Source.RECORDER,
        format=format,
        sent=SentRequest(request, style_of(json.dumps(request).encode(), request)),
        at=START + timedelta(seconds=n),
        session=session,
        **more,
    )


picks = st.one_of(st.integers(0, 30), messages)
lists = st.lists(picks, min_size=1, max_size=8)


def sent_of(picked: list) -> list:
    """A list of messages of the window, of messages that left, and of others."""
    known = [*windows.window("m").messages]
    known += [each.message for each in windows.window("m").in_order]
    listed = [
        known[each % len(known)] if isinstance(each, int) else each
        for each in picked
        if (not isinstance(each, int) or known)
    ]
    return [each for each in listed if not isinstance(each, CustomMessage)]


@examples(120)
@given(st.lists(changes, max_size=8), st.lists(lists, min_size=1, max_size=4), st.booleans())
def test_whatever_is_sent_changes_nothing_of_a_memory_with_a_policy(
    db, made, lists_sent, as_blocks
):
    with transaction.atomic():
        _try(made, lists_sent, ANTHROPIC if as_blocks else OPENAI)
        transaction.set_rollback(True)


def _try(made: list, lists_sent: list, format: str) -> None:
    make(made)
    calls = [
        a_call(n, sent, format) for n, each in enumerate(lists_sent, 1) if (sent := sent_of(each))
    ]
    before = rows_of("m")
    for call in calls:
        assert store(call).is_new
    assert rows_of("m") == before
    assert verify("m") is None
    for n, call in enumerate(calls, 1):
        found = one_call("m", n)
        assert json.dumps(found.request) == json.dumps(dict(call.sent.request))
        assert found.body == written(call.sent.request, call.sent.style)
        assert found.row.is_exact
        assert found.row.step is None
        assert found.row.has_list is bool(messages_in(call.sent.request, format))
    for call in calls:
        assert not store(call).is_new
    assert rows_of("m") == before


def test_equal_texts_match_in_their_order():
    seqs = {"yes": [3, 7, 9], "a": [2], "b": [4], "c": [8]}
    assert matched(["a", "yes", "b"], seqs) == [2, 3, 4]
    assert matched(["yes", "c", "yes"], seqs) == [7, 8, 9]
    assert matched(["yes"], seqs) == [9]
    assert matched(["yes"] * 4, seqs) == [None, 3, 7, 9]
    assert matched(["no", "b", "a"], seqs) == [None, 4, 2]  # in another order than they were said


@given(st.lists(st.tuples(st.integers(-40, 40).filter(bool), st.none() | st.integers(0, 99))))
def test_a_list_is_read_as_it_was_written(pairs):
    references = [Reference(seq, tokens if seq > 0 else None) for seq, tokens in pairs]
    assert decoded(encoded(references)) == references


def test_a_long_list_is_short_as_text():
    listed = [Reference(1), *map(Reference, range(4, 900)), *map(Reference, range(-3, -200, -1))]
    assert encoded(listed) == "1,4-899,~3-199"


@pytest.fixture
def desk(db) -> str:
    """A conversation with a policy, in whose window two of four messages are left."""
    services.create("m", MessageWindow(2))
    services.add("m", [UserMessage("The code is A-1182."), AiMessage("Noted.")])
    services.add("m", [UserMessage("yes"), AiMessage("Fine.")])
    return "m"


SENT = [
    SystemMessage("Be brief. The desk is D-6630."),
    UserMessage("The code is A-1182."),
    UserMessage("yes"),
    UserMessage('And now?\nIt is "late".'),
]


def test_a_list_refers_to_the_history_and_keeps_the_rest(desk, operator_client, api):
    store(a_call(1, SENT))
    store(a_call(2, [*SENT, AiMessage("Later."), UserMessage("When?")]))
    first, second = ModelCall.objects.order_by("n")
    assert (first.places, second.places) == ("~1,1,3,~2", "~1,1,3,~2-4")
    assert CallMessage.objects.count() == 4  # each once
    answer = api.get("/api/v1/memories/m/calls/1/").json()
    assert (answer["messages"], answer["step"]) == ([None, 1, 3, None], None)
    assert answer["request"] == a_call(1, SENT).sent.request
    text = operator_client.get("/c/m/calls/1/").text
    assert text.count("not in this history") == 3  # two messages, and a line
    assert "Memory compared with the prompt" in text
    assert "at=None" not in text
    assert (second.shared, second.again, second.is_broken) == (
        sum(row.tokens for row in views_of(first)),
        0,
        False,
    )


def test_a_message_that_is_said_later_is_found_then(desk):
    store(a_call(1, [UserMessage("And now?")]))
    services.add("m", [UserMessage("And now?"), AiMessage("Now.")])
    store(a_call(2, [UserMessage("And now?"), AiMessage("Now."), UserMessage("Then?")]))
    assert [each.places for each in ModelCall.objects.order_by("n")] == ["~1", "5-6,~2"]


def test_a_cleared_result_is_the_result_that_it_stands_for(db):
    services.create("m", TokenWindow(80, clear_tool_results=1))
    for n in range(3):
        asked = AiMessage(None, (ToolExecutionRequest(f"c{n}", "find", "{}"),))
        services.add("m", [asked, ToolExecutionResultMessage(f"c{n}", "find", "found it " * 12)])
    window = protocol.get_messages("m")
    assert STUB in map(text_of, window)
    before = rows_of("m")
    store(a_call(1, window))
    assert rows_of("m") == before
    found = one_call("m", 1)
    assert "s" in found.row.places
    assert "~" not in found.row.places
    assert [text_of(row.message) for row in found.rows] == [*map(text_of, window)]


def test_a_redaction_reaches_the_lists_of_calls(desk):
    store(a_call(1, [*SENT, AiMessage("Where A-1182 is, I do not know.")]))
    store(a_call(2, [UserMessage("yes")]))
    services.redact("m", 1)
    one, other = one_call("m", 1), one_call("m", 2)
    kept = json.dumps(
        [one.request, one.row.difference, list(CallMessage.objects.values("text", "frame"))]
    )
    assert "1182" not in kept
    assert "D-6630" in kept  # of a message that is not redacted
    assert not one.row.is_exact
    assert other.row.is_exact
    assert not KnownMessage.objects.filter(seq=1).exists()
    store(a_call(3, SENT[2:]))
    assert one_call("m", 3).row.is_exact


def test_lists_go_with_their_calls_and_with_the_conversation(desk):
    store(a_call(1, SENT))
    store(a_call(2, SENT[:1]))
    ModelCall.objects.filter(n=1).update(at=START - timedelta(days=400))
    with override_settings(INSPECTOR={"CALL_DAYS": 10}):
        vacuuming.send(None)
    assert [row.n for row in CallMessage.objects.all()] == [1]
    assert one_call("m", 2).request == a_call(2, SENT[:1]).sent.request
    ModelCall.objects.update(at=START - timedelta(days=400))
    with override_settings(INSPECTOR={"CALL_DAYS": 10}):
        vacuuming.send(None)
    assert not CallMessage.objects.exists()
    assert not KnownMessage.objects.exists()
    store(a_call(3, SENT))
    assert one_call("m", 3).seqs == [None, 1, 3, None]
    services.delete("m")
    for model in (ModelCall, CallMessage, KnownMessage, CallRun):
        assert not model.objects.exists()


def test_archives_and_branches_have_nothing_of_a_list(desk, tmp_path, api):
    def archived() -> str:
        output = StringIO()
        call_command("export_conversations", "m", stdout=output)
        return output.getvalue()

    before = archived()
    store(a_call(1, SENT))
    assert archived() == before
    services.branch("m", "other", [UserMessage("hm")])
    assert not Message.objects.filter(text__contains="D-6630").exists()
    assert not ModelCall.objects.filter(memory_id="other").exists()
    found = api.get("/api/v1/memories/?search=D-6630").json()["results"]
    assert [each["id"] for each in found] == ["m"]
    store(a_call(1, SENT, session="other"))
    assert one_call("other", 1).seqs == [None, 1, 3, None]


# Who decides a memory


def test_a_conversation_that_calls_began_has_them_as_its_ledger(db):
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Ok"}}]}
    store(a_call(1, SENT[1:2], received=ReceivedAnswer(answer)))
    store(a_call(2, [SENT[1], AiMessage("Ok"), SENT[2]]))
    assert [each.places for each in ModelCall.objects.all()] == ["", ""]
    assert Memory.objects.get().said_count == 3
    services.redact("m", 1)
    services.change("m", labels={"team": "red"})
    store(a_call(3, [SENT[1], AiMessage("Ok"), SENT[2], AiMessage("Good"), SENT[3]]))
    assert ModelCall.objects.get(n=3).step is not None
    assert verify("m") is None


@pytest.mark.parametrize("by", ["list", "added", "policy", "pinned"])
def test_a_conversation_that_another_writer_joins_is_left_to_it(db, by):
    store(a_call(1, SENT[1:2]))
    if by == "list":
        protocol.update_messages("m", [UserMessage("Hello"), UserMessage("Are you there?")])
    else:
        services.change("m", policy=MessageWindow(9))
    if by == "added":
        services.add("m", [UserMessage("Hello")])
    if by == "pinned":
        services.pin("m", 1)
    before = rows_of("m")
    store(a_call(2, [SENT[1], SENT[2]]))
    assert rows_of("m") == before
    assert ModelCall.objects.get(n=2).places == "1,~1"
    assert one_call("m", 2).request == a_call(2, [SENT[1], SENT[2]]).sent.request


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_list_of_a_client_is_left_to_it(db, is_empty):
    if is_empty:
        services.create("m", None)
    else:
        protocol.update_messages("m", [UserMessage("Hello"), UserMessage("Hello")])
    before = rows_of("m")
    store(a_call(1, [UserMessage("Hello"), SENT[3]]))
    assert rows_of("m") == before
    assert ModelCall.objects.get().places == ("~1-2" if is_empty else "2,~1")


def test_a_redaction_while_a_call_is_stored_is_not_undone(desk, monkeypatch):
    from inspector.rooms.calls import writes

    real = writes._row

    def redacting(*arguments):
        row = real(*arguments)
        with suppress(ChatMemoryError):
            services.redact("m", 1)
        return row

    monkeypatch.setattr(writes, "_row", redacting)
    store(a_call(1, [SENT[1]]))
    assert one_call("m", 1).seqs == [None]
