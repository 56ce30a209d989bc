"""Verification names the first altered row."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from chatmemory import SystemMessage, UserMessage, services
from chatmemory.core.policies import TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message, Stay, Step

ALTERATIONS = {
    "a reason": (Stay, {"n": 3}, {"reason": "SET"}, "stay 3 of message #3"),
    "a step of leaving": (Stay, {"n": 3}, {"left_step": 20}, "stay 3 of message #3"),
    "a stay reopened": (
        Stay,
        {"n": 3},
        {"left_step": None, "reason": None},
        "stay 3 of message #3",
    ),
    "the tokens of a stay": (Stay, {"n": 30}, {"tokens": 1}, "stay 30 of message #30"),
    "a rank": (Stay, {"n": 30}, {"rank": 5}, "stay 30 of message #30"),
    "a text": (Message, {"seq": 7}, {"text": "never said"}, "message #7"),
    "the tokens of a message": (Message, {"seq": 7}, {"tokens": 0}, "message #7"),
    "a type": (Message, {"seq": 7}, {"type": "AI"}, "message #7"),
    "a total before": (Step, {"n": 25}, {"tokens_before": 1}, "step 25"),
    "a total after": (Step, {"n": 25}, {"count_after": 1}, "step 25"),
    "what history weighs": (Step, {"n": 25}, {"history_tokens": 1}, "step 25"),
    "a policy": (Step, {"n": 25}, {"policy_limit": 10}, "stay"),
    "a bound": (Step, {"n": 25}, {"oldest": 25}, "step 25"),
    "a counter": (Memory, {}, {"window_tokens": 1}, "the conversation's counters"),
    "the number of steps": (Memory, {}, {"last_step": 29}, "step 31"),
}


@pytest.fixture
def conversation(db) -> str:
    services.create("m", TokenWindow(100))
    services.add("m", [SystemMessage("Be brief.")])
    services.add("m", [UserMessage(f"message {n}") for n in range(29)])
    return "m"


def test_an_unaltered_conversation_matches_its_replay(conversation):
    assert verify(conversation) is None


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_row_is_named(conversation, name):
    model, keys, change, expected = ALTERATIONS[name]
    scope = {"pk": conversation} if model is Memory else {"memory_id": conversation, **keys}
    assert model.objects.filter(**scope).update(**change) == 1
    found = verify(conversation)
    assert found is not None
    assert expected in found.row or expected in found.what


@pytest.mark.parametrize(("model", "number"), [(Message, "seq"), (Stay, "n"), (Step, "n")])
def test_a_missing_row_is_named(conversation, model, number):
    model.objects.filter(memory_id=conversation, **{number: 12}).delete()
    assert "12" in verify(conversation).row


def test_an_unreadable_payload_is_named(conversation):
    Message.objects.filter(memory_id=conversation, seq=5).update(payload="{")
    assert "#5" in str(verify(conversation))


def test_the_command_exits_with_1_and_names_the_row(conversation, capsys):
    call_command("verify_memories")
    assert "1 conversations verified" in capsys.readouterr().out
    Stay.objects.filter(memory_id=conversation, n=3).update(reason="SET")
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("verify_memories", conversation)
    assert "'m': stay 3 of message #3" in capsys.readouterr().err


def test_the_command_refuses_an_unknown_id(db):
    with pytest.raises(CommandError, match="nobody"):
        call_command("verify_memories", "nobody")
