"""A rehearsal and a stored conversation with the same messages are the same."""

from __future__ import annotations

import random

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.explain.captions import caption
from chatmemory.explain.receipts import receipt
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.reading import windows
from chatmemory.reading.history import history
from inspector.rooms.lessons.rehearsal import WrittenSummary, rehearse

HELLO = UserMessage("My order is A-1182.")
MESSAGES = [
    lambda n: UserMessage(f"question {n}"),
    lambda n: AiMessage(f"answer {n} " + "and so on " * (n % 7)),
    lambda n: AiMessage(None, (ToolExecutionRequest(f"{n}", "find", "{}"),)),
    lambda n: ToolExecutionResultMessage(f"{n}", "find", f"found {n}"),
    lambda n: SystemMessage(f"rule {n % 2}"),
]


def events(seed: int):
    """Return a policy and messages, with other limits between them."""
    chosen = random.Random(seed)
    policy = chosen.choice([MessageWindow, TokenWindow])
    limits = range(1, 9) if policy is MessageWindow else range(10, 90)

    def event(n: int):
        is_limit = chosen.random() < 0.15
        return policy(chosen.choice(limits)) if is_limit else chosen.choice(MESSAGES)(n)

    return policy(chosen.choice(limits)), [event(n) for n in range(25)]


@pytest.mark.parametrize("seed", range(8))
def test_it_does_what_a_conversation_does(db, seed):
    policy, happening = events(seed)
    services.create("m", policy)
    scenes = rehearse(policy, happening)
    for event, scene in zip(happening, scenes[1:], strict=True):
        if isinstance(event, (MessageWindow, TokenWindow)):
            services.change("m", policy=event)
        else:
            (change,) = services.add("m", [event])
            assert caption(scene.change) == caption(change)
            assert receipt(scene.change) == receipt(change)
        window = windows.window("m")
        assert [place.seq for place in scene.window.rows] == [row.seq for row in window.rows]
        assert [place.seq for place in scene.window.over_limit] == [
            row.seq for row in window.over_limit
        ]
        assert scene.window.load == window.load
        assert [line.message for line in scene.history] == [
            row.message for row in history("m").rows
        ]


def test_a_lowered_limit_does_not_hide_a_summary():
    said = [UserMessage(f"message {n}") for n in range(5)]
    happening = [*said, WrittenSummary("They talked.", keep_last=2, append_terms=0)]
    before, after = rehearse(MessageWindow(6), [*happening, MessageWindow(2)])[-2:]
    assert before.window.seqs == [6, 4, 5]
    assert after.window.seqs == [6, 5]


def test_a_policy_with_a_number_of_the_estimator_counts_in_whole_tokens():
    exact = TokenWindow(count_tokens(estimator_for("o3-mini"), HELLO) + 2, estimator="o3-mini")
    assert [scene.window.totals.count for scene in rehearse(exact, [HELLO])] == [0, 1]
