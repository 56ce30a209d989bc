"""No page says "the oldest" of a message that left while an older one that could have left stayed:
a policy's own rule may have chosen it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from chatmemory import MessageWindow, Reason, services
from chatmemory.explain.captions import caption
from chatmemory.explain.reasons import why_in, why_left
from chatmemory.explain.receipts import receipt
from chatmemory.models import Stay
from chatmemory.reading import conversations, windows
from chatmemory.reading.simulation import simulate
from chatmemory.reading.steps import step
from chatmemory.services import ChangeResult
from chatmemory.windows.eviction import FOR_ROOM, Eviction, Head
from chatmemory.windows.policies import KINDS, Policy
from chatmemory.windows.window import Weighable

from ..conversations import create_and_add, numbered, users
from ..properties import examples
from .test_receipts import changes, conversation, policies


@dataclass(frozen=True)
class FirstAndLast(Policy):
    """The first message and the last ones: docs/extending.md invites to write such a kind."""

    kind: ClassVar[str] = "first_and_last"
    label: ClassVar[str] = "First and last"
    unit: ClassVar[str] = "messages"
    short_unit: ClassVar[str] = "msg"
    limit_name: ClassVar[str] = "max_messages"

    def cost(self, message: Weighable) -> int:
        return 1

    def evict(self, head: Head) -> Iterator[Eviction]:
        while self.is_exceeded_by(head.totals) and head.peek(1):
            yield from head.evict(1)


@dataclass(frozen=True)
class Told(FirstAndLast):
    kind: ClassVar[str] = "told"

    @property
    def choice(self) -> str:
        return "the oldest but the first"


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    for kind in (FirstAndLast, Told):
        KINDS.register(kind.kind, kind)
    yield
    for kind in (FirstAndLast, Told):
        KINDS.unregister(kind.kind)


def words_about(change: ChangeResult) -> str:
    """Return all words about a change: of its caption, its receipt and *Why?*."""
    why = [why_left(change, each.seq).summary for each in change.evicted]
    return "\n".join([caption(change).summary, *(line.label for line in receipt(change)), *why])


def stayed_although_older(n: int) -> set[int]:
    """Return the messages that could have left for room at a step and stayed, although they were in
    front of one that left.
    """
    stays = [
        stay
        for stay in Stay.objects.filter(memory="m", entered_step__lte=n).order_by("rank", "n")
        if stay.left_step is None
        or stay.left_step > n
        or (stay.left_step == n and stay.reason in FOR_ROOM)
    ]
    left = [stay.rank for stay in stays if stay.left_step == n and stay.reason == Reason.CAPACITY]
    in_front = [stay for stay in stays if stay.rank < max(left, default=0)]
    stayed = [stay for stay in in_front if not stay.pinned and stay.left_step != n]
    leads = [stay.seq for stay in stayed[:1] if stay.type == "SYSTEM"]
    return {stay.seq for stay in stayed} - {*leads}


own = st.one_of(st.builds(FirstAndLast, st.integers(1, 4)), st.builds(Told, st.integers(1, 4)))


@given(
    policy=st.one_of(policies, own),
    sequence=st.lists(
        st.one_of(changes, st.tuples(st.just("policy"), own)), min_size=1, max_size=6
    ),
)
@examples(40)
def test_what_is_called_the_oldest_is_the_oldest_that_could_leave(db, policy, sequence):
    with conversation(policy, sequence):
        for n in range(1, conversations.memory("m").last_step + 1):
            change = step("m", n).change
            oldest = re.findall(r"oldest(?! but)", words_about(change))
            event(f"oldest: {bool(oldest)}")
            assert not (oldest and stayed_although_older(n)), change


def test_a_rule_of_its_own_is_named_everywhere(db, operator_client, api):
    create_and_add("m", FirstAndLast(3), numbered(4))
    (change,) = [step("m", 4).change, *simulate("m", users("one more")).changes][:1]
    assert caption(change).summary.endswith("#2 was chosen by the policy’s own rule.")
    assert "#2 User leaves: chosen by the policy’s own rule" in [
        line.label for line in receipt(change)
    ]
    why = why_left(change, 2).detail
    assert why.endswith("#2 was chosen by the policy’s own rule.")
    page = " ".join(operator_client.get("/c/m/?at=4&msg=2").text.split())
    assert "oldest" not in page
    assert "chosen by the policy’s own rule" in page
    answer = api.get("/api/v1/memories/m/steps/4/").json()
    assert "oldest" not in str(answer)
    assert (
        why_in(windows.outline("m"), 1).detail
        == "The policy’s own rule chooses which message leaves."
    )


def test_a_rule_may_have_words(db):
    create_and_add("m", Told(3), numbered(4))
    (change,) = simulate("m", users("one more")).changes
    assert caption(step("m", 4).change).summary.endswith("#2 was the oldest but the first.")
    assert change.evicted[0].seq == 3


def test_a_rule_that_is_gone_is_not_guessed(db):
    create_and_add("m", FirstAndLast(3), numbered(4))
    KINDS.unregister(FirstAndLast.kind)
    try:
        assert "chosen by a rule that is not installed" in words_about(step("m", 4).change)
    finally:
        KINDS.register(FirstAndLast.kind, FirstAndLast)
    services.change("m", policy=MessageWindow(3))
    services.add("m", users("one more"))
    assert caption(step("m", 6).change).summary.endswith("#1 was the oldest.")
