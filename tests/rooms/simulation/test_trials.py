"""Trials keep the changes that a simulation tries; the conversation does not change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from chatmemory import MemoryNotFound, MessageWindow, UserMessage, services
from chatmemory.models import Memory
from inspector.rooms.simulation import trials
from inspector.rooms.simulation.models import Trial
from inspector.rooms.simulation.showing import simulated_state
from inspector.rooms.simulation.trials import WhatIf, trial
from inspector.shell.state import ConversationQuery
from tests.conversations import users

DRAFTS = (UserMessage("what if"), UserMessage("and then"))


def test_a_trial_is_read_as_it_was_kept_and_changes_nothing(memory_id, settings):
    before = Memory.objects.values().get()
    key = services.keep_trial(memory_id, DRAFTS, 2, actor="ada")
    assert trial(memory_id, key) == WhatIf(DRAFTS, 2, key)
    assert Memory.objects.values().get() == before
    settings.SECRET_KEY = "another one"  # the key does not tell the drafts
    assert services.keep_trial(memory_id, DRAFTS, 2) != key
    services.delete(memory_id)
    assert not Trial.objects.exists()
    with pytest.raises(MemoryNotFound):
        services.keep_trial("nobody", DRAFTS)


def all_are_so_old(days: int) -> None:
    Trial.objects.update(tried_at=timezone.now() - timedelta(days=days))


@pytest.mark.django_db(transaction=True)
def test_a_trial_is_forgotten_a_month_after_it_was_last_tried(memory_id):
    old, other = (services.keep_trial(memory_id, drafts) for drafts in (DRAFTS, DRAFTS[:1]))
    all_are_so_old(29)
    assert services.keep_trial(memory_id, DRAFTS) == old
    all_are_so_old(2)
    assert trial(memory_id, other)
    all_are_so_old(31)
    services.keep_trial(memory_id, DRAFTS[1:])
    assert trial(memory_id, old) is None
    all_are_so_old(31)
    call_command("vacuum")
    assert not Trial.objects.exists()


def test_the_newest_trials_of_each_person_are_kept(memory_id, monkeypatch):
    monkeypatch.setattr(trials, "KEPT_OF_A_PERSON", 3)
    theirs = services.keep_trial(memory_id, DRAFTS, actor="grace")
    mine = [services.keep_trial(memory_id, [UserMessage(word)], actor="ada") for word in "abcde"]
    kept = set(Trial.objects.values_list("key", flat=True))
    assert kept == {theirs, *mine[2:]}


def test_drafts_are_counted_down_where_messages_have_the_next_numbers(memory_id):
    services.add(memory_id, users(*"abcd"))
    trial = WhatIf((UserMessage("x"), UserMessage("y"), UserMessage("z")))
    state = simulated_state(memory_id, ConversationQuery(at=2), trial)
    assert [row.seq for row in state.window.rows] == [-1, -2, -3]
    assert [draft.seq for draft in state.simulation.drafts] == [-1, -2, -3]
    assert [change.seq for change in state.simulation.changes] == [-1, -2, -3]
    assert list(state.evicted) == [1, 2]
    assert all(change.is_of_draft for change in state.simulation.changes)


@pytest.mark.django_db(transaction=True)
def test_a_conversation_that_is_deleted_meanwhile_keeps_none():
    services.create("brief", MessageWindow(3))
    to_be_deleted = ["brief"]

    def delete_before(run, sql, *args):
        if to_be_deleted and "chatmemory_simulation_trial" in sql:
            services.delete(to_be_deleted.pop())
        return run(sql, *args)

    with connection.execute_wrapper(delete_before), pytest.raises(MemoryNotFound, match="brief"):
        services.keep_trial("brief", DRAFTS)


def test_a_limit_of_a_trial_is_no_change_where_it_is_in_force():
    assert WhatIf(limit=3).policy(MessageWindow(3)) is None
    assert WhatIf(limit=2).policy(MessageWindow(3)) == MessageWindow(2)
    assert WhatIf().policy(MessageWindow(3)) is None
    assert WhatIf(limit=2).policy(None) is None
