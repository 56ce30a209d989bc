"""manage.py purge_memories deletes by age and label."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.models import AuditEntry, Memory

from ...conversations import create_and_add
from ...test_erasure import ids_left


@pytest.fixture
def old(db) -> None:
    for memory_id, days, labels in [
        ("new", 1, {}),
        ("old", 100, {}),
        ("old-test", 100, {"env": "test"}),
        ("new-test", 1, {"env": "test"}),
    ]:
        create_and_add(memory_id, MessageWindow(3), [UserMessage("hi")], labels)
        Memory.objects.filter(pk=memory_id).update(updated_at=timezone.now() - timedelta(days=days))


@pytest.mark.parametrize(
    ("options", "goes", "told"),
    [
        (["--older-than", "90d"], {"old", "old-test"}, "2 conversations: old, old-test"),
        (["--label", "env:test"], {"old-test", "new-test"}, "2 conversations: new-test, old-test"),
        (["--label", "env"], {"old-test", "new-test"}, "2 conversations"),
        (["--older-than", "90d", "--label", "env:test"], {"old-test"}, "old-test"),
        (["--older-than", "200d"], set(), ""),
    ],
)
def test_purging_by_age_and_label(old, capsys, options, goes, told):
    everyone = ids_left()
    call_command("purge_memories", *options, "--dry-run")
    assert ids_left() == everyone
    assert told in capsys.readouterr().out
    call_command("purge_memories", *options, "--yes")
    assert ids_left() == everyone - goes
    assert set(AuditEntry.objects.values_list("memory_id", flat=True)) == goes


@pytest.mark.parametrize(("options", "stays"), [([], {"branch"}), (["--with-branches"], set())])
def test_purging_shows_the_branches(old, capsys, options, stays):
    services.branch("old-test", "branch", [])
    call_command("purge_memories", "--label", "env:test", "--yes", *options)
    assert "1 branch of these conversations" in capsys.readouterr().out
    assert ids_left() == {"new", "old"} | stays


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "older-than"),
        (["--older-than", "soon"], "older-than"),
        (["--older-than", "-1d"], "older-than"),
        *(
            (["--begun", *options], f"use --begun without {options[0]}")
            for options in (
                ["--older-than", "1d"],
                ["--label", "env:test"],
                ["--with-branches"],
                ["--dry-run"],
            )
        ),
    ],
)
def test_purging_needs_a_valid_choice(old, options, why):
    with pytest.raises(CommandError, match=why):
        call_command("purge_memories", *options, "--yes")
    assert len(ids_left()) == 4


@pytest.mark.parametrize(
    ("name", "actor"),
    [("ada", "ada"), (None, "uid 123456789"), ("\udce4", "\\udce4"), ("n" * 300, "n" * 246)],
)
def test_a_purge_records_its_actor(old, monkeypatch, name, actor):
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    if name:
        monkeypatch.setenv("LOGNAME", name)
    monkeypatch.setattr("os.getuid", lambda: 123456789)  # which has no name
    call_command("purge_memories", "--label", "env:test", "--yes")
    assert {entry.actor for entry in AuditEntry.objects.all()} == {f"purge by {actor}"}


def test_purging_skips_conversations_that_change_meanwhile(old, monkeypatch):
    def answer(_: str) -> str:
        services.add("old", [UserMessage("I am back")])
        return "yes"

    monkeypatch.setattr("builtins.input", answer)
    call_command("purge_memories", "--older-than", "30d")
    assert ids_left() == {"new", "new-test", "old"}


def test_a_purge_without_confirmation_deletes_nothing(secrets, monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match="use --yes"):
        call_command("purge_memories", "--older-than", "0d")
    assert Memory.objects.exists()
