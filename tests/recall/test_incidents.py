"""Incidents: against naive replays, one by one, and against counts of real conversations."""

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
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import MessageType
from chatmemory.recall.again import ReadMessage, Recurrence
from chatmemory.recall.comparison import replay
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.folding import fold
from chatmemory.recall.history import history_of
from chatmemory.recall.incidents import (
    IncidentKind,
    MemoryTime,
    StepMessage,
    incident_to_dict,
    incident_words,
    incidents_of,
    incidents_under,
    replayed,
    with_limits,
)
from chatmemory.recall.kinds import kind_named
from chatmemory.recall.lexicon import MessageFacts
from chatmemory.recall.loads import Keeping
from chatmemory.recall.needs import REPEATS
from chatmemory.recall.sessions import OWN
from chatmemory.windows.eviction import Reason
from chatmemory.windows.window import Window
from tests.recall.test_loads import Halving

from ..properties import examples

USER_REPEATED, CALL_REPEATED = IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED
USER_SUPPLIED, USED_UNSEEN = IncidentKind.USER_SUPPLIED, IncidentKind.USED_UNSEEN

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
    """Return (kind, facts, again) of each incident, by looking into each window."""
    history = history_of(messages, estimator_for("gpt-4o"))
    facts = [{fact for fact in FACTS if fact in str(message)} for message in messages]
    window, found = Window(), set()
    by_user, by_tool = set(), set()
    for position, message in enumerate(messages):
        forgotten = facts[position] - {fact for entry in window for fact in facts[entry.key]}
        before = messages[position - 1] if position else None
        if isinstance(message, UserMessage):
            offered = facts[position - 1] if isinstance(before, AiMessage) else set()
            repeated = (forgotten & by_user) - offered
            supplied = (forgotten & by_tool) - by_user - offered
            kind, again = (USER_REPEATED, repeated) if repeated else (USER_SUPPLIED, supplied)
            found |= {(kind, frozenset(again), position + 1)} if again else set()
        elif isinstance(message, AiMessage):
            again = forgotten & (by_user | by_tool)
            found |= {(USED_UNSEEN, frozenset(again), position + 1)} if again else set()
        elif isinstance(message, ToolExecutionResultMessage):
            seen = {entry.key for entry in window}
            earlier = _earlier_results(messages[: position + 1])
            if earlier and not seen & set(earlier):
                again = forgotten & (by_user | by_tool)
                found.add((CALL_REPEATED, frozenset(again), position + 1))
        list(fold(window, [history.entries[position]], policy))
        by_user |= facts[position] if isinstance(message, UserMessage) else set()
        by_tool |= facts[position] if isinstance(message, ToolExecutionResultMessage) else set()
    return found


def _earlier_results(messages):
    """Return the results of earlier calls that equal the call which the last message answers."""
    awaited, answered, found = None, {}, []
    for position, message in enumerate(messages):
        if isinstance(message, AiMessage) and message.has_tool_execution_requests:
            awaited = message.tool_execution_requests[0].arguments
        elif isinstance(message, ToolExecutionResultMessage):
            found = answered.get(awaited, []) if awaited else []
            answered[awaited] = [*found, position]
            awaited = None
    return found


@given(conversations, policies)
@examples()
def test_they_are_what_was_forgotten_and_comes_up_again(messages, policy):
    found = incidents_under(policy, messages)
    told = {(e.kind, frozenset(fact.fact for fact in e.facts), e.again) for e in found}
    assert told == found_naively(messages, policy)
    assert [each.again for each in found] == sorted({each.again for each in found})


@given(conversations, policies)
@examples()
def test_they_are_the_lost_needs(messages, policy):
    history = history_of(messages, estimator_for("gpt-4o"))
    lost = Counter((each.position + 1, each.kind) for each in replay(history, policy).lost)
    found = Counter()
    for each in incidents_under(policy, messages):
        if each.kind is USED_UNSEEN:
            found[each.again, each.kind] += sum(not fact.is_pair for fact in each.facts)
        elif each.kind in REPEATS:
            found[each.again, each.kind] += 1
    assert +found == lost


