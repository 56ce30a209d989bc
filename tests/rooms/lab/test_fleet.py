"""A fleet of 60 conversations of four kinds: every surface prints the same advice."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.core.management import call_command

from benchmarks.advised import POLICIES, fleet, huge, write
from chatmemory import policies_from_text, services
from chatmemory.advice import Measured, Verdict
from chatmemory.snapshots import one_snapshot
from inspector.rooms.lab import writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.figures import figures_now
from inspector.rooms.lab.page import FleetPage
from inspector.rooms.lab.reads import fleet as read_fleet
from tests.conversations import create_and_add
from tests.inspector.markup import words

pytestmark = pytest.mark.django_db
CACHED, WRITE = 0.1, 1.0  # of OpenAI, the provider whose cache is used if none is chosen
SHOWN = ("desk-03", "agent-07", "chat-01", "lean-11")


@pytest.fixture
def made(db):
    for each in fleet():
        create_and_add(each.id, each.policy, each.messages)
        services.keep(each.id)


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
    """Return the policies that a page offers with a verb."""
    return {unescape(each) for each in re.findall(r'name="policy"\s+value="([^"]+)"', html)}


def test_no_surface_offers_what_is_dominated_and_all_print_the_same_figures(
    made, operator_client, api
):
    for memory_id in SHOWN:
        (each,) = figures_now([memory_id], {})
        page = operator_client.get(f"/c/{memory_id}/").text
        compared = operator_client.get(f"/c/{memory_id}/compare/")
        for html in (page, compared.text):
            for text in offered(html) - {"everything"}:
                (policy,) = policies_from_text(text)
                is_column = f"{policy.limit:,}" in words(html.encode())
                assert is_column
                if policy != POLICIES[memory_id.partition("-")[0]]:
                    assert not is_dominated(each, policy), (memory_id, text)
        today = effect(each, each.policy)
        rows = operator_client.get(f"/c/{memory_id}/compare/?as=json").json()
        assert rows[0]["held"] == today[0]
        assert rows[0]["relative_cost"] == pytest.approx(today[2])
        found = api.get(
            f"/api/v1/recall/?prefix={memory_id}&policies={rows[0]['policy']}&provider=openai&input=1&cached=0.1&write=1"
        ).json()
        assert found["results"][0]["held"] == today[0]
        assert found["results"][0]["relative_cost"] == pytest.approx(today[2])
        lab = lab_page(prefix=memory_id)
        assert lab.advice.today.held == today[0]
        assert lab.advice.today.cost == pytest.approx(today[2])
        assert found["verdict"] == lab.advice.verdict.value
        assert found["recommended"] == lab.advice.recommended
        assert lab.card.title in words(compared.content)
        percent = round(100 * abs(round(today[2], 2) - 1))
        if f"costs {percent} %" not in words(compared.content):
            assert percent == 0


def test_a_row_agrees_with_its_page_and_a_huge_conversation_changes_no_pick(made):
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
        each = huge(kind, 1_500)
        create_and_add(each.id, each.policy, each.messages)
        services.keep(each.id)
    after = lab_page()
    assert {row.key: (row.advice.verdict, row.advice.recommended) for row in after.groups} == before
    assert "desk-huge" in after.card.measured_on


def test_the_file_and_the_database_agree(made, tmp_path, capsys):
    write(tmp_path)
    prices = ("--provider", "openai", "--input", "1", "--cached", "0.1", "--json")
    for kind, policy in POLICIES.items():
        asked = ("--policies", f"token_window:{policy.limit},everything", *prices)
        files = sorted(map(str, tmp_path.glob(f"{kind}-*.json")))
        call_command("recall", *files, "--today", f"token_window:{policy.limit}", *asked)
        of_files = list(map(json.loads, capsys.readouterr().out.splitlines()))
        call_command("recall", "--prefix", f"{kind}-", *asked)
        assert list(map(json.loads, capsys.readouterr().out.splitlines())) == of_files


@pytest.mark.django_db(transaction=True)
def test_a_page_does_not_make_figures_that_it_could_not_keep():
    """Each reading of a live page made them again: it took four times as long."""
    short = next(iter(fleet()))
    create_and_add(short.id, short.policy, short.messages)
    with one_snapshot():
        assert [each.figures for each in figures_now([short.id], {})] == [None]
    assert all(each.figures for each in figures_now([short.id], {}))
    with one_snapshot():
        assert all(each.figures for each in figures_now([short.id], {}))
