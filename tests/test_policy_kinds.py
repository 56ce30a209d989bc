"""A kind of policy from outside is stored, shown, simulated, verified and explained; when its
package is gone, the conversation can still be read.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import pytest
from django.db import transaction

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    MessageWindow,
    SystemMessage,
    UserMessage,
    policy_from_dict,
    policy_from_text,
    services,
)
from chatmemory.explain.reasons import why_in, why_left
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.reading import conversations, steps, windows
from chatmemory.reading.history import history
from chatmemory.reading.simulation import simulate
from chatmemory.windows.eviction import Eviction, Head, Reason
from chatmemory.windows.policies import KINDS, Policy
from chatmemory.windows.window import Weighable

from .conversations import BRIEF, CALL, RESULT, create_and_add, numbered


@dataclass(frozen=True)
class FrugalWindow(Policy):
    """A policy that counts tokens and a surcharge per message, and keeps the first message."""

    kind: ClassVar[str] = "frugal_window"
    label: ClassVar[str] = "Frugal window"
    unit: ClassVar[str] = "points"
    short_unit: ClassVar[str] = "pts"
    limit_name: ClassVar[str] = "max_points"

    _: KW_ONLY
    surcharge: int = 5

    def cost(self, message: Weighable) -> int:
        return message.tokens + self.surcharge

    def evict(self, head: Head) -> Iterator[Eviction]:
        while self.is_exceeded_by(head.totals) and head.peek(1):
            yield from head.evict(1)


POLICY = FrugalWindow(60, surcharge=7)
SAID = [
    UserMessage("my order is A-1182"),
    BRIEF,
    CALL,
    RESULT,
    *numbered(5),
]


@pytest.fixture
def installed():
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    yield
    if FrugalWindow.kind in KINDS:
        KINDS.unregister(FrugalWindow.kind)


@pytest.fixture
def conversation(installed, db) -> str:
    create_and_add("frugal", POLICY, SAID)
    return "frugal"


@pytest.fixture
def uninstalled(conversation) -> str:
    KINDS.unregister(FrugalWindow.kind)
    return conversation


def test_it_is_written_like_built_in_kinds(installed):
    assert policy_from_text("frugal_window:60") == FrugalWindow(60)
    assert policy_from_dict(POLICY.to_dict()) == POLICY
    assert POLICY.options == {"surcharge": 7}


def test_a_kind_as_earlier_versions_had_them_is_refused_with_what_to_write():
    class OldWindow(FrugalWindow):
        def load(self, count, tokens):
            return tokens

    with pytest.raises(TypeError, match=r"OldWindow defines load.*write cost\(message\) -> int"):
        KINDS.register("old_window", OldWindow)
    assert "old_window" not in KINDS


def test_it_decides_is_simulated_explained_and_verified(conversation):
    window = windows.window(conversation)
    assert (window.policy, window.messages[0]) == (POLICY, SAID[0])
    (change,) = simulate(conversation, [UserMessage("one more")]).changes
    assert change.evicted
    services.add(conversation, [UserMessage("one more")])
    step = steps.step(conversation, change.step)
    assert (step.change.evicted, step.change.after) == (change.evicted, change.after)
    why = why_left(step.change, change.evicted[0].seq)
    assert "73 points, more than the limit of 60" in why.summary
    load = windows.window(conversation).load
    assert why.receipt[-1].amount == load == conversations.memory(conversation).load <= 60
    assert verify(conversation) is None


def test_its_pages_show_its_name_and_unit(conversation, operator_client):
    page = operator_client.get(f"/c/{conversation}/?at=9&msg=5").content.decode()
    assert "Frugal window" in page
    assert "pts" in page
    overview = operator_client.get("/?policy=frugal_window&sort=fill").content.decode()
    assert "Frugal" in overview


def test_without_its_package_the_history_is_shown(uninstalled, operator_client, api):
    assert len(history(uninstalled).rows) == len(SAID)
    window, policy = windows.window(uninstalled), conversations.policy(uninstalled)
    assert (policy.kind, conversations.memory(uninstalled).load) == ("frugal_window", None)
    for same in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
        assert (same, same.to_dict()) == (policy, policy.to_dict())
    why = why_in(window, window.seqs[-1])
    assert why.cause == "Nothing has removed it."
    assert "frugal_window is not installed" in why.detail
    for path in ("", "?at=4", "?at=9&msg=5", "?find=A-1182", "?with=2"):
        assert operator_client.get(f"/c/{uninstalled}/{path}").status_code == 200, path
    assert operator_client.get("/?sort=fill").status_code == 200
    for path in ("", "messages/", "history/", "steps/", "steps/9/", "messages/5/"):
        assert api.get(f"/api/v1/memories/{uninstalled}/{path}").status_code == 200, path


def test_a_step_that_is_taken_without_its_package_leaves_no_load(uninstalled):
    services.change(uninstalled, labels={"team": "red"})
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    assert Memory.objects.get(pk=uninstalled).window_load is None
    assert verify(uninstalled) is None


def test_without_its_package_a_client_may_set_its_list_and_another_policy_can_be_set(uninstalled):
    protocol.update_messages(uninstalled, [UserMessage("mine")])
    protocol.delete_messages(uninstalled)
    services.change(uninstalled, policy=MessageWindow(3))
    services.add(uninstalled, numbered(4, "more"))
    assert len(windows.window(uninstalled).rows) == 3
    assert verify(uninstalled) is None


# Simulations


TURN = [UserMessage("look for it"), CALL, RESULT, AiMessage("found it")]
WORDS = UserMessage("many words " * 40)
DRAFTS = {
    "user": [UserMessage("hello")],
    "system": [SystemMessage("Be long.")],
    "same": [BRIEF, UserMessage("hello")],
    "result": [RESULT],
    "call": [CALL, RESULT, UserMessage("thanks")],
    "later": [UserMessage("a"), BRIEF, SystemMessage("b"), WORDS],
    "large": [UserMessage("a"), *TURN, WORDS, UserMessage("b")],
}


@dataclass(frozen=True)
class GreedyWindow(FrugalWindow):
    """A rule that removes one message each time it is asked, and then all above the limit."""

    kind: ClassVar[str] = "greedy"

    def evict(self, head: Head) -> Iterator[Eviction]:
        if victim := head.pop(1):
            yield Eviction(victim, Reason.CAPACITY)
        yield from super().evict(head)


@dataclass(frozen=True)
class DisorderlyWindow(FrugalWindow):
    """A rule that takes the second message before the first, and gives another reason."""

    kind: ClassVar[str] = "disorderly"

    def evict(self, head: Head) -> Iterator[Eviction]:
        while self.is_exceeded_by(head.totals) and (victim := head.pop(1)):
            yield Eviction(victim, Reason.TURN)
            if victim := head.pop():
                yield Eviction(victim, Reason.CAPACITY)


OWN = [FrugalWindow, GreedyWindow, DisorderlyWindow]


@pytest.fixture(params=[(), (4, 8)], ids=str)
def waiting(db, request) -> str:
    """A conversation that waits for an answer, with pins; its limit is as many as it holds."""
    said = [BRIEF, *TURN, *TURN, *TURN, *TURN[:3]]
    services.import_conversation("m", said, MessageWindow(len(said)))
    for seq in request.param:
        services.pin("m", seq)
    return "m"


@pytest.mark.parametrize("kind", OWN)
def test_adds_do_what_was_simulated_also_under_a_rule_of_its_own(waiting, kind):
    """tests/explain/test_receipts.py has the built-in kinds."""
    KINDS.register(kind.kind, kind)
    try:
        services.change(waiting, policy=kind(500))
        for policy in (None, kind(120), kind(40), kind(40, snap_to_user=True)):
            assert_adds_do_what_is_simulated(waiting, policy)
    finally:
        KINDS.unregister(kind.kind)


def assert_adds_do_what_is_simulated(memory_id, policy) -> None:
    for name, drafts in DRAFTS.items():
        simulated, added = simulation(memory_id, drafts, policy), real(memory_id, drafts, policy)
        assert simulated == added, (policy, name)


def simulation(memory_id, drafts, policy) -> object:
    """Return the result of a simulation, or its refusal."""
    try:
        simulation = simulate(memory_id, drafts, policy)
    except ChatMemoryError as error:
        return type(error), getattr(error, "index", None)
    return list(simulation.changes), *facts(simulation.window)


def real(memory_id, drafts, policy) -> object:
    """Return the result of the same add, which is then undone."""
    savepoint = transaction.savepoint()
    try:
        changes = services.change_and_add(memory_id, drafts, policy=policy)
        return changes, *facts(windows.outline(memory_id))
    except ChatMemoryError as error:
        return type(error), getattr(error, "index", None)
    finally:
        transaction.savepoint_rollback(savepoint)


def facts(window) -> list[object]:
    return [window.totals, *(row._replace(entered_step=0) for row in window.rows)]