def parts(incident):
    return [*incident.facts, *([incident.result] if incident.result else [])]


@given(conversations, policies)
@examples()
def test_at_its_limit_a_fact_is_held_and_above_it_stays_held(messages, policy):
    for each in incidents_under(policy, messages):
        for part in parts(each):
            keeping = part.keeping
            if keeping is None or keeping.limit is None:
                assert each.kind is USED_UNSEEN or keeping is not None
                continue
            for limit in range(keeping.limit, keeping.limit + 40):
                assert not _is_forgotten(part, each, messages, replace(policy, limit=limit)), limit
            if keeping.tried_every == 1 and keeping.limit > policy.least_limit:
                below = replace(policy, limit=keeping.limit - 1)
                assert _is_forgotten(part, each, messages, below)


def _is_forgotten(part, incident, messages, policy):
    history = history_of(messages, estimator_for("gpt-4o"))
    found = incidents_of(*replayed(messages, history, policy))
    return (part.name, incident.again) in {(p.name, e.again) for e in found for p in parts(e)}


# One by one


def call(name="get", id="1", **arguments):
    return AiMessage(None, [ToolExecutionRequest.of(name, arguments or {"a": 1}, id=id)])


def result(text, **options):
    return ToolExecutionResultMessage("1", "get", text, **options)


def incident_of(*messages, window=2, words=NO_WORDS):
    """The incident of the last message, or None."""
    found = incidents_under(MessageWindow(window), messages, words)
    return next((each for each in found if each.again == len(messages)), None)


SAID = UserMessage("My order is A-1182.")
FILLED = [AiMessage("Thank you."), UserMessage("Where is it?")]


def test_the_parts_of_an_incident():
    found = incident_of(SAID, *FILLED, AiMessage("Which order is it?"), UserMessage("A-1182!"))
    assert incident_to_dict(found) == {
        "kind": "user_repeated",
        "again": 5,
        "step": 5,
        "forced": True,
        "asked": 4,
        "facts": [
            {"fact": "A-1182", "said": 1, "left_step": 3, "cause": "CAPACITY", "limit": 4},
        ],
    }
    assert incident_words(found) == (
        "A-1182 had to be repeated by the user in #5; said in #1, left memory at step 3; "
        "a limit of 4 would have kept it"
    )


def test_the_verb_has_the_number_of_what_it_is_about():
    pair = UserMessage("Orders A-1182 and B-2293.")
    for again, said in (
        (UserMessage("A-1182"), "A-1182 was repeated by the user after it had left memory in"),
        (
            UserMessage("A-1182, B-2293"),
            "A-1182, B-2293 were repeated by the user after they had left memory in",
        ),
        (AiMessage("A-1182, B-2293"), "A-1182, B-2293 were used with no recorded mention in"),
    ):
        assert incident_words(incident_of(pair, *FILLED, UserMessage("z"), again)).startswith(said)
    results = [call("get"), result("A-1182 B-2293"), UserMessage("x"), UserMessage("y")]
    found = incident_of(*results, call("get"), result("A-1182 B-2293"))
    assert incident_words(found).startswith("get was called again in #6, with the same result")


@pytest.mark.parametrize(
    ("asked", "again", "is_forced", "is_asked"),
    [
        ("Which order is it?", "A-1182", True, True),
        ("Please provide the order.", "A-1182", True, True),
        ("I’ll need your order to go on.", "A-1182", True, True),
        ("Your order is on its way.", "A-1182", False, False),
        ("Anything else?", "A-1182", False, False),
        ("Anything else?", "As I said, A-1182.", True, False),
        ("Anything else?", "You have A-1182 on file.", True, False),
    ],
)
def test_it_is_forced_if_asked_for_by_name_or_if_the_user_says_so(
    asked, again, is_forced, is_asked
):
    found = incident_of(SAID, *FILLED, AiMessage(asked), UserMessage(again))
    assert (found.is_forced, found.asked) == (is_forced, 4 if is_asked else None)


