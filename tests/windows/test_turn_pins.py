"""A turn window keeps a question with its answer, whatever is pinned."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, TurnWindow, UserMessage, services
from chatmemory.ledger.verification import verify
from chatmemory.reading import windows

from ..conversations import CALL, RESULT, create_and_add

pytestmark = pytest.mark.database


@pytest.fixture
def summarized(db) -> list:
    """A window whose one turn is a pinned summary, and its messages."""
    said = [UserMessage("q1"), AiMessage("a1"), UserMessage("q2"), AiMessage("a2")]
    create_and_add("m", TurnWindow(3), said)
    services.compact("m", "They said q1.", keep_last=1)
    services.change("m", policy=TurnWindow(1))
    return list(windows.window("m").messages)[:1]


def texts() -> list[str]:
    return [message.text for message in windows.window("m").messages]


@pytest.mark.parametrize("behind", [[], [CALL, RESULT], [UserMessage("q4"), AiMessage("a4")]])
def test_an_answer_leaves_with_its_question(summarized, behind):
    services.set_messages("m", [*summarized, UserMessage("q3"), *behind, AiMessage("a3")])
    assert texts() == ["They said q1."]
    assert verify("m") is None


def test_what_answers_a_pinned_question_stays(summarized):
    services.change("m", policy=TurnWindow(3))
    services.set_messages("m", [*summarized, UserMessage("q3"), AiMessage("a3")])
    services.pin("m", next(row.seq for row in windows.window("m").rows if row.text == "q3"))
    services.change("m", policy=TurnWindow(2))
    services.set_messages("m", [*windows.window("m").messages, UserMessage("q4"), AiMessage("a4")])
    assert texts()[:2] == ["They said q1.", "q3"]
    assert "a4" not in texts()
    assert verify("m") is None
