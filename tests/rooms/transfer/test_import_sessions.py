"""Sessions of agents are imported with their compactions: the history and the agent's windows."""

from __future__ import annotations

import json
import os
import time

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.formats import Loss, Reading, Transcript, read_transcripts
from chatmemory.formats.building import SessionBuilder
from chatmemory.ledger import slices
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import text_of
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.summaries import coverage_by_summary
from chatmemory.reading.windows import window
from inspector.conversation.state import conversation_state
from inspector.rooms.transfer.imports import import_all
from inspector.shell.state import ConversationQuery

from ...conversations import CALL, RESULT, window_of
from ...properties import examples

pytestmark = pytest.mark.django_db


def reading(session: Session) -> Reading:
    said = [
        message
        for position, message in enumerate(session.messages)
        if position not in session.summaries
    ]
    return Reading("codex", (Transcript("s", tuple(said), session=session),), ())


def import_session(session: Session, policy=None) -> services.Imported:
    (result,) = import_all(reading(session), policy)
    return result


def positions_in_memory(memory_id: str, at: int | None = None) -> list[int]:
    """The positions that memory holds after a step: each message is a step and a seq."""
    return [row.seq - 1 for row in window(memory_id, at).rows]


def built(*said: str) -> SessionBuilder:
    builder = SessionBuilder()
    for text in said:
        builder.add(UserMessage(text))
    return builder


def test_memory_equals_the_agents_window_at_each_step():
    builder = built("a", "b", "c")
    builder.compact(UserMessage("S1"), kept=[2], trigger="auto")
    builder.add(UserMessage("d"))
    builder.compact(UserMessage("S2"), kept=[2, 4], ahead=1)
    builder.add(UserMessage("e"))
    result = import_session(builder.session())
    assert (result.refused, result.messages, result.losses) == ("", 5, ())
    windows = [[0], [0, 1], [0, 1, 2], [3, 2], [3, 2, 4], [2, 5, 4], [2, 5, 4, 6]]
    assert [positions_in_memory("s", at) for at in range(1, 8)] == windows
    memory = Memory.objects.get(pk="s")
    assert (memory.policy, memory.said_count, memory.imported) == (None, 5, None)
    steps = Step.objects.order_by("n").values_list("kind", "note", "by_client")
    add, compact = ("add", "imported", True), "compact"
    assert [*steps] == [
        *[add] * 3,
        (compact, "auto", True),
        add,
        (compact, "imported", True),
        add,
    ]
    assert [*Message.objects.filter(origin="SYNTHETIC").values_list("text", flat=True)] == [
        "S1",
        "S2",
    ]
    assert verify("s") is None
    said = coverage_by_summary("s", [4, 6])
    assert said[4].runs == said[6].runs == (range(1, 3),)


def test_it_is_known_again_and_goes_on_as_any_memory():
    builder = built("a", "b", "c")
    builder.compact(UserMessage("S"), kept=[2])
    assert import_session(builder.session()).messages == 3
    assert import_session(builder.session()).already
    other = built("a", "b", "c")
    other.compact(UserMessage("S"), kept=[1])
    assert "already exists" in import_session(other.session()).refused
    services.change("s", policy=MessageWindow(10))
    services.compact("s", "T", keep_last=0)
    assert [row.text for row in window("s").rows] == ["T"]
    assert verify("s") is None


def test_a_session_without_compactions_is_seen_whole():
    result = import_session(built(*"abcd").session(), MessageWindow(2))
    assert result.losses == (
        Loss("session", "the given policy: agent sessions keep their recorded window"),
    )
    assert (positions_in_memory("s"), Memory.objects.get(pk="s").policy) == ([0, 1, 2, 3], None)
    assert verify("s") is None


def test_a_summary_of_unrecorded_messages_covers_nothing():
    builder = SessionBuilder()
    builder.compact(UserMessage("S"))
    builder.add(UserMessage("a"))
    assert import_session(builder.session()).refused == ""
    assert (positions_in_memory("s", 1), positions_in_memory("s")) == ([0], [0, 1])
    assert verify("s") is None


def test_what_memory_cannot_say_is_lost():
    builder = built("a")
    builder.add(CALL)
    builder.clear([builder.add(RESULT)])
    session = builder.session()
    back = Compaction(summary=3, covered=(0, 1, 2), window=(3,))
    again = Compaction(summary=4, covered=(3,), window=(0, 4))
    messages = (*session.messages, UserMessage("S"), UserMessage("T"))
    result = import_session(Session(messages, (back, again), cleared=session.cleared))
    assert [loss.what for loss in result.losses] == [
        "results that the agent's program had cleared, whose texts memory keeps (1)",
        "compactions that put messages back or in another order, which memory cannot follow (1)",
    ]
    assert (positions_in_memory("s", 4), positions_in_memory("s")) == ([3], [4])
    assert verify("s") is None


@pytest.mark.parametrize("slice", [3, 500])
def test_a_call_whose_result_comes_after_a_compaction_waits(monkeypatch, slice):
    monkeypatch.setattr("chatmemory.ledger.slices.SLICE", slice)
    builder = built("a", "b")
    call = builder.add(CALL)
    builder.compact(UserMessage("S"), kept=[call])
    assert import_session(builder.session()).refused == ""
    assert conversation_state("s", ConversationQuery()).waiting_call == 3
    assert verify("s") is None