def test_a_fact_is_named_by_its_key_too():
    profile = [call(), result('{"userId": "mia_3668"}')]
    said = [UserMessage("mia_3668 it is."), *FILLED, *FILLED]
    asking = AiMessage("May I have your user ID?")
    assert incident_of(*said, *profile, *FILLED, asking, UserMessage("mia_3668")).is_forced


def test_a_fact_that_the_assistant_just_offered_is_no_repetition():
    offer = AiMessage("Is it 1. A-1182 or 2. B-2293?")
    assert incident_of(SAID, *FILLED, offer, UserMessage("A-1182"), window=1) is None
    found = [call(), result("A-1182 and B-2293"), *FILLED]
    assert incident_of(*found, offer, UserMessage("B-2293"), window=1) is None


def test_a_user_supplies_what_only_a_tool_had_said():
    found = incident_of(call(), result("It is A-1182."), *FILLED, UserMessage("A-1182"))
    assert (found.kind, found.shown.said, found.is_forced) == (USER_SUPPLIED, 2, False)


@pytest.mark.parametrize(
    "message",
    [
        UserMessage("A-1182 " + "word " * 250),
        UserMessage("A-1182" + "\nline" * 10),
        UserMessage("A-1182", attributes={OWN: {"by_program": True}}),
    ],
)
def test_pasted_text_and_text_of_a_program_are_no_incidents(message):
    assert incident_of(SAID, *FILLED, AiMessage("Which order?"), message) is None


def test_a_date_alone_is_an_incident_of_the_assistant_only():
    said = [UserMessage("On May 20th, please."), *FILLED]
    assert incident_of(*said, AiMessage("Fine."), UserMessage("2024-05-20")) is None
    assert incident_of(*said, AiMessage("When?"), UserMessage("2024-05-20")).is_forced
    found = incident_of(*said, UserMessage("well"), AiMessage("It is for 2024-05-20."))
    assert (found.kind, found.fact) == (USED_UNSEEN, "2024-05-20")


def test_a_call_that_is_made_again():
    first = [call(a=1, b=2), result("It is A-1182."), UserMessage("x")]
    same = AiMessage(None, [ToolExecutionRequest("1", "get", '{"b":2,"a":1}')])
    found = incident_of(*first, same, result("It is A-1182."))
    assert (found.kind, found.result.said, found.result.left_step) == (CALL_REPEATED, 2, 3)
    assert (found.tool, found.is_same, found.result.keeping) == ("get", True, Keeping(4))
    assert [each.fact for each in found.facts] == ["A-1182"]
    assert incident_words(found) == (
        "get was called again in #5, with the same result: 11 tokens; 1 term such as A-1182; the "
        "result in #2, left memory at step 3; a limit of 4 would have kept it"
    )
    assert not incident_of(*first, same, result("It is B-2293.")).is_same
    assert incident_of(*first, call(a=1, b=3), result("It is A-1182.")) is None


def test_a_call_without_any_term_is_one_too():
    found = incident_of(call(), result("sunny"), UserMessage("x"), call(), result("cloudy"))
    assert (found.facts, found.is_same, found.fact) == ((), False, "get")


def test_a_call_whose_result_is_in_memory_is_no_incident():
    messages = [call(), result("It is A-1182."), UserMessage("x"), call(), result("It is A-1182.")]
    assert incident_of(*messages, window=5) is None


