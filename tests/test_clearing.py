"""A full window first clears old tool results: stubs take their places, the history keeps them."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    OversizedMessage,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.explain import captions, receipts
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import text_of
from chatmemory.models import Stay
from chatmemory.reading import conversations, simulation, steps, windows
from chatmemory.reading.history import history
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.clearing import STUB

FOUND = "The parcel A-1182 was seen. " * 12
CLEARS = TokenWindow(300, clear_tool_results=1)


def turn(n: int) -> list:
    return [
        UserMessage(f"Where is parcel {n}?"),
        AiMessage(None, (ToolExecutionRequest(str(n), "find", "{}"),)),
        ToolExecutionResultMessage(str(n), "find", f"{n}: {FOUND}"),
        AiMessage("In Porto."),
    ]


SAID = [message for n in (1, 2, 3, 4) for message in turn(n)]


@pytest.fixture
def agent(db) -> str:
    services.create("agent", policy=CLEARS)
    services.add("agent", SAID)
    assert verify("agent") is None
    return "agent"


def texts(messages) -> list[str]:
    results = [each for each in messages if isinstance(each, ToolExecutionResultMessage)]
    said = [text_of(each) for each in results]
    return [STUB if STUB in text else text[:3] for text in said]


def clearings(memory_id: str) -> list[int]:
    return [row.n for row in steps.steps(memory_id, size=99) if row.kind == "stub"]


def test_old_results_are_cleared_before_anything_leaves(agent):
    window = windows.window(agent)
    assert texts(window.messages) == [STUB, STUB, STUB, "4: "]
    assert [row.message for row in history(agent).rows] == SAID
    assert len(window.rows) == len(SAID)
    first, *_ = clearings(agent)
    assert texts(windows.window(agent, first - 1).messages)[0] == "1: "
    change = steps.step(agent, first).change
    assert (change.before.tokens, change.after.tokens) == (
        windows.window(agent, first - 1).totals.tokens,
        windows.window(agent, first).totals.tokens,
    )
    lines = receipts.receipt(change)
    assert lines[0].amount + sum(each.amount for each in lines[1:-1]) == lines[-1].amount
    caption = captions.caption(change)
    assert caption.event == "1 old tool result became a stub"
    assert f"{change.lost:,} tokens became {change.gained:,}." in caption.detail


def test_a_memory_of_the_library_clears_them_too(agent):
    memory = TokenWindowChatMemory("mine", 300, clear_tool_results=1)
    stored = TokenWindowChatMemory(
        "stored", 300, store=DjangoChatMemoryStore(), clear_tool_results=1
    )
    for each in (memory, stored):
        each.add(*SAID)
        assert each.messages() == windows.window(agent).messages
    assert verify("stored") is None


@pytest.mark.django_db
def test_an_add_that_is_refused_clears_nothing():
    memory = TokenWindowChatMemory(
        "m", 300, store=DjangoChatMemoryStore(), clear_tool_results=1, oversized="reject"
    )
    memory.add(*turn(1), *turn(2)[:2])
    with pytest.raises(OversizedMessage):
        memory.add(ToolExecutionResultMessage("2", "find", FOUND * 9))
    assert texts(memory.messages()) == ["1: "]
    assert clearings("m") == []


def test_adds_do_what_was_simulated(agent):
    more = turn(5)
    simulated = simulation.simulate(agent, more)
    services.add(agent, more)
    assert simulated.totals == windows.window(agent).totals
    assert [row.tokens for row in simulated.window.rows] == [
        row.tokens for row in windows.window(agent).rows
    ]


def test_a_client_may_list_a_stub(agent):
    seen, last = windows.window(agent).messages, conversations.memory(agent).last_seq
    protocol.update_messages(agent, [*seen, UserMessage("Thanks.")])
    assert conversations.memory(agent).last_seq == last + 1
    assert texts(windows.window(agent).messages) == [STUB, STUB, STUB, "4: "]
    assert verify(agent) is None


def test_a_redaction_erases_the_stub_and_an_alteration_is_found(agent):
    services.redact(agent, 3)
    assert STUB not in (Stay.objects.filter(seq=3).exclude(overrides=None).get().overrides or "")
    assert verify(agent) is None
    stub = Stay.objects.filter(memory=agent, seq=7).exclude(overrides=None).get()
    stub.overrides = (stub.overrides or "").replace("cleared", "altered")
    stub.save(update_fields=["overrides"])
    assert verify(agent) is not None


def test_pages_show_what_was_cleared(agent, operator_client):
    (step, *_) = clearings(agent)
    html = operator_client.get(f"/c/{agent}/?at={step}&msg=3").text
    assert "1 old tool result became a stub" in html
    assert "Just left" not in html
    assert html.count(STUB) == 1
    assert STUB not in operator_client.get(f"/c/{agent}/?at={step - 1}&msg=3").text
