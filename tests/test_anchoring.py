"""Conversations that are older than the chain of digests get theirs later."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chatmemory import SystemMessage, UserMessage, services
from chatmemory.core.policies import MessageWindow
from chatmemory.ledger import anchoring
from chatmemory.ledger.heads import verify_head
from chatmemory.ledger.verification import verify
from chatmemory.management.commands import verify_memories
from chatmemory.models import Memory, Message, Step

EARLIER = datetime(2020, 1, 1, tzinfo=UTC)


def make_older(memory_id: str) -> None:
    """Remove what versions without digests did not write."""
    Message.objects.filter(memory=memory_id).update(salt=None, commitment=None)
    Step.objects.filter(memory=memory_id).update(digest=None, commitment=None)
    Memory.objects.filter(pk=memory_id).update(head=None, first_labels=None, labels_salt=None)


@pytest.fixture
def older(db) -> str:
    services.create("m", MessageWindow(5), {"team": "red"})
    services.add("m", [SystemMessage("Be brief."), *(UserMessage(f"{n}") for n in range(20))])
    services.change("m", labels={"team": "blue"})
    services.redact("m", 7)
    services.set_messages("m", [UserMessage("20"), UserMessage("3"), UserMessage("other")])
    make_older("m")
    return "m"


def write_more(memory_id: str) -> None:
    services.add(memory_id, [UserMessage("new")])
    services.redact(memory_id, 9)
    services.change(memory_id, labels={"team": "green"})


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(anchoring, "BATCH", 4)


class Killed(BaseException):
    """The end of a process, which no code expects."""


def killing(after: int):
    """Return a wrapper of queries that ends the process at a write."""
    writes = 0

    def execute(run, sql, *args):
        nonlocal writes
        writes += sql.lstrip().startswith("UPDATE")
        if writes > after:
            raise Killed
        return run(sql, *args)

    return connection.execute_wrapper(execute)


def test_anchoring_gives_digests_to_all_rows(older, small_batches):
    services.anchor(older)
    assert verify(older) is None
    assert not Step.objects.filter(digest=None).exists()
    assert Message.objects.filter(commitment=None).get().seq == 7
    write_more(older)
    assert verify(older) is None


def test_the_chain_vouches_for_what_was_written_before_it(older):
    assert alter_time(older, 5) is None
    services.anchor(older)
    assert alter_time(older, 5).row == "step 5"
    Message.objects.filter(seq=3).update(said_at=EARLIER)
    assert verify(older).row == "message #3"


def alter_time(memory_id: str, n: int):
    """Return what verification says of another time of a step, which is then restored."""
    steps = Step.objects.filter(memory=memory_id, n=n)
    at = steps.get().at
    steps.update(at=EARLIER)
    found = verify(memory_id)
    steps.update(at=at)
    return found


def test_what_was_written_before_the_anchor_stays_connected(older):
    """The older steps and the first ones with digests are two ends, which the anchor connects."""
    write_more(older)
    services.anchor(older)
    assert verify(older) is None
    assert alter_time(older, 5).row == "step 5"
    memory = Memory.objects.get()
    assert (memory.older_steps, memory.anchored_step) == (24, 27)
    Memory.objects.update(older_steps=23)
    assert verify(older) is not None
    Memory.objects.update(older_steps=24, anchored_at=EARLIER)
    assert "head" in verify(older).what


@pytest.mark.parametrize("after", range(0, 16, 3))
def test_an_interrupted_anchoring_continues(older, small_batches, after):
    with suppress(Killed), killing(after):
        services.anchor(older)
    assert verify(older) is None
    write_more(older)
    assert verify(older) is None
    services.anchor(older)
    assert verify(older) is None
    assert not Step.objects.filter(digest=None).exists()
    assert services.not_anchored() == []
    write_more(older)
    assert verify(older) is None


def test_no_words_can_be_guessed_from_what_anchoring_leaves_of_a_redacted_message(older):
    services.anchor(older)
    services.redact(older, 8)
    assert verify(older) is None
    assert list(Message.objects.filter(seq__in=(7, 8)).values_list("salt")) == [(None,), (None,)]


def test_an_empty_conversation_is_anchored(db):
    services.create("m", MessageWindow(5))
    make_older("m")
    services.anchor("m")
    assert verify("m") is None
    services.add("m", [UserMessage("hello")])
    assert verify("m") is None


def test_heads_that_were_kept_before_and_at_the_anchor_remain_valid(older):
    write_more(older)
    before = bytes(Memory.objects.get().head).hex()
    services.anchor(older)
    at_anchor = bytes(Memory.objects.get().head).hex()
    services.add(older, [UserMessage("later")])
    assert verify_head(older, 27, before) is None
    assert verify_head(older, 27, at_anchor) is None
    assert verify_head(older, 27, "00") is not None


def test_heads_that_were_kept_before_the_anchor_outlast_a_deletion(older):
    write_more(older)
    before = bytes(Memory.objects.get().head).hex()
    services.anchor(older)
    at_anchor = bytes(Memory.objects.get().head).hex()
    services.delete(older)
    assert verify_head(older, 27, before) is None
    assert verify_head(older, 27, at_anchor) is None
    assert verify_head(older, 27, "00") is not None


def test_the_commands_say_since_when_the_chain_vouches(older, capsys):
    services.create("new", MessageWindow(5))
    call_command("verify_memories")
    assert "1 of them are older than the chain of digests" in capsys.readouterr().out
    call_command("anchor_ledger")
    at = Memory.objects.get(pk=older).anchored_at
    said = capsys.readouterr().out
    assert f"'m': digests vouch for it since {at:%Y-%m-%d %H:%M} UTC (step 24)" in said
    assert "1 conversation anchored" in said
    call_command("verify_memories")
    assert f"'m': digests vouch for it since {at:%Y-%m-%d %H:%M} UTC" in capsys.readouterr().out
    call_command("anchor_ledger")
    assert "0 conversations anchored" in capsys.readouterr().out


def test_many_anchored_conversations_are_summed_up(older, capsys, monkeypatch):
    monkeypatch.setattr(verify_memories, "SHOWN", 0)
    at = services.anchor(older).anchored_at
    call_command("verify_memories")
    said = capsys.readouterr().out
    assert "1 of them are older than digests, which vouch for all of them" in said
    assert f"since {at:%Y-%m-%d %H:%M} UTC" in said
    assert "'m'" not in said


def test_a_conversation_that_differs_from_its_replay_is_not_anchored(older, capsys):
    Step.objects.filter(n=5).update(count_after=9)
    with pytest.raises(CommandError, match="1 conversation not anchored"):
        call_command("anchor_ledger")
    assert "'m': step 5" in capsys.readouterr().err
    assert services.not_anchored() == [older]