@pytest.mark.parametrize(
    "failed",
    [
        result("No A-1182.", is_error=True),
        result("Error: no A-1182"),
        result("Traceback (most recent call last):\n A-1182"),
        result('{"error": "no A-1182"}'),
    ],
)
def test_a_call_that_failed_may_be_made_again(failed):
    assert incident_of(call(), failed, UserMessage("x"), call(), result("It is A-1182.")) is None


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("get_user", True),
        ("list_all_airports", True),
        ("cancel_order", False),
        ("TodoWrite", False),
        ("Bash", False),
        ("git-status", False),
        ("calculate", False),
        ("own_tool", False),
    ],
)
def test_tools_that_write_think_or_look_at_a_state_may_be_called_again(name, is_one):
    def answer(text):
        return ToolExecutionResultMessage("1", name, text)

    messages = [call(name), answer("A-1182"), UserMessage("x"), call(name), answer("A-1182")]
    found = incident_of(*messages, words=Words(repeatable=("own_tool",)))
    assert (found is not None) is is_one


def test_a_pair_is_used_unseen():
    profile = [call(), result('{"membership": "gold"}'), UserMessage("x"), UserMessage("y")]
    found = incident_of(*profile, call("book", membership="gold"))
    assert [(each.fact, each.said) for each in found.facts] == [("membership=gold", 2)]
    told = UserMessage("My membership is gold.")
    assert incident_of(*profile, told, call("book", membership="gold")) is None


def test_phrases_of_reminders_and_requests_can_be_added():
    messages = (SAID, *FILLED, AiMessage("Anything else?"), UserMessage("Zoals gezegd: A-1182"))
    assert not incident_of(*messages).is_forced
    assert incident_of(*messages, words=Words(reminders=("zoals gezegd",))).is_forced
    messages = (SAID, *FILLED, AiMessage("Mag ik uw order weten."), UserMessage("A-1182"))
    assert not incident_of(*messages).is_forced
    assert incident_of(*messages, words=Words(requests=("mag ik",))).is_forced


def test_former_names_of_kinds_are_accepted():
    assert kind_named("said_again") is kind_named("user_repeated") is USER_REPEATED


# By the times of a ledger


def arriving(number, step, is_said=True):
    said = UserMessage("It is A-1182.")
    again = Recurrence(USER_REPEATED, ("A-1182",))
    none = frozenset()
    facts = MessageFacts({"A-1182": "A-1182"}, none, none, frozenset({"A-1182"}), MessageType.USER)
    return StepMessage(number, step, said, ReadMessage(facts, (again,)), is_said)


def test_no_limit_would_have_kept_what_was_cleared():
    arrivals = [arriving(1, 1), arriving(2, 3)]
    times = [MemoryTime(1, 1, 2, Reason.CLEARED), MemoryTime(2, 3)]
    history = history_of([each.message for each in arrivals], estimator_for("gpt-4o"))
    (found,) = with_limits(incidents_of(arrivals, times), history, TokenWindow(800))
    (fact,) = found.facts
    assert (fact.cause, fact.left_step, fact.keeping) == ("CLEARED", 2, Keeping(None))


def test_a_summary_that_mentions_the_fact_keeps_it():
    arrivals = [arriving(1, 1), arriving(2, 2, is_said=False), arriving(3, 3)]
    times = [MemoryTime(1, 1, 2, Reason.CAPACITY), MemoryTime(2, 2), MemoryTime(3, 3)]
    assert incidents_of(arrivals, times) == []


@pytest.mark.parametrize(
    ("limit", "counts", "forced", "conversations"),
    [
        (1_000, {"user_repeated": 7, "call_repeated": 1, "used_unseen": 736}, 2, 91),
        (2_000, {"user_repeated": 3, "used_unseen": 224}, 1, 59),
        (4_000, {"user_repeated": 1, "used_unseen": 26}, 0, 12),
    ],
)
def test_the_incidents_of_the_tau_bench_runs(airline_runs, limit, counts, forced, conversations):
    found = [airline_runs.incidents(n, limit) for n in range(len(airline_runs.messages))]
    assert Counter(each.kind for run in found for each in run) == counts
    assert sum(each.is_forced for run in found for each in run) == forced
    assert sum(map(bool, found)) == conversations
    assert all(part.keeping.limit > limit for run in found for each in run for part in parts(each))
