"""Each rule and each flag that there is, from its one place to every answer about it."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from mcp.server import MCPServer

from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage, services
from chatmemory.access.scopes import Scope
from chatmemory.explain.causes import short_reason
from chatmemory.flag import Flag, Shown
from chatmemory.flags import flags
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.lint import PROVIDERS, Rule
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example, lint, turns_by_provider
from chatmemory.windows.eviction import Reason
from inspector.rooms.agents.server import mcp_server
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.diagnosis import MARKS, diagnose, mark, refused_rules
from inspector.rooms.doctor.reads import IllFilter, doctor_page
from inspector.rooms.doctor.using import InUse
from inspector.shell.agents import Agent

from ...conversations import HI, call, create_and_add, result, users
from .diagnosed import diagnosed

pytestmark = [pytest.mark.django_db, pytest.mark.database]

LISTED = {name: rule for name, rule in RULES.items() if rule.is_listed}
MODELS = ("claude-opus-4-6", "o1-mini", "gemini-3-pro", "deepseek-reasoner", "gpt-4o")
OLDER = "claude-3-haiku"  # which takes few images


def use_of(rule: Rule) -> InUse:
    """Return the providers that mind a rule, with a model that refuses where it depends on that."""
    models = {}
    for name, law in rule.laws.items():
        refusing = [each for each in (*MODELS, OLDER) if law.severity_for_any(each) == "refused"]
        models[name] = tuple(refusing[:1]) if law.severity == "conditional" else ()
    return InUse(models)


USED = {name: use_of(rule) for name, rule in LISTED.items()}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_past_has_the_marks_of_the_doctor(rule):
    messages = example(rule.bad, rule.example_provider)
    numbers = range(1, len(messages) + 1)
    found = diagnose(messages, numbers, for_answers=True)
    marks = {each for problem in found.problems for each in problem.marks()}
    turns = turns_by_provider(messages, PROVIDERS, numbers)
    refused = {(name, each) for name in PROVIDERS for each in refused_rules(turns[name], name)}
    assert {mark(*each, "refused") for each in refused} == {
        each for each in marks if each.endswith(MARKS["refused"])
    }


def words_of(html: str) -> str:
    text = re.sub(r"<[^>]*>", " ", html).replace("&#x27;", "'").replace("&quot;", '"')
    return " ".join(text.replace("&gt;", ">").replace("&lt;", "<").split())


def store(rule: str) -> None:
    """Store a window that breaks a rule; something has left it before."""
    services.create("m", None)
    protocol.update_messages("m", [UserMessage("earlier")])
    protocol.update_messages("m", example(RULES[rule].bad, RULES[rule].example_provider))


@cache
def agents_server() -> MCPServer[Any]:
    return mcp_server(Agent("http://site", Scope()))


def answer_to_agents(rule: str) -> dict:
    answer = asyncio.run(agents_server().call_tool("doctor", {"rule": rule}))
    return answer.structured_content


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.django_db(transaction=True)
def test_a_window_that_breaks_a_rule_is_listed_with_words_and_all_answers_agree(
    name, operator_client
):
    rule, use = LISTED[name], USED[name]
    choose_providers("", use.written())
    store(name)
    diagnosis = diagnosed("m")
    minding = {
        provider: law.severity_for(next(iter(use.models[provider]), None))
        for provider, law in rule.laws.items()
    }
    if not {"refused", "mishandled"} & {*minding.values()} and rule.laws:
        assert not [each for each in diagnosis.listed if each.rule == name]
        return
    problem = next(each for each in diagnosis.listed if each.rule == name)
    refusing = tuple(each for each, severity in minding.items() if severity == "refused")
    assert sorted(problem.refused_by) == sorted(refusing)
    order = example(rule.bad, rule.example_provider)
    refused = [
        provider
        for provider, models in use.models.items()
        if any(
            each.severity == "refused" and not each.is_pending
            for each in lint(order, provider=provider, model=next(iter(models), None))
            if RULES[each.rule].is_listed
        )
    ]
    assert sorted(diagnosis.refused_by) == sorted(refused)
    began = words.how_it_began(problem, diagnosis.step)
    # the causes, and the list of one
    page = words_of(operator_client.get("/doctor/").content.decode())
    assert rule.title.lower() in page.lower()
    assert began.lower() in page.lower()
    page = words_of(operator_client.get(f"/doctor/?rule={name}").content.decode())
    assert rule.title.lower() in page.lower()
    assert began in page
    # header and panel
    page = operator_client.get("/c/m/?open=providers").content.decode()
    names = words.provider_names(diagnosis.refused_by)
    assert (f"rejected by {names}" in page) == bool(refused)
    for answer in words.answers(diagnosis, use):
        assert f"{answer.provider} {answer.answer}" in words_of(page)
        is_refused = answer.provider in [PROVIDERS[each] for each in refused]
        assert answer.answer.startswith("No.") == is_refused
    # the API and the agents' tool
    (row,) = operator_client.get(f"/api/v1/doctor/?rule={name}").json()["results"]
    (told,) = answer_to_agents(name)["conversations"]
    for each in (row, told):
        assert sorted(each["refused_by"]) == sorted(refused)
        assert [each["rule"] for each in each["problems"]] == [p.rule for p in diagnosis.listed]
        (same,) = (each for each in each["problems"] if each["rule"] == name)
        assert (same["since"], same["seq"]) == (problem.since, problem.seq)
    # the command
    out = StringIO()
    if refused:
        with pytest.raises(SystemExit):
            call_command("doctor", "--json", stdout=out)
    else:
        call_command("doctor", "--json", stdout=out)
    *lines, _ = (json.loads(line) for line in out.getvalue().splitlines())
    told = {(each["provider"], each["severity"]) for each in lines if each["rule"] == name}
    alarms = {each for each in minding.items() if each[1] in ("refused", "mishandled")}
    assert told == alarms
    assert all(began in each["message"] for each in lines if each["rule"] == name)


@pytest.mark.parametrize("name", sorted(RULES.keys() - LISTED))
def test_a_rule_by_which_nothing_is_listed_is_in_the_panel_alone(name, operator_client):
    use = use_of(RULES[name])
    choose_providers("", use.written())
    store(name)
    assert name not in {each.rule for each in diagnosed("m").listed}
    page = words_of(operator_client.get("/c/m/?open=providers").content.decode()).lower()
    problems = [each for each in diagnosed("m").problems if each.rule == name]
    alarms = [each for each in problems if each.refused_by or each.mishandled_by]
    assert not alarms or words.problem_title(name).lower() in page
    assert not doctor_page(IllFilter(name if name in LISTED else "")).rows


# Flags

LONG = "a parcel that is late, and nobody knows where it is " * 25
FLAGGED = {
    "user_repeated": lambda: create_and_add(
        "m", MessageWindow(2), users("My order is A-1182.", "a", "b", "A-1182, as I said.")
    ),
    "compacted_with_loss": lambda: (
        create_and_add("m", MessageWindow(9), users("My order is A-1182.", "b")),
        services.compact("m", "They said b.", keep_last=0),
        services.add("m", [UserMessage("Send A-1182."), AiMessage("A-1182 is sent.")]),
    ),
    "user_supplied": lambda: create_and_add(
        "m",
        MessageWindow(3),
        [HI, call("1"), result("1", "The order is A-1182."), *users("a", "b", "It is A-1182.")],
    ),
    "call_repeated": lambda: create_and_add(
        "m",
        MessageWindow(3),
        [HI, call("1"), result("1"), *users("a", "b"), call("2"), result("2")],
    ),
    "costly": lambda: (
        choose_providers("", ["openai"]),
        create_and_add("m", TokenWindow(3_000), [*users(LONG), AiMessage(LONG)] * 9),
    ),
    "never_in_memory": lambda: create_and_add(
        "m", TokenWindow(40), [HI, call("1"), result("1", "found " * 26), HI]
    ),
    "oversized": lambda: create_and_add("m", TokenWindow(20), [UserMessage("too long " * 20)]),
    "over_limit": lambda: (
        create_and_add("m", MessageWindow(9), users(*"abcd")),
        services.change("m", policy=MessageWindow(2)),
    ),
    "dangling": lambda: create_and_add("m", MessageWindow(9), [HI, call("1"), HI]),
    "orphaned": lambda: create_and_add("m", MessageWindow(9), [HI, result("1"), HI]),
}
FLAGGED |= {"refused": FLAGGED["dangling"], "any": FLAGGED["dangling"]}


@pytest.mark.parametrize("flag", flags(), ids=str)
def test_a_flag_is_in_the_list_the_filters_and_the_api(flag: Flag, operator_client):
    create_and_add("fine", MessageWindow(9), users("a"))
    FLAGGED[flag.name]()
    for memory_id in ("fine", "m"):
        services.keep(memory_id)
    shown = operator_client.get(f"/?flagged={flag}").content.decode()
    assert flag.words in words_of(shown)
    assert 'data-id="m"' in shown
    assert 'data-id="fine"' not in shown
    found = operator_client.get(f"/api/v1/memories/?flag={flag}").json()["results"]
    assert [each["id"] for each in found] == ["m"]
    doctor = words_of(operator_client.get("/doctor/").content.decode())
    assert (f"{flag.words} 1 conversation" in doctor) == (Shown.BELOW_DOCTOR in flag.shown)


def test_each_reason_has_words():
    for reason in Reason:
        assert short_reason(reason)


# What was found wrong with a health that was kept by hand


def test_the_same_result_again_after_a_text_verifies():
    create_and_add("m", MessageWindow(20), [HI, call("1"), result("1"), HI, result("1")])
    assert verify("m") is None
    found = diagnosed("m").under(InUse({"openai": ()}))
    assert [each.rule for each in found.listed] == ["duplicate_result"]
