"""A full window first clears old tool results: stubs take their places, the history keeps them."""

from __future__ import annotations

from collections import Counter
from copy import copy

import pytest
from django.utils.html import escape
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    OversizedMessage,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.explain import captions, receipts
from chatmemory.explain.reasons import why_in, why_left
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.messages.message import MessageType, text_of
from chatmemory.models import Stay, Step
from chatmemory.reading import conversations, simulation, steps, windows
from chatmemory.reading.history import history
from chatmemory.recall.comparison import replay
from chatmemory.recall.history import history_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.clearing import STUB
from inspector.conversation.forecasts import change_of_policy
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import conversation_state
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.evidence_file.reads import evidence
from inspector.rooms.simulation.showing import replayed_window
from inspector.shell.state import ConversationQuery

from .properties import examples

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
    again = replayed_window(Step.objects.filter(memory=agent).latest("n"), 300)
    assert [row[:4] for row in again.rows] == [
        (row.seq, row.type, row.has_calls, row.tokens) for row in window.rows
    ]
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
    assert caption.event == "1 old tool result was cleared"
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
    big = ToolExecutionResultMessage("2", "find", FOUND * 9)
    with pytest.raises(OversizedMessage):
        memory.add(big)
    assert texts(memory.messages()) == ["1: "]
    assert clearings("m") == []
    said = [*memory.messages(), big, *turn(3)]
    memory.add(*turn(3))
    found = replay(history_of(said, estimator_for("gpt-4o")), memory.policy())
    assert found.departures.stubs.keys() == {2}
    assert found.departures.of_texts[6] == 6, "it was refused"
    assert found.prompt_sizes()[-1] == tokens_of(memory.messages())


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
    assert "1 old tool result was cleared" in html
    assert "Messages that left memory" not in html
    file = evidence(agent, step, Masker(Choice(words=("cleared",)))).data
    (shown,) = [each for each in file["steps"] if each["n"] == step]
    (result,) = [each for each in file["messages"] if each["seq"] == 3]
    ((entered, _, tokens, stub),) = result["stubs"]
    change = steps.step(agent, step).change
    assert (shown["left"], [each["seq"] for each in shown["cleared"]]) == ([], [3])
    assert "a placeholder took its place" in shown["cleared"][0]["why"]
    assert FOUND.strip() in result["text"], "history keeps it whole"
    assert (entered, tokens) == (step, change.gained)
    assert stub == STUB.replace("cleared", "[redacted word #A1]")
    assert html.count(STUB) == 2, "in memory, and in the panel"
    assert STUB not in operator_client.get(f"/c/{agent}/?at={step - 1}&msg=3").text


def test_a_stub_is_explained_by_what_had_no_room(agent, api, operator_client):
    (step, *_) = clearings(agent)
    change, arrived = steps.step(agent, step).change, history(agent).rows[8]
    needed = change.policy.load(change.before) + arrived.tokens
    words = [
        (
            f"At step {step} there was no room for #9: memory needed {needed} tokens, "
            "more than the limit of 300."
        ),
        "The policy clears all but the newest tool result before a message leaves memory.",
        f"The placeholder says “{STUB}”: {change.gained} tokens instead of {change.lost}.",
        "History keeps the result.",
    ]
    left = why_left(change, 3)
    assert left.detail == f"At step {step} a placeholder took its place; history keeps the result."
    why = api.get(f"/api/v1/memories/{agent}/messages/3/").data["why"]
    assert why["summary"] == f"It was cleared to make room. {' '.join(words)}"
    assert [each["label"] for each in why["receipt"]][1:3] == [
        "#3 Tool result, cleared",
        "#3, its placeholder",
    ]
    assert api.get(f"/api/v1/memories/{agent}/messages/15/").data["why"] is None
    panel = operator_client.get(f"/c/{agent}/?msg=3").text
    assert all(escape(each) in panel for each in words)
    assert "Why was the result of #3 cleared?" in panel
    services.redact(agent, 3)
    why = api.get(f"/api/v1/memories/{agent}/messages/3/").data["why"]
    assert f"The placeholder was erased by a redaction: {change.gained} tokens" in why["summary"]


