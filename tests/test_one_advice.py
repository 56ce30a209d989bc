"""A fleet of 60 conversations of four kinds: every surface prints the same advice."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.core.management import call_command

from benchmarks.advised import POLICIES, fleet, huge, write
from chatmemory import policies_from_text, services, text_of_policy
from chatmemory.advice import Measured, Verdict
from inspector.rooms.evidence_file.incidents import advice_in
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.lab import writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.figures import figures_now
from inspector.rooms.lab.page import FleetPage
from inspector.rooms.lab.reads import fleet as read_fleet
from tests.conversations import create_and_add
from tests.inspector.markup import words
from tests.rooms.agents.test_agents import EVERYTHING, answer_json

pytestmark = pytest.mark.django_db
CACHED, WRITE = 0.1, 1.0  # of OpenAI, the provider whose cache is used if none is chosen
PRICES = {"provider": "openai", "input": 1, "cached": CACHED, "write": WRITE}


EACH, WHOLE = 3, 15  # conversations of a kind: usually, and of the whole fleet


def make(each: int) -> list[str]:
    found = list(fleet(each))
    for one in found:
        create_and_add(one.id, one.policy, one.messages)
        services.keep(one.id)
    return [one.id for one in found]


@pytest.fixture
def made(db):
    return make(EACH)


@pytest.fixture
def whole(db):
    return make(WHOLE)


def lab_page(**parameters: str) -> FleetPage:
    address = FleetAddress.read(parameters).with_usual_kind(parameters)
    while writes.compute_figures(address.query, 60):
        pass
    return FleetPage(read_fleet(address.query), address)


# An independent statement of what is better in every way, from the tallies of one conversation


def effect(each: Measured, policy) -> tuple[int, int, float]:
    """Return what a policy holds and repeats, and its cost beside sending everything."""
    tally, whole = each.tally(policy), each.figures.everything
    costs = [t.tokens - (1 - CACHED) * t.read - (1 - WRITE) * t.written for t in (tally, whole)]
    return tally.held, tally.user_repeated + tally.call_repeated, costs[0] / costs[1]


def is_dominated(each: Measured, policy) -> bool:
    held, repeated, cost = effect(each, policy)
    others = [
        each.tried.policy(variant, limit)
        for variant, limits in each.figures.points.items()
        for limit in limits
        if limit >= each.figures.turn
        and (each.figures.clears or not each.tried.clears_beside(variant))
    ]
    found = [effect(each, other) for other in (*others, None)]
    return any(h >= held and r <= repeated and c < cost - 1e-9 for h, r, c in found)


def offered(html: str) -> set[str]:
    """Return the policies that a page offers: in forms with a verb, in links to settings, and in
    replays under a limit.
    """
    in_forms = re.findall(r'name="policy"\s+value="([^"]+)"', html)
    in_links = re.findall(r'href="[^"]*?(?:settings/)?\?(?:[^"]*&amp;)?limit=(\d+)', html)
    return {unescape(each) for each in in_forms} | {f"token_window:{each}" for each in in_links}


def named_by_each_surface(client, memory_id: str) -> dict[str, set[str]]:
    """Return the policies that each surface names, beside the one in force."""
    page, compare = (client.get(f"/c/{memory_id}/{rest}") for rest in ("", "compare/"))
    columns = client.get(f"/c/{memory_id}/compare/?as=json").json()
    incident = client.get(f"/c/{memory_id}/?incident=1").text
    lab = lab_page(prefix=memory_id)
    of_lab = filter(None, (lab.advice.pick, *lab.advice.others))
    return {
        "page": offered(page.text),
        "incident": offered(incident),
        "compare": offered(compare.text),
        "columns": {each["policy"] for each in columns[1:]},
        "lab": {each.text for each in of_lab} | offered(client.get(lab.address.link()).text),
        "agents": {answer_json("recall", EVERYTHING, prefix=memory_id, **PRICES)["recommended"]},
    }


def check_no_surface_names_what_is_dominated(client, memory_ids: list[str]) -> None:
    for memory_id in memory_ids:
        (each,) = figures_now([memory_id], {})
        for surface, texts in named_by_each_surface(client, memory_id).items():
            for text in texts - {"everything", None, text_of_policy(each.policy)}:
                (policy,) = policies_from_text(text)
                assert not is_dominated(each, policy), (memory_id, surface, text)


def check_all_surfaces_print_the_same_figures(client, api, memory_ids: list[str]) -> None:
    for memory_id in memory_ids:
        (each,) = figures_now([memory_id], {})
        today = effect(each, each.policy)
        compared = client.get(f"/c/{memory_id}/compare/")
        rows = client.get(f"/c/{memory_id}/compare/?as=json").json()
        query = f"prefix={memory_id}&policies={rows[0]['policy']}"
        found = api.get(f"/api/v1/recall/?{query}&{urlencode(PRICES)}").json()
        limits = rows[0]["policy"]
        told = answer_json("recall", EVERYTHING, prefix=memory_id, limits=limits, **PRICES)
        lab = lab_page(prefix=memory_id)
        assert rows[0]["held"] == found["results"][0]["held"] == lab.advice.today.held == today[0]
        assert told["results"][0]["held"] == today[0]
        costs = rows[0]["relative_cost"], found["results"][0]["relative_cost"]
        assert (*costs, lab.advice.today.cost) == pytest.approx((today[2],) * 3)
        verdicts = found["verdict"], told["verdict"], lab.advice.verdict.value
        assert len(set(verdicts)) == 1, verdicts
        assert found["recommended"] == lab.advice.recommended == told["recommended"]
        written = advice_in(memory_id, Masker(Choice()))[1]
        assert lab.card.title == written["title"]
        assert lab.card.title in words(compared.content)
        percent = round(100 * abs(round(today[2], 2) - 1))
        for said in (words(compared.content), written["cost"]):
            assert not percent or f"costs {percent} %" in said
        check_preview(client, memory_id, lab)


def check_preview(client, memory_id: str, lab: FleetPage) -> None:
    """A preview of what is advised says the facts and the cost that the lab has."""
    today, pick = lab.advice.today, lab.advice.pick
    if not lab.advice.is_change or pick is None:
        return
    asked = words(client.post(f"/c/{memory_id}/adopt/", {"policy": pick.text}).content)
    assert f"{today.cost:.2f} → {pick.cost:.2f}" in asked
    assert not pick.needed or f"{today.held} → {pick.held} of {pick.needed}" in asked


def test_no_surface_names_what_is_dominated(made, operator_client):
    check_no_surface_names_what_is_dominated(operator_client, made)


def test_all_surfaces_print_the_same_figures(made, operator_client, api):
    check_all_surfaces_print_the_same_figures(operator_client, api, made[::EACH])


@pytest.mark.long
def test_no_surface_of_the_whole_fleet_names_what_is_dominated(whole, operator_client, api):
    check_no_surface_names_what_is_dominated(operator_client, whole)
    check_all_surfaces_print_the_same_figures(operator_client, api, whole)


def check_rows_and_a_huge_conversation(messages: int) -> None:
    page = lab_page()
    assert page.advice.verdict is Verdict.GROUPS_DIFFER
    assert page.advice.pick is None
    before = {row.key: (row.advice.verdict, row.advice.recommended) for row in page.groups}
    assert before == {
        "desk-": (Verdict.SEND_EVERYTHING, "everything"),
        "agent-": (Verdict.CHANGE, before["agent-"][1]),
        "chat-": (Verdict.CHEAPEST, before["chat-"][1]),
        "lean-": (Verdict.KEEP, "token_window:350"),
    }
    for row in page.groups:
        own = lab_page(members=row.key)
        assert (own.advice.verdict, own.advice.recommended) == before[row.key]
        assert own.advice.measured == row.advice.measured
        assert own.advice.pick == row.advice.pick
    for kind in ("desk", "agent"):
        each = huge(kind, messages)
        create_and_add(each.id, each.policy, each.messages)
        services.keep(each.id)
    after = lab_page()
    assert {row.key: (row.advice.verdict, row.advice.recommended) for row in after.groups} == before
    assert "desk-huge" in after.card.measured_on


def test_a_row_agrees_with_its_page_and_a_huge_conversation_changes_no_pick(made):
    check_rows_and_a_huge_conversation(1_500)


@pytest.mark.long
def test_a_conversation_of_10_000_messages_changes_no_pick_of_the_whole_fleet(whole):
    check_rows_and_a_huge_conversation(10_000)


def test_the_file_and_the_database_agree(made, tmp_path, capsys):
    write(tmp_path, EACH)
    prices = ("--provider", "openai", "--input", "1", "--cached", "0.1", "--json")
    for kind, policy in POLICIES.items():
        asked = ("--policies", f"token_window:{policy.limit},everything", *prices)
        files = sorted(map(str, tmp_path.glob(f"{kind}-*.json")))
        call_command("recall", *files, "--today", f"token_window:{policy.limit}", *asked)
        of_files = list(map(json.loads, capsys.readouterr().out.splitlines()))
        call_command("recall", "--prefix", f"{kind}-", *asked)
        assert list(map(json.loads, capsys.readouterr().out.splitlines())) == of_files
