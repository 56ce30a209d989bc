"""Incidents: against naive replays, and against counts of real conversations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.estimators import estimator_for
from chatmemory.core.eviction import Reason
from chatmemory.core.loads import Keeping
from chatmemory.core.recall.facts import history_of
from chatmemory.core.recall.incidents import (
    IncidentKind,
    MemoryTime,
    StepMessage,
    incidents_of,
    incidents_under,
    replayed,
    with_limits,
)
from chatmemory.core.transitions import fold
from chatmemory.core.window import Window
from chatmemory.formats import read_transcripts

from ..properties import examples
from .test_loads import Halving

FACTS = ("ab12", "cd34", "ef56")
texts = st.sampled_from([*FACTS, "ab12 and cd34", "ab12?", "nothing"])
calls = st.builds(
    lambda text, other: AiMessage(
        text, [ToolExecutionRequest.of("find", {"a": 1, "b": other}, id="1")]
    ),
    st.sampled_from([None, "Is it ab12?"]),
    st.sampled_from(["x", "cd34"]),
)
results = st.builds(lambda text: ToolExecutionResultMessage("1", "find", text), texts)
said = st.one_of(
    st.builds(UserMessage, texts), st.builds(AiMessage, texts), calls, results, results
)
conversations = st.lists(st.one_of(said, said, said, st.builds(SystemMessage, texts)), max_size=14)
installed_policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 6)),
    st.builds(TokenWindow, st.integers(10, 60)),
    st.builds(lambda limit: MessageWindow(limit, snap_to_user=True), st.integers(1, 6)),
)
policies = st.one_of(installed_policies, st.builds(Halving, st.integers(2, 6)))


def found_naively(messages, policy):
    """Return (kind, fact, again) of each incident, by looking into each window."""
    history = history_of(messages, estimator_for("gpt-4o"))
    window, found, told = Window(), set(), set()
    for position, message in enumerate(messages):
        in_memory = {fact for entry in window for fact in history.facts[entry.key]}
        facts = history.facts[position]
        kind = {UserMessage: "said_again", AiMessage: "used"}.get(type(message))
        if isinstance(message, ToolExecutionResultMessage):
            kind = "fetched_again" if _is_repeated(messages[:position]) else None
        if kind:
            found |= {(kind, fact, position + 1) for fact in facts & told - in_memory}
        list(fold(window, [history.entries[position]], policy))
        if isinstance(message, (UserMessage, ToolExecutionResultMessage)):
            told |= facts
    return found


def _is_repeated(before):
    """Return whether the next message is the first result of the newest call, made before."""
    made = [
        (n, message.tool_execution_requests[0])
        for n, message in enumerate(before)
        if isinstance(message, AiMessage) and message.has_tool_execution_requests
    ]
    if not made:
        return False
    newest, request = made[-1]
    answered = any(isinstance(each, ToolExecutionResultMessage) for each in before[newest:])
    return not answered and request in [each for _, each in made[:-1]]


@given(conversations, policies)
@examples()
def test_they_are_the_forgotten_facts_that_come_up_again(messages, policy):
    found = incidents_under(policy, messages)
    assert {(each.kind, each.fact, each.again) for each in found} == found_naively(messages, policy)
    assert [each.step for each in found] == sorted(each.step for each in found)


@given(conversations, policies)
@examples()
def test_at_its_limit_an_incident_is_gone_and_above_it_stays_gone(messages, policy):
    for each in incidents_under(policy, messages):
        keeping = each.keeping
        if keeping is None or keeping.limit is None:
            assert each.kind is IncidentKind.USED or keeping is not None
            continue
        for limit in range(keeping.limit, keeping.limit + 40):
            assert not _is_among(each, messages, replace(policy, limit=limit)), limit
        if keeping.tried_every == 1 and keeping.limit > policy.least_limit:
            assert _is_among(each, messages, replace(policy, limit=keeping.limit - 1))


def _is_among(incident, messages, policy):
    history = history_of(messages, estimator_for("gpt-4o"))
    found = incidents_of(*replayed(messages, history, policy))
    return (incident.fact, incident.again) in {(each.fact, each.again) for each in found}


def test_the_parts_of_an_incident():
    messages = [
        UserMessage("My order is A-1182."),
        AiMessage("Thank you."),
        UserMessage("Where is it?"),
        AiMessage("Which order is it?"),
        UserMessage("A-1182!"),
    ]
    (found,) = incidents_under(MessageWindow(2), messages)
    assert found.kind == "said_again"
    assert (found.fact, found.said, found.left_step, found.cause) == ("A-1182", 1, 3, "CAPACITY")
    assert (found.asked, found.again, found.step) == (4, 5, 5)
    assert found.keeping == Keeping(4)


def test_a_result_that_is_fetched_again():
    def call(arguments):
        return AiMessage(None, [ToolExecutionRequest("1", "get", arguments)])

    result = ToolExecutionResultMessage("1", "get", "It is A-1182.")
    messages = [call('{"a": 1, "b": 2}'), result, UserMessage("x"), call('{"b":2,"a":1}'), result]
    (found,) = incidents_under(MessageWindow(2), messages)
    assert (found.kind, found.said, found.left_step, found.asked) == ("fetched_again", 2, 3, None)
    other = [*messages[:3], call('{"b":2,"a":2}'), result]
    assert incidents_under(MessageWindow(2), other) == []


def test_no_limit_would_have_kept_what_was_cleared():
    said = UserMessage("It is A-1182.")
    facts = frozenset({"A-1182"})
    arrivals = [StepMessage(1, 1, said, facts), StepMessage(2, 3, said, facts)]
    times = [MemoryTime(1, 1, 2, Reason.CLEARED), MemoryTime(2, 3)]
    history = history_of([said, said], estimator_for("gpt-4o"))
    (found,) = with_limits(incidents_of(arrivals, times), history, TokenWindow(800))
    assert (found.cause, found.left_step, found.keeping) == ("CLEARED", 2, Keeping(None))


def test_a_summary_that_mentions_the_fact_keeps_it():
    said, facts = UserMessage("It is A-1182."), frozenset({"A-1182"})
    arrivals = [
        StepMessage(1, 1, said, facts),
        StepMessage(2, 2, said, facts, is_said=False),
        StepMessage(3, 3, said, facts),
    ]
    times = [MemoryTime(1, 1, 2, Reason.CAPACITY), MemoryTime(2, 2), MemoryTime(3, 3)]
    assert incidents_of(arrivals, times) == []


@pytest.mark.parametrize(
    ("limit", "counts", "conversations"),
    [
        (1_000, {"said_again": 57, "fetched_again": 14, "used": 1_505}, 90),
        (2_000, {"said_again": 3, "used": 480}, 59),
        (4_000, {"said_again": 1, "used": 76}, 12),
    ],
)
def test_the_incidents_of_the_tau_bench_runs(data_file, limit, counts, conversations):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    runs = [run.messages for run in read_transcripts(content).transcripts]
    found = [incidents_under(TokenWindow(limit), messages) for messages in runs]
    assert Counter(each.kind for run in found for each in run) == counts
    assert sum(map(bool, found)) == conversations
    limits = [each.keeping.limit for run in found for each in run]
    assert min(limits) > limit
    assert max(limits) == 7_435
