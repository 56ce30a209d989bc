"""The pages of calls, the commands and the agent's tool, of one run with a break in it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone
from django.utils.html import strip_tags

from chatmemory import services
from chatmemory.access.scopes import Scope
from chatmemory.known_models import known_model
from chatmemory.models import ApiToken
from chatmemory.signals import vacuuming
from chatmemory.windows.policies import TokenWindow
from inspector.rooms.calls.agents import calls as asked_by_an_agent
from inspector.rooms.calls.bodies import OPENAI
from inspector.rooms.calls.call import (
    Dropped,
    DropReason,
    NewCall,
    ReceivedAnswer,
    SentRequest,
    Source,
    Usage,
)
from inspector.rooms.calls.learning import learn
from inspector.rooms.calls.models import CallTool, ModelCall, ToolDefinition
from inspector.rooms.calls.overview import DAYS, prompt_cost
from inspector.rooms.calls.page import CallPage
from inspector.rooms.calls.reads import RebuiltCall, call_compared_with, one_call
from inspector.rooms.calls.spelling import style_of
from inspector.rooms.calls.writes import count_dropped, store
from inspector.shell.agents import Agent
from inspector.shell.prices import ChosenPrices

START = datetime(2026, 11, 26, 11, 0, tzinfo=UTC)
SYSTEM = {"role": "system", "content": "You are an airline agent. The desk is D-6630."}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("search_flights", "cancel_booking")
]
FOUND = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "search_flights", "arguments": "{}"}}
    ],
}


def openai_message(role: str, content: str, **more: str) -> dict:
    return {"role": role, "content": content, **more}


LISTS = [
    [SYSTEM, openai_message("user", "A flight to Denver?")],
    [
        SYSTEM,
        openai_message("user", "A flight to Denver?"),
        FOUND,
        openai_message("tool", "NK204", tool_call_id="c1"),
    ],
    [
        SYSTEM,
        FOUND,
        openai_message("tool", "NK204", tool_call_id="c1"),
        openai_message("user", "<b>Book</b> it."),
    ],
]
ANSWERS = [
    FOUND,
    openai_message("assistant", "NK204 at 06:10."),
    openai_message("assistant", "Done."),
]


@pytest.fixture
def desk(db) -> str:
    """Three calls; the third has lost the question, so that the common beginning breaks."""
    for n, (messages, answer) in enumerate(zip(LISTS, ANSWERS, strict=True), 1):
        store(a_call(n, messages, answer))
    return "desk"


def a_call(n: int, messages: list[dict], answer: dict | None = None, **more) -> NewCall:
    request = {"model": "gpt-4o", "messages": messages, "tools": TOOLS, "user": "D-6630"}
    choices = [{"index": 0, "message": answer, "finish_reason": "stop"}]
    given = {
        "response": {"choices": choices} if answer else None,
        "usage": Usage(100 + n, 64, None, 9, None),
        "finish": "stop",
        "duration": 1.4,
    }
    return NewCall(
        key=f"key {n}",
        source=Source.RECORDER,
        format=OPENAI,
        sent=SentRequest(request, style_of(json.dumps(request).encode(), request)),
        received=ReceivedAnswer(**{**given, **more}),
        at=START + timedelta(seconds=n),
        provider="openai",
        model="gpt-4o",
        session="desk",
    )


def page_of(n: int) -> CallPage:
    found = one_call("desk", n)
    before = call_compared_with(found.row)
    return CallPage(found, RebuiltCall(before) if before else None, TokenWindow(60))


def test_the_page_says_where_the_beginning_broke(desk, operator_client):
    text = operator_client.get("/c/desk/calls/3/").text
    assert "ended after the system message" in text
    assert "First difference: the shared prefix ends here" in text
    assert "&lt;b&gt;Book&lt;/b&gt; it." in text
    assert "<b>Book" not in text
    assert "Authorization: Bearer $OPENAI_API_KEY" in text
    raw = operator_client.get("/c/desk/calls/3/?as=json").text
    assert "&quot;user&quot;: &quot;D-6630&quot;" in raw
    assert operator_client.get("/c/desk/calls/").url == "/c/desk/calls/3/"
    assert "Newest model call: call 3" in operator_client.get("/c/desk/").text
    assert operator_client.get("/c/desk/calls/9/").status_code == 404


def test_the_budget_has_each_tool_and_those_that_were_never_called(desk):
    page = page_of(3)
    assert [(each.name, each.calls) for each in page.tools] == [
        ("search_flights", 1),
        ("cancel_booking", 0),
    ]
    assert page.sums["idle"] == page.tools[1].tokens > 5
    assert page.counted == page.row.counted
    assert sum(each.percent for each in page.parts) == 100


def test_changes_and_what_was_sent_again(desk):
    changes = [(each.kind, each.seq) for each in page_of(3).changes]
    assert changes == [("same", 0), ("break", 0), ("off", 2), ("same", 0), ("on", 6)]
    rows = ModelCall.objects.order_by("n")
    assert [each.is_broken for each in rows] == [False, False, True]
    assert rows[2].again == page_of(3).difference.again > 0


@pytest.mark.parametrize("policy", [None, TokenWindow(60)])
def test_the_lines_above_what_was_sent_add_up_to_it(desk, policy):
    lines = CallPage(one_call("desk", 3), None, policy).lines
    [total] = [n for n, each in enumerate(lines) if each.is_sum]
    assert sum(each.tokens or 0 for each in lines[:total]) == lines[total].tokens


def test_memory_against_what_was_sent(desk, operator_client, django_assert_max_num_queries):
    lines = {each.text: each for each in page_of(3).lines}
    assert lines["Whole prompt"].tokens == page_of(3).counted
    assert lines["Whole prompt, counted by the provider"].tokens == 103
    with django_assert_max_num_queries(30):
        answer = operator_client.get("/c/desk/calls/3/?policy=token_window:60&input=2.5")
    assert "Messages in memory" in answer.text
    assert 'role="alert"' in operator_client.get("/c/desk/calls/3/?policy=nothing").text


def test_a_page_is_bounded_however_long_the_request_is(desk, operator_client):
    tools = [{**TOOLS[0], "n": n} for n in range(300)]
    request = {"model": "m", "messages": [openai_message("user", "x" * 400_000)], "tools": tools}
    store(replace(a_call(4, LISTS[0]), sent=SentRequest(request)))
    text = operator_client.get("/c/desk/calls/4/").text
    assert len(text) < 150_000
    assert "As a command" not in text
    raw = operator_client.get("/c/desk/calls/4/?as=json").text
    assert "Only the beginning is shown" in raw
    assert len(raw) < 300_000


def test_a_prompt_and_its_break_have_a_cost_where_the_cache_has_a_price(desk, operator_client):
    """64 of 103 tokens were read from the cache, at a tenth of the price."""
    text = operator_client.get("/c/desk/calls/3/?input=2.50").text
    shown = " ".join(strip_tags(text).split())
    assert "Cost, in tokens at the input price OpenAI, cached input at 10 %, cache writes" in shown
    assert "1,000 such prompts $0.11" in shown
    lines = {each.text: each.tokens for each in priced(3).lines}
    assert lines["Cost, in tokens at the input price"] == 45
    assert lines["Extra cost of the prefix change"] == round(0.9 * ModelCall.objects.get(n=3).again)
    assert "must be a number" in operator_client.get("/c/desk/calls/3/?input=x").text
    assert "Cost" not in {each.text[:4] for each in page_of(3).lines}


def priced(n: int) -> CallPage:
    return replace(page_of(n), prices=ChosenPrices(provider="openai"))


def test_the_count_of_the_provider_is_learned_of_other_calls_with_the_same_tools(desk):
    """What a provider adds to a prompt depends on the tools, and its tokens on the model."""
    for n, counted in enumerate((100, 200, 400, 800), 4):
        store(a_call(n, LISTS[0], usage=Usage(counted * 5 // 4 + 30)))
        ModelCall.objects.filter(n=n).update(counted=counted)
    ModelCall.objects.filter(n__lt=4).update(tools="[]", input=900)
    page = page_of(7)
    learned = next(
        each for each in page.lines if each.text.endswith("predicted from earlier calls")
    )
    assert learned.tokens == round(1.25 * page.counted) + 30
    assert learned.note == "our estimate × 1.25 + 30, learned from 3 calls"
    assert not any(
        each.text.endswith("predicted from earlier calls") for each in page_of(3).lines
    )  # of two others


def test_one_odd_call_hardly_changes_the_learned_count():
    counts = [(100, 130), (200, 230), (300, 330), (400, 430), (310, 9_000)]
    assert learn(counts) == (1, 30, 5)
    assert learn([(100, 130)] * 3) == (1, 30, 3)
    assert learn(counts[:2]) is None


def test_the_setup_is_shown_with_a_token_and_what_was_dropped(desk, operator_client):
    count_dropped([Dropped(DropReason.DROPPED_ATTRIBUTES, "<i>")], "")
    text = operator_client.get("/calls/").text
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://testserver/otlp" in text
    assert "OPENAI_BASE_URL=http://127.0.0.1:8788/v1" in text
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000" in text
    assert "&lt;i&gt;" in text
    made = operator_client.post("/calls/").text
    assert "Authorization=Bearer%20cm_" in made
    assert ApiToken.objects.get().role == "operator"


def test_calls_come_first_with_totals_by_day_and_model(desk, operator_client):
    """Independent sums over the rows; a day and a model filter the list."""
    day = timezone.localdate()
    ModelCall.objects.filter(n=1).update(at=timezone.now() - timedelta(days=1), error="no <b>")
    ModelCall.objects.filter(n__gt=1).update(at=timezone.now())
    rows = list(ModelCall.objects.all())
    page = operator_client.get("/calls/").context["page"]
    assert not page.is_empty
    assert page.today.calls == len(rows) - 1
    assert page.all.input == sum(row.input or 0 for row in rows)
    assert page.all.cached == sum(row.cached or 0 for row in rows)
    assert page.all.output == sum(row.output or 0 for row in rows)
    assert page.all.errors == 1
    assert {row.model: row.totals.calls for row in page.models} == Counter(r.model for r in rows)
    assert [len(row.bars) for row in page.days] == [DAYS] * 6
    text = operator_client.get("/calls/").text
    assert (
        text.index("Newest calls") > text.index("Calls by model") > text.index("Record more calls…")
    )
    assert "failed: no &lt;b&gt;" in text
    before = operator_client.get(f"/calls/?day={day - timedelta(days=1)}").context["page"]
    assert [each.call.n for each in before.newest] == [1]
    other = operator_client.get("/calls/?model=nobody's&day=no-day")
    assert other.context["page"].newest == []
    assert "No call matches" in other.text


def test_the_cost_of_calls_is_that_of_their_prompts(desk, operator_client):
    """In tokens at the input price, cached ones by their share; in money with prices."""
    assert prompt_cost("nobody-knows-it", "", {"input": 100, "cached": 40, "written": 0}) == 100
    share = known_model("gpt-4o").cached
    tokens = {"input": 100, "cached": 40, "written": 0}
    assert prompt_cost("gpt-4o", "openai", tokens) == 60 + 40 * share
    page = operator_client.get("/calls/?input=10000&output=20000").context["page"]
    (row,) = page.models
    money = row.totals.cost * 10_000 / 10**6 + Decimal(row.totals.output) * 20_000 / 10**6
    assert row.cost == f"${money:,.2f}"
    assert "must be a number" in operator_client.get("/calls/?input=x").text


@pytest.mark.needs("recorder")
def test_before_the_first_call_the_page_says_how_to_record_one(db, operator_client):
    text = operator_client.get("/calls/").text
    assert "No model calls yet" in text
    assert "OPENAI_BASE_URL" in text
    assert 'hx-trigger="every 5s"' in text


def test_commands_and_agents_give_the_same_answer(desk, capsys):
    call_command("calls")
    assert "desk: Call 3, 2026-11-26 11:00:03, gpt-4o, 103 input tokens" in capsys.readouterr().out
    call_command("calls", "desk", 2, json=True)
    assert json.loads(capsys.readouterr().out)["request"]["messages"] == LISTS[1]
    agent = Agent("http://site", Scope())
    listed = asked_by_an_agent(agent, "desk")
    assert listed.values["calls"][0]["is_broken"]
    one = asked_by_an_agent(agent, "desk", 3)
    assert "ended after the system message" in " ".join(one.words)
    assert one.url == "http://site/c/desk/calls/3/"


def test_the_command_refuses_an_id_that_no_conversation_has(db):
    with pytest.raises(CommandError, match="no conversation has the id 'nobody-has-it'"):
        call_command("calls", "nobody-has-it")


def test_a_redaction_reaches_requests_tools_parameters_and_errors(desk):
    store(
        a_call(4, [SYSTEM, openai_message("user", "More")], error="no desk D-6630", response=None)
    )
    named = ToolDefinition.objects.filter(name="cancel_booking")
    named.update(definition='{"name": "desk D-6630"}')
    services.redact("desk", 1)
    for n in (1, 2, 3, 4):
        found = one_call("desk", n)
        kept = json.dumps([found.request, found.response, found.row.error, found.row.difference])
        assert "6630" not in kept
        assert not found.row.is_exact
    assert [each.name for each in one_call("desk", 1).tools] == ["search_flights", "[redacted]"]
    assert not named.exists()
    assert one_call("desk", 2).request["messages"][1:] == LISTS[1][1:]


def test_calls_go_with_their_conversation_and_by_age(desk):
    with override_settings(INSPECTOR={"CALL_DAYS": 36_500}):
        vacuuming.send(None)
    assert ModelCall.objects.count() == 3
    services.delete("desk")
    assert not ModelCall.objects.exists()
    assert not CallTool.objects.exists()
    assert not ToolDefinition.objects.exists()


def test_calls_go_by_age_with_the_tools_that_no_other_has(desk):
    store(replace(a_call(4, LISTS[2]), sent=SentRequest({"model": "m", "messages": LISTS[2]})))
    ModelCall.objects.filter(n__lt=4).update(at=START - timedelta(days=400))
    with override_settings(INSPECTOR={"CALL_DAYS": 30}):
        vacuuming.send(None)
    (left,) = ModelCall.objects.all()
    assert (left.n, left.shared, left.is_broken) == (4, None, False)  # nothing is before it
    assert not ToolDefinition.objects.exists()


def test_a_definition_is_stored_once_until_no_conversation_has_it(desk):
    store(a_call(1, LISTS[0]), prefix="other/")
    assert ToolDefinition.objects.count() == len(TOOLS)
    assert CallTool.objects.count() == 2 * len(TOOLS)
    ToolDefinition.objects.update(definition='{"name": "desk D-6630"}')
    services.redact("desk", 1)
    assert "6630" not in json.dumps(one_call("desk", 1).request)
    assert "6630" in json.dumps(one_call("other/desk", 1).request["tools"])
    services.delete("other/desk")
    assert not ToolDefinition.objects.exists()


def test_the_next_call_is_compared_with_one_that_comes_late(desk):
    """The list and the page have the same figures, in whatever order calls come."""
    late = replace(a_call(4, LISTS[1][:2]), at=START + timedelta(seconds=2.5))
    store(late)
    rows = {each.n: each for each in ModelCall.objects.all()}
    assert (rows[4].is_broken, rows[3].is_broken) == (True, True)
    for n in (2, 3, 4):
        found = page_of(n).difference
        assert (rows[n].shared, rows[n].again) == (found.shared, found.again)
    assert rows[3].again == 0  # the call before had the question alone
