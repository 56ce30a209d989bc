"""Comparisons, the lab and the incidents of a conversation never contradict each other."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given

from chatmemory import AiMessage, MessageWindow, SystemMessage, TokenWindow, UserMessage, services
from chatmemory.recall.needs import REPEATS
from inspector import demo
from inspector.rooms.simulation.comparison import comparison
from inspector.shell.advice import advice_on
from tests.conversations import create_and_add
from tests.inspector.markup import words
from tests.properties import examples
from tests.recall.test_incidents import conversations, installed_policies
from tests.rooms.evidence.test_incidents import incidents_anew, without_ignored

pytestmark = pytest.mark.django_db
NUMBERS = count()


def of_user_or_tool(found):
    return {(each.again, each.kind) for each in found if each.kind in REPEATS}


def compared(memory_id, *policies):
    """The incidents of a comparison under each policy, as numbers of messages and kinds."""
    found = comparison(memory_id, policies)
    numbers = found.history.numbers
    return [
        {(numbers[use.position], use.kind) for use in each.incidents} for each in found.policies
    ]


def advised(memory_id):
    """The advised policy, and what it repeats, beside today's."""
    advice = advice_on(memory_id).advice
    again = [each.repeated if each else 0 for each in (advice.pick, advice.today)]
    return advice.pick.policy if advice.pick else None, *again


@pytest.mark.needs("lab")
@given(conversations.filter(bool), installed_policies)
@examples(60)
def test_a_comparison_has_the_incidents_of_the_ledger(messages, policy):
    messages, memory_id = list(without_ignored(messages)), f"compared-{next(NUMBERS)}"
    create_and_add(memory_id, policy, messages)
    found = [each for each in incidents_anew(memory_id) if each.kind in REPEATS]
    (again,) = compared(memory_id, policy)
    assert again == of_user_or_tool(found)
    pick, then, now = advised(memory_id)
    assert then <= now
    if pick is not None and not pick.meters_only:
        assert sum(map(len, compared(memory_id, pick))) == then
    for each in found:
        parts = [each.result] if each.result else each.facts
        keeping = max((part.keeping for part in parts), key=lambda keeping: keeping.limit)
        limits = (keeping.limit, keeping.limit + 7, max(policy.least_limit, keeping.limit - 1))
        at, above, below = (compared(memory_id, replace(policy, limit=n))[0] for n in limits)
        assert (each.again, each.kind) not in at | above
        assert keeping.tried_every > 1 or (each.again, each.kind) in below


def test_the_needed_facts_are_the_same_under_every_limit():
    demo.load()
    policies = [TokenWindow(n) for n in (1, 800, 902)]
    found = comparison("order-7741", [*policies, None]).policies
    assert {each.recalls for each in found} == {6}, "four of the assistant, A-1182 and a call"
    assert {use.fact for use in found[1].lost} == {"A-1182", "SAUCER"}
    assert {use.fact for use in found[2].lost} == {"SAUCER"}


@pytest.mark.needs("lab")
def test_no_advice_for_the_tau_bench_runs_repeats_more_than_today(airline_runs):
    """Of every fourth run; `make conformance` tries all."""
    every = 1 if os.environ.get("CONFORMANCE") == "all" else 4
    failed_at = (1_000, 2_000, 4_000)
    for n, run in enumerate(range(0, len(airline_runs.messages), every)):
        failed = [
            tried for tried in failed_at if of_user_or_tool(airline_runs.incidents(run, tried))
        ]
        limit = failed_at[n % 2]
        create_and_add(f"run-{n}", TokenWindow(limit), airline_runs.messages[run])
        pick, then, now = advised(f"run-{n}")
        assert then <= now, run
        if pick in (TokenWindow(n) for n in failed):
            assert limit in failed, run
        assert limit not in failed or compared(f"run-{n}", TokenWindow(limit))[0]


@pytest.fixture
def page(operator_client):
    def get(query: str = "", memory_id: str = "order-7741") -> str:
        return words(operator_client.get(f"/c/{memory_id}/compare/{query}").content)

    return get


@pytest.mark.needs("lab")
def test_the_demo_has_too_few_facts_to_choose_by(page):
    demo.load()
    html = page()
    assert "Only 6 facts were needed again: too few to compare limits by facts." in html
    assert "Send everything" in html
    assert "902" not in html


def test_an_address_of_the_conversation_opens_at_its_step_with_the_phrase(page, operator_client):
    demo.load()
    query = "?policy=token_window:800&policy=token_window:902&at=46&find=A-1182"
    html = page(query)
    assert "A limit of 902 tokens still holds “A-1182” at #46." in html
    assert "Is the phrase still in memory? at #46 no yes, in #28" in " ".join(html.split())
    services.pin("order-7741", 50)
    services.add("order-7741", [UserMessage("Thank you.")])
    assert "Messages in memory after #59" in page("?at=60&find=A-1182")
    assert "Messages in memory after #58" in page("?at=59&find=A-1182"), "a pin says nothing"
    answer = operator_client.get("/c/order-7741/compare/?at=x&find=A-1182")
    assert (answer.status_code, "Step must be a whole" in answer.content.decode()) == (422, True)


def turns(n: int, order: str = "ORD-77"):
    """Turns of `n` codes each, and a last one that repeats the first order."""
    codes = " ".join(f"A-{100 + each}" for each in range(n))
    each = [UserMessage(f"My orders are {codes}."), AiMessage(codes)]
    return [*each, *each, *each, UserMessage(order)]


@pytest.mark.needs("lab")
def test_a_comparison_opens_with_the_advice_and_its_policy(page):
    create_and_add("m", MessageWindow(3), turns(10))
    card = advice_on("m")
    html = page(memory_id="m")
    assert card.title in html
    assert card.measured_on in html
    create_and_add("few", MessageWindow(120), turns(2))
    assert "too few to compare limits by facts." in page(memory_id="few")


def test_examples_are_ids_before_names_before_dates(operator_client):
    facts = "2024-05-21 00+1 ada@lovelace9.org 12.50 1999 20th A-1182"
    create_and_add("m", MessageWindow(1), [UserMessage(facts), UserMessage("Hm"), AiMessage(facts)])
    html = operator_client.get("/c/m/compare/").content.decode()
    lost = html.partition('id="lost"')[2].partition("</section>")[0]
    shown = words(f"<div>{lost.partition('>')[2]}</section></div>".encode())
    places = [shown.index(each) for each in ("A-1182", "ada@lovelace9.org", "2024-05-21")]
    assert places == sorted(places)
    assert "00+1" not in shown
    assert "more" not in shown, "the others are no facts"


def test_a_fact_of_a_system_message_that_was_replaced_could_stay_with_an_earlier_mention(db):
    said = [UserMessage("cd34"), SystemMessage("cd34"), SystemMessage("ab12"), UserMessage("cd34")]
    create_and_add("m", MessageWindow(1), said)
    (found,) = incidents_anew("m")
    assert (found.fact, found.shown.keeping.limit) == ("cd34", 2)
