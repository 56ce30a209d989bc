"""Audit entries, and what a row says of itself, are compared with steps and with kept heads."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from chatmemory import UserMessage, services
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.chain_check import verify_head
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message
from tests.test_verification import EARLIER, heads


def test_heads_of_a_deleted_conversation_do_not_contradict_the_next_one_with_its_id(
    conversation, capsys, tmp_path
):
    kept = heads(capsys, tmp_path / "heads")
    services.delete(conversation)
    services.create(conversation, TokenWindow(100))
    for _ in range(3):  # fewer steps, as many, and more
        services.add(conversation, [UserMessage(f"again {n}") for n in range(15)])
        call_command("verify_memories", heads=kept)
    assert verify_head(conversation, 30, "00") is not None


def test_a_deletion_covers_the_last_step_only_with_its_head(conversation):
    head = bytes(Memory.objects.get().head).hex()
    AuditEntry.objects.create(
        at=EARLIER, action="delete", memory_id=conversation, detail={"steps": 30}
    )
    assert verify_head(conversation, 29, "00") is not None
    services.delete(conversation)
    assert verify_head(conversation, 30, head) is None
    assert verify_head(conversation, 30, "00") is not None
    assert verify_head(conversation, 31, head) is not None


def hide(memory_id: str) -> None:
    """Hide a conversation as somebody would who knows the tables."""
    Memory.objects.filter(pk=memory_id).update(deleted_at=EARLIER)


def test_a_conversation_that_is_hidden_by_hand_is_named_and_kept(conversation, capsys, tmp_path):
    services.create("other", MessageWindow(3))
    kept = heads(capsys, tmp_path / "heads")
    hide(conversation)
    for ids in ([], [conversation]):
        with pytest.raises(
            CommandError, match="differ from their replay; 1 kept head contradicted"
        ):
            call_command("verify_memories", *ids, heads=kept)
        assert "'m': the conversation: is hidden" in capsys.readouterr().err
    call_command("purge_memories", "--begun")
    assert "no audit entry tells of that: they are left" in capsys.readouterr().err
    assert Message.objects.count() == 30
    Memory.with_deleted.update(deleted_at=None)
    call_command("verify_memories", heads=kept)


def test_a_conversation_whose_deletion_was_interrupted_is_no_contradiction(
    conversation, capsys, tmp_path, monkeypatch
):
    kept = heads(capsys, tmp_path / "heads")
    monkeypatch.setattr("chatmemory.services.erasure.AT_ONCE", 3)
    services.delete(conversation)  # its rows stay until the test's transaction commits
    call_command("verify_memories", heads=kept)
    assert "0 conversations verified" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no conversation has"):
        call_command("verify_memories", conversation)
    assert services.finish_deletions() == [conversation]


def test_an_added_audit_entry_of_a_redaction_is_named(conversation):
    services.redact(conversation, 7, actor="ada")
    (entry,) = AuditEntry.objects.all()
    entry.pk = None
    entry.save()
    assert str(verify(conversation)) == "'m': step 31: has 2 audit entries"
    AuditEntry.objects.filter(pk=entry.pk).update(detail={"seq": 8, "step": 31})
    assert verify(conversation).row == "an audit entry of step 31"


def test_an_import_that_has_stored_another_number_is_named(conversation):
    Memory.objects.update(imported=29)
    assert "its import has stored 29" in verify(conversation).what
    Memory.objects.update(imported=30)
    assert verify(conversation) is None
    services.create("short", MessageWindow(3))
    services.change("short", labels={"team": "red"})
    Memory.objects.filter(pk="short").update(imported=5)
    assert "its import has stored 5" in verify("short").what