def test_results_to_clear_next_are_named_in_advance(agent, operator_client):
    for n in clearings(agent):
        (cleared,) = steps.step(agent, n).change.arrived
        pane = ConversationPage(conversation_state(agent, ConversationQuery(at=n - 1))).memory_pane
        assert pane.next_to_clear == (cleared.seq,)
    (step, *_) = clearings(agent)
    before = windows.outline(agent, step - 1)
    more = 300 - before.load + 1
    assert why_in(before, 3).detail == f"Its result is cleared after {more} more tokens."
    html = operator_client.get(f"/c/{agent}/?at={step - 1}&open=sums").text
    assert "Result #3 is cleared when memory is full" in html
    assert "First to leave:" in operator_client.get(f"/c/{agent}/?at={step}&open=sums").text
    draft = {"role": "user", "text": "Where is it, and when will it come?", "at": step - 1}
    simulated = operator_client.post(f"/c/{agent}/simulate/", draft, follow=True)
    assert simulated.text.count("Tool result #3 would be cleared.") == 2, "caption and verdict"
    assert simulated.text.count(STUB) == 1
    url = f"{simulated.wsgi_request.get_full_path()}&msg=3"
    assert "Would the result of #3 be cleared?" in operator_client.get(url).text
    services.create("whole", policy=TokenWindow(900))
    services.add("whole", SAID)
    lowered = simulation.simulate("whole", [], CLEARS).outlook()
    change = change_of_policy(lowered)
    assert "may leave at the next add: #1 to #7" in change
    assert change.endswith(" Tool results #3, #7 and #11 would be cleared first.")


said_by_agents = st.lists(
    st.sampled_from(
        [
            SystemMessage("Be brief."),
            SystemMessage("Be kind."),
            UserMessage("Where is parcel A-1182?"),
            AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),)),
            ToolExecutionResultMessage("1", "find", "Parcel A-1182 was seen in Porto. " * 4),
            ToolExecutionResultMessage("1", "find", "Parcel B-7001 was not seen. " * 5),
            ToolExecutionResultMessage("1", "find", "none"),
            AiMessage("Parcel B-7001 is late, A-1182 is not."),
        ]
    ),
    max_size=24,
)
clearing_options = st.fixed_dictionaries(
    {
        "clear_tool_results": st.integers(1, 2),
        "always_keep_system_message_first": st.booleans(),
        "snap_to_user": st.booleans(),
        "oversized": st.sampled_from(["evict", "keep"]),
    }
)


@examples(80)
@given(said_by_agents, st.integers(40, 150), clearing_options)
@example(SAID, 300, {"clear_tool_results": 1})
def test_a_replay_clears_what_live_adds_clear(said, limit, options):
    said = list(map(copy, said))  # each is told from those equal to it
    memory = TokenWindowChatMemory("m", limit, **options)
    history = history_of(said, estimator_for("gpt-4o"))
    found = replay(history, memory.policy())
    places = {id(each): position for position, each in enumerate(said)}
    sums, lost, last = Counter(), 0, None
    for position, message in enumerate(said):
        before = memory.messages()
        if isinstance(message, AiMessage):
            sums += Counter(prompt=tokens_of(before))
            lost += len(own_facts(history, position) - facts_in(history, before, places))
            if last is not None:
                same = [a is b for a, b in zip(last, before, strict=False)]
                common = before[: [*same, False].index(False)]
                others = {*map(id, last)} - {*map(id, common)}
                again = [each for each in before if id(each) in others]
                sums += Counter(shared=token_sum(common), again=token_sum(again))
                sums += Counter(breaks=len(common) < len(last))
            last = before
        memory.add(message)
        after = memory.messages()
        assert found.prompt_sizes()[position] == tokens_of(after)
        whole = {places[id(each)] for each in after if id(each) in places}
        assert whole == {n for n in range(len(said)) if found.has(n, position + 1)}
        stubs = [n for n in range(len(said)) if found.has_stub(n, position + 1)]
        assert len(after) == len(whole) + len(stubs)
    sent = found.prompts
    assert +sums == +Counter(
        prompt=sent.tokens, shared=sent.reusable, again=sent.again, breaks=sent.breaks
    )
    assert found.count_of(IncidentKind.USED_UNSEEN) == lost


def token_sum(messages) -> int:
    return sum(count_tokens(estimator_for("gpt-4o"), each) for each in messages)


def tokens_of(messages) -> int:
    return token_sum(messages) + 3 if messages else 0


def own_facts(history, position: int) -> set[str]:
    """The facts that the assistant uses, of those that a user or a tool said before."""
    facts = history.read[position].facts
    said = [n for n in range(position) if history.entries[n].type is not MessageType.AI]
    known = set().union(*map(history.mentions, said))
    return (facts.own.keys() - facts.pairs) & known


def facts_in(history, messages, places) -> set[str]:
    """The facts of messages, of which stubs hold none."""
    whole = [places[id(each)] for each in messages if id(each) in places]
    return set().union(*map(history.mentions, whole))
