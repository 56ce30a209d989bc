"""A repair mends a stored window by one step, and one more step takes it back."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.exceptions import InvalidValue, NotRepairable, VersionConflict
from chatmemory.ledger.verification import verify
from chatmemory.linting import lint
from chatmemory.models import Memory

from .conversations import create_and_add

pytestmark = [pytest.mark.django_db, pytest.mark.database]

HI = UserMessage("hi")
BRIEF = SystemMessage("Be brief.")
PROVIDERS = ("openai", "openai_responses", "anthropic", "gemini")


def call(*ids: str) -> AiMessage:
    return AiMessage(None, [ToolExecutionRequest(id, "find", "{}") for id in ids])


def result(id: str) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "find", "found")


def window() -> list[int]:
    return [row.seq for row in queries.window("m").rows]


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
    before = window()
    plan = services.preview_repair("m", provider)
    if not plan.done:
        with pytest.raises(NotRepairable, match="nothing that a repair would change"):
            services.repair("m", provider)
        return
    made = services.repair("m", provider, reason="it was refused", actor="ada")
    mended = queries.window("m")
    left = lint(mended.messages, provider=provider)
    assert not [each for each in left if each.severity == "refused"]
    assert [row.message for row in mended.rows] == [message for _, message in plan.after]
    assert (made.kind, made.step) == ("repair", len(said) + 1)
    assert queries.memory("m").said_count == len(said), "a placeholder is no part of the history"
    assert verify("m") is None
    services.undo_repair("m", made.step)
    assert window() == before
    assert verify("m") is None


def test_what_came_after_a_repair_stays_when_it_is_undone():
    create_and_add("m", MessageWindow(20), [HI, result("1"), call("2"), HI])
    step = services.repair("m", "openai").step
    assert window() == [1, 3, 5, 4]
    services.add("m", [AiMessage("later")])
    services.undo_repair("m", step)
    assert window() == [1, 2, 3, 4, 6]
    with pytest.raises(NotRepairable):
        services.undo_repair("m", step)
    assert verify("m") is None


def test_a_repair_keeps_pins_and_ends_within_the_limit():
    create_and_add("m", MessageWindow(4), [HI, call("1"), HI, HI])
    services.pin("m", 1)
    step = services.repair("m", "openai").step
    assert queries.window("m").totals.count <= 4
    assert Memory.objects.get().refused_by & 1 == 0
    services.undo_repair("m", step)
    assert window() == [1, 2, 3, 4]
    assert verify("m") is None


def test_what_no_repair_mends_is_named():
    bad = AiMessage(None, [ToolExecutionRequest("1", "find", "[]")])
    create_and_add("m", MessageWindow(9), [HI, bad, HI])
    with pytest.raises(NotRepairable, match="no repair mends this: The arguments of tool call #2"):
        services.repair("m", "anthropic")
    assert Memory.objects.get().last_step == 3
    with pytest.raises(InvalidValue, match="unknown provider"):
        services.repair("m", "acme")
    with pytest.raises(InvalidValue, match="step 1 is no repair"):
        services.undo_repair("m", 1)
    with pytest.raises(VersionConflict):
        services.repair("m", "openai", expected_version=1)


def test_many_are_repaired_at_once_or_only_looked_at():
    for name in "abc":
        create_and_add(name, MessageWindow(9), [HI, call("1"), HI] if name < "c" else [HI])
    would = services.repair_all("abcd", "openai", dry_run=True)
    assert (list(would.done), list(would.refused)) == (["a", "b"], ["c"])
    assert Memory.objects.filter(last_step=4).count() == 0
    did = services.repair_all("abcd", "openai", actor="ada")
    assert did == would
    assert Memory.objects.filter(refused_by=0).count() == 3
