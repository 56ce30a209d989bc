"""A simulation tells what the add then does, whatever the policy, its options and the pins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from django.db import transaction

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.eviction import Eviction, Head, Reason
from chatmemory.core.policies import KINDS

from .test_policy_kinds import FrugalWindow

BRIEF = SystemMessage("Be brief.")
CALL = AiMessage("looking", [ToolExecutionRequest("1", "look", "{}")])
RESULT = ToolExecutionResultMessage("1", "look", "found")
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
OPTIONS = [
    {},
    {"low_water": 0.5},
    {"snap_to_user": True},
    {"oversized": "keep"},
    {"oversized": "reject"},
    {"always_keep_system_message_first": True, "low_water": 0.4, "snap_to_user": True},
]
LIMITS = [MessageWindow(n) for n in (17, 13, 4)] + [TokenWindow(n) for n in (60, 200)]


@dataclass(frozen=True)
class GreedyWindow(FrugalWindow):
    """A rule that takes one message each time it is asked, and those above the limit."""

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
def memory_id(db, request) -> str:
    """A conversation that waits for an answer, with pins; its limit is as many as it holds."""
    said = [BRIEF, *TURN, *TURN, *TURN, *TURN[:3]]
    services.import_conversation("m", said, MessageWindow(len(said)))
    for seq in request.param:
        services.pin("m", seq)
    return "m"


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_adds_do_what_was_simulated(memory_id, options):
    """A property of tests/explain/test_receipts has other conversations."""
    services.change(memory_id, policy=MessageWindow(16, **options))
    for limit in (None, *LIMITS):
        policy = limit and type(limit)(limit.limit, **options)
        assert_adds_do_what_is_simulated(memory_id, policy)


@pytest.mark.parametrize("kind", OWN)
def test_of_kinds_with_a_rule_of_their_own_too(memory_id, kind):
    KINDS.register(kind.kind, kind)
    try:
        services.change(memory_id, policy=kind(500))
        for policy in (None, kind(120), kind(40), kind(40, snap_to_user=True)):
            assert_adds_do_what_is_simulated(memory_id, policy)
    finally:
        KINDS.unregister(kind.kind)


def assert_adds_do_what_is_simulated(memory_id, policy) -> None:
    for name, drafts in DRAFTS.items():
        simulated, added = simulation(memory_id, drafts, policy), real(memory_id, drafts, policy)
        assert simulated == added, (policy, name)


def simulation(memory_id, drafts, policy) -> object:
    """Return what a simulation tells, or how it is refused."""
    try:
        simulation = queries.simulate(memory_id, drafts, policy)
    except ChatMemoryError as error:
        return type(error), getattr(error, "index", None)
    return list(simulation.changes), *facts(simulation.window)


def real(memory_id, drafts, policy) -> object:
    """Return what the same add does, which is then undone."""
    savepoint = transaction.savepoint()
    try:
        changes = services.change_and_add(memory_id, drafts, policy=policy)
        return changes, *facts(queries.outline(memory_id))
    except ChatMemoryError as error:
        return type(error), getattr(error, "index", None)
    finally:
        transaction.savepoint_rollback(savepoint)


def facts(window) -> list[object]:
    return [window.totals, *(row._replace(entered_step=0) for row in window.rows)]
