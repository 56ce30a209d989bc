"""A repair changes a stored window in one step, and one more step undoes it."""

from __future__ import annotations

from io import BytesIO

import pytest

from chatmemory import AiMessage, MessageWindow, services
from chatmemory.exceptions import InvalidValue, NotRepairable, VersionConflict
from chatmemory.ledger.verification import verify
from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import lint
from chatmemory.models import AuditEntry, Memory
from chatmemory.reading import conversations, windows
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines

from ...conversations import BRIEF, HI, call, create_and_add, result, seqs
from ..doctor.diagnosed import diagnosed

pytestmark = [pytest.mark.django_db, pytest.mark.database]

HELLO = AiMessage("On its way.")


@pytest.fixture(autouse=True)
def in_use(db):
    choose_providers("", ["openai", "openai_responses", "anthropic", "gemini"])


BROKEN = {
    "an orphan": [HI, result("1"), HI],
    "a dangling call": [HI, call("1", "2"), result("1"), HI],
    "a system message in the middle": [HI, BRIEF, AiMessage("hello"), HI],
    "a result apart": [HI, call("1"), HI, result("1"), HI],
    "two results": [HI, call("1"), result("1"), result("1"), HI],
    "all of them": [result("0"), HI, BRIEF, call("1"), call("2"), HI, result("1"), HI],
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_a_repaired_window_lints_clean_and_comes_back(said, provider):
    create_and_add("m", MessageWindow(20), said)
    before = seqs()
    plan = services.preview_repair("m", provider)
    if not plan.is_possible:
        why = "no repair can fix this" if plan.refused else "memory needs no repair"
        with pytest.raises(NotRepairable, match=why):
            services.repair("m", provider)
        return
    made = services.repair("m", provider, reason="it was refused", actor="ada")
    repaired = windows.window("m")
    left = lint(repaired.messages, provider=provider)
    assert not [each for each in left if each.severity == "refused"]
    assert [row.message for row in repaired.rows] == [message for _, message in plan.after]
    assert (made.kind, made.step) == ("repair", len(said) + 1)
    assert conversations.memory("m").said_count == len(said), (
        "a placeholder is no part of the history"
    )
    assert verify("m") is None
    services.undo_repair("m", made.step)
    assert seqs() == before
    assert verify("m") is None


def test_undoing_a_repair_is_refused_where_the_limit_has_no_room():
    create_and_add("m", MessageWindow(4), [HI, result("8"), HELLO, HI])
    services.pin("m", 2)
    step = services.repair("m", "anthropic").step
    services.add("m", [HELLO])
    with pytest.raises(NotRepairable, match="would hold 5 messages, more than the limit of 4"):
        services.undo_repair("m", step)
    services.change("m", policy=MessageWindow(5))
    services.undo_repair("m", step)
    window = windows.window("m")
    assert [(row.seq, row.pinned) for row in window.rows if row.pinned] == [(2, True)]
    assert len(window.rows) == 5
    assert verify("m") is None


def test_messages_after_a_repair_stay_when_it_is_undone():
    create_and_add("m", MessageWindow(20), [HI, result("1"), call("2"), HI])
    step = services.repair("m", "openai").step
    assert seqs() == [1, 3, 5, 4]
    services.add("m", [AiMessage("later")])
    services.undo_repair("m", step)
    assert seqs() == [1, 2, 3, 4, 6]
    with pytest.raises(NotRepairable):
        services.undo_repair("m", step)
    assert verify("m") is None


def test_a_repair_leaves_interrupted_calls_to_the_policy():
    create_and_add("m", MessageWindow(20), [HI, call("1", "2"), result("1"), HI])
    services.change("m", policy=MessageWindow(20, auto_recover_orphaned_tool_messages=True))
    assert not services.preview_repair("m", "openai").is_possible
    services.set_messages("m", [HI, result("0"), HI, call("1"), HI])
    assert windows.window("m").interrupted_seqs
    services.repair("m", "openai")
    assert windows.window("m").interrupted_seqs
    assert verify("m") is None
    services.add("m", [HI])
    assert not windows.window("m").interrupted
    assert verify("m") is None


def test_a_repair_keeps_pins_and_ends_within_the_limit():
    create_and_add("m", MessageWindow(4), [HI, call("1"), HI, HI])
    services.pin("m", 1)
    step = services.repair("m", "openai").step
    assert windows.window("m").totals.count <= 4
    assert "openai" not in diagnosed("m").refused_by
    services.undo_repair("m", step)
    assert seqs() == [1, 2, 3, 4]
    assert verify("m") is None


def test_a_placeholder_has_the_pin_of_its_call():
    create_and_add("m", MessageWindow(4), [HI, call("1"), HI])
    services.pin("m", 2)
    services.repair("m", "openai")
    services.add("m", [HI, HI, HI])
    assert [row.seq for row in windows.window("m").rows if row.pinned] == [2, 4]
    assert "openai" not in diagnosed("m").refused_by
    assert verify("m") is None


def test_problems_without_a_repair_are_named():
    create_and_add("m", MessageWindow(9), [HI, call("1", arguments="[]"), HI])
    with pytest.raises(NotRepairable, match="can fix this: The arguments of tool call #2"):
        services.repair("m", "anthropic")
    assert Memory.objects.get().last_step == 3
    with pytest.raises(InvalidValue, match="unknown provider"):
        services.repair("m", "acme")
    with pytest.raises(InvalidValue, match="step 1 is not a repair"):
        services.undo_repair("m", 1)
    with pytest.raises(VersionConflict):
        services.repair("m", "openai", expected_version=1)


def test_many_are_repaired_at_once_or_only_looked_at():
    for name in "abc":
        create_and_add(name, MessageWindow(9), [HI, call("1"), HI] if name < "c" else [HI])
    would = services.repair_all("abcd", "openai", dry_run=True)
    assert (list(would.done), list(would.refused)) == (["a", "b"], ["c"])
    assert Memory.objects.filter(last_step=4).count() == 0
    services.add("b", [HI])
    did = services.repair_all("ab", "openai", actor="ada", versions=would.versions)
    assert list(did.done) == ["a"]
    assert "version" in did.refused["b"]
    assert services.repair_all("b", "openai").done
    assert not any(diagnosed(name).refused_by for name in "abc")


def test_a_result_that_comes_after_a_repair_verifies_and_can_be_moved():
    create_and_add("m", MessageWindow(20), [HI, call("1"), HI])
    services.repair("m", "openai")
    services.add("m", [result("1")])
    assert verify("m") is None
    assert [each.rule for each in diagnosed("m").listed] == ["duplicate_result"]
    lines = "".join(f"{each}\n" for each in archive_lines(["m"]))
    Memory.objects.all().delete()
    AuditEntry.objects.all().delete()
    assert [each.refused for each in import_archive(BytesIO(lines.encode()))] == [""]
    assert verify("m") is None
    assert [each.rule for each in diagnosed("m").listed] == ["duplicate_result"]
