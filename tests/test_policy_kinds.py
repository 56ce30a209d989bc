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

from chatmemory import (
    AiMessage,
    MessageWindow,
    PolicyUnavailable,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    explain,
    policy_from_dict,
    policy_from_text,
    queries,
    services,
)
from chatmemory.core.eviction import Eviction, Head
from chatmemory.core.policies import KINDS, Policy
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import protocol


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

    def load(self, count: int, tokens: int) -> int:
        return tokens + count * self.surcharge

    def cost(self, tokens: int) -> int:
        return tokens + self.surcharge

    def evict(self, head: Head) -> Iterator[Eviction]:
        while self.is_exceeded_by(head.totals) and head.peek(1):
            yield from head.evict(1)


POLICY = FrugalWindow(60, surcharge=7)
CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
SAID = [
    UserMessage("my order is A-1182"),
    SystemMessage("Be brief."),
    CALL,
    ToolExecutionResultMessage("1", "find", "found"),
    *(UserMessage(f"message {n}") for n in range(5)),
]


@pytest.fixture
def installed():
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    yield
    if FrugalWindow.kind in KINDS:
        KINDS.unregister(FrugalWindow.kind)


@pytest.fixture
def conversation(installed, db) -> str:
    services.create("frugal", POLICY)
    services.add("frugal", SAID)
    return "frugal"


@pytest.fixture
def gone(conversation) -> str:
    KINDS.unregister(FrugalWindow.kind)
    return conversation


def test_it_is_written_like_built_in_kinds(installed):
    assert policy_from_text("frugal_window:60") == FrugalWindow(60)
    assert policy_from_dict(POLICY.to_dict()) == POLICY
    assert POLICY.options == {"surcharge": 7}


def test_it_decides_is_simulated_explained_and_verified(conversation):
    window = queries.window(conversation)
    assert (window.policy, window.messages[0]) == (POLICY, SAID[0])
    (change,) = queries.simulate(conversation, [UserMessage("one more")]).changes
    assert change.evicted
    services.add(conversation, [UserMessage("one more")])
    step = queries.step(conversation, change.step)
    assert (step.change.evicted, step.change.after) == (change.evicted, change.after)
    why = explain.why_left(step.change, change.evicted[0].seq)
    assert "60 points" in why.summary
    load = queries.window(conversation).load
    assert why.receipt[-1].amount == load == queries.memory(conversation).load <= 60
    assert verify(conversation) is None


def test_its_pages_show_its_name_and_unit(conversation, operator_client):
    page = operator_client.get(f"/c/{conversation}/?at=9&msg=5").content.decode()
    assert "Frugal window" in page
    assert "pts" in page
    overview = operator_client.get("/?policy=frugal_window&sort=fill").content.decode()
    assert "Frugal" in overview


def test_without_its_package_the_history_is_shown(gone, operator_client, api):
    assert len(queries.history(gone).rows) == len(SAID)
    window, policy = queries.window(gone), queries.policy(gone)
    assert (policy.kind, queries.memory(gone).load) == ("frugal_window", None)
    for same in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
        assert (same, same.to_dict()) == (policy, policy.to_dict())
    why = explain.why_in(window, window.seqs[-1])
    assert why.cause == "Nothing has pushed it out."
    assert "frugal_window is not installed" in why.detail
    for path in ("", "?at=4", "?at=9&msg=5", "?find=A-1182", "?with=2"):
        assert operator_client.get(f"/c/{gone}/{path}").status_code == 200, path
    assert operator_client.get("/?sort=fill").status_code == 200
    for path in ("", "messages/", "history/", "steps/", "steps/9/", "messages/5/"):
        assert api.get(f"/api/v1/memories/{gone}/{path}").status_code == 200, path


def test_without_its_package_nothing_is_decided(gone, api):
    for call in (services.add, services.set_messages, queries.simulate):
        with pytest.raises(PolicyUnavailable, match="install the package"):
            call(gone, [UserMessage("one more")])
    url = f"/api/v1/memories/{gone}/"
    message = {"messages": [{"role": "user", "content": "x"}], "format": "openai_chat"}
    assert api.post(f"{url}messages/", message).status_code == 409
    assert queries.memory(gone).last_step == len(SAID)
    assert verify(gone) is None


def test_a_step_that_is_taken_without_its_package_leaves_no_load(gone):
    services.change(gone, labels={"team": "red"})
    KINDS.register(FrugalWindow.kind, FrugalWindow)
    assert Memory.objects.get(pk=gone).window_load is None
    assert verify(gone) is None


def test_without_its_package_a_client_may_set_its_list_and_another_policy_can_be_set(gone):
    protocol.update_messages(gone, [UserMessage("mine")])
    protocol.delete_messages(gone)
    services.change(gone, policy=MessageWindow(3))
    services.add(gone, [UserMessage(f"more {n}") for n in range(4)])
    assert len(queries.window(gone).rows) == 3
    assert verify(gone) is None