@st.composite
def sessions(draw) -> Session:
    builder = SessionBuilder()
    for n in range(draw(st.integers(1, 25))):
        if n and not draw(st.integers(0, 3)):
            stays = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            kept = [place for place in builder.window if stays[place]]
            ahead = draw(st.integers(0, len(kept)))
            builder.compact(UserMessage(f"summary {n}"), kept, ahead)
        else:
            builder.add(UserMessage(f"message {n}"))
    return builder.session()


@examples(60)
@given(session=sessions(), data=st.data())
def test_every_step_of_any_session_equals_the_agents_window(session, data):
    Memory.objects.filter(pk="s").delete()
    result = import_session(session)
    assert (result.refused, result.losses) == ("", ())
    for at in range(1, len(session.messages) + 1):
        assert positions_in_memory("s", at) == window_of(session, at)
    assert verify("s") is None


def long_session() -> Session:
    """3,000 messages with a compaction after every 700, of which the last 50 stay."""
    builder = SessionBuilder()
    for n in range(3_000):
        if n and n % 700 == 0:
            builder.compact(UserMessage(f"summary {n} " * 20), kept=builder.window[-50:])
        builder.add(UserMessage(f"message {n} says something that takes some tokens"))
    return builder.session()


def test_a_long_session_takes_seconds_and_goes_on_where_it_was_interrupted(monkeypatch):
    session, add = long_session(), slices.add_recorded
    calls = []

    class Interrupted(Exception):
        pass

    def once(*arguments, **named):
        calls.append(arguments)
        if len(calls) > 2:
            raise Interrupted
        return add(*arguments, **named)

    begun = time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr("chatmemory.ledger.slices.add_recorded", once)
        with pytest.raises(Interrupted):
            import_session(session)
    assert Memory.objects.get(pk="s").imported == 1_000
    assert verify("s") is None
    result = import_session(session)
    assert (result.refused, result.messages) == ("", 3_000)
    assert time.monotonic() - begun < 30
    for each in session.compactions:
        for at in (each.summary, each.summary + 1, each.summary + 30):
            assert positions_in_memory("s", at) == window_of(session, at)
    assert positions_in_memory("s") == window_of(session, len(session.messages))
    assert verify("s") is None
    assert import_session(session).already


@pytest.mark.parametrize(("most", "is_refused"), [(600, True), (800, False)])
def test_a_window_that_is_too_large_is_refused_before_anything_is_stored(
    settings, most, is_refused
):
    settings.CHATMEMORY = {**settings.CHATMEMORY, "WINDOW_MESSAGES": most}
    assert ("WINDOW_MESSAGES" in import_session(long_session()).refused) == is_refused
    assert Memory.objects.exists() != is_refused


def test_the_real_sessions_are_what_the_agent_saw(request, capsys):
    """`make conformance` imports all sessions, `make test` the ones in tests/data."""
    is_whole = os.environ.get("CONFORMANCE") == "all"
    files = request.getfixturevalue("all_claude_sessions" if is_whole else "claude_sessions")
    call_command("import_transcripts", *files)
    told = capsys.readouterr().out
    compactions = 0
    for path in files:
        (transcript,) = read_transcripts(path.read_bytes()).transcripts
        session = transcript.session
        memory = Memory.objects.get(pk__contains=path.stem)
        assert f"1 conversation with {len(transcript.messages):,} messages imported" in told
        assert memory.said_count == len(transcript.messages)
        for each in session.compactions:
            for at in (each.summary, each.summary + 1):
                assert positions_in_memory(memory.pk, at) == window_of(session, at)
            found = window(memory.pk, each.summary + 1)
            assert [text_of(message) for message in found.messages] == [
                text_of(session.messages[place]) for place in each.window
            ]
            left = Stay.objects.filter(memory=memory, left_step=each.summary + 1)
            assert {stay.seq - 1 for stay in left} == set(each.covered)
        assert positions_in_memory(memory.pk) == window_of(session, len(session.messages))
        compactions += len(session.compactions)
    assert Memory.objects.count() == len(files)
    assert Step.objects.filter(kind="compact").count() == compactions
    assert compactions == (15 if is_whole else 4)
    call_command("verify_memories")


def test_the_import_page_does_the_same(operator_client, tmp_path):
    records = [
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Remember 1182"}},
        {
            "type": "user",
            "uuid": "2",
            "parentUuid": "1",
            "isCompactSummary": True,
            "message": {"role": "user", "content": "They said a number."},
        },
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(json.dumps({**each, "sessionId": "x"}) for each in records))
    with file.open("rb") as opened:
        answer = operator_client.post(
            "/import/", {"file": opened, "format": "auto", "kind": "message_window", "limit": 20}
        )
    assert answer.status_code == 200, answer.content.decode()
    assert [*Step.objects.order_by("n").values_list("kind", flat=True)] == ["add", "compact"]
