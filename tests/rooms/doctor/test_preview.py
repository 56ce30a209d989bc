"""A preview and its effect are the same set; heading, lines, flag and filter have equal counts."""

from __future__ import annotations

import re

import pytest

from chatmemory import AiMessage, MessageWindow, services
from chatmemory.flags import flags
from chatmemory.ledger import protocol
from chatmemory.lint import PROVIDERS, RULES
from chatmemory.lint.linter import example
from chatmemory.models import Memory
from chatmemory.reading import conversations
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import overview_stats
from inspector.overview.selection import midnight
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.page import DoctorPage
from inspector.rooms.doctor.reads import IllFilter, doctor_counts, ill_ids

from ...conversations import BRIEF, call, create_and_add, result, users
from ...inspector.markup import words
from .diagnosed import diagnosed

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def fleet(db):
    """The bad window of each rule, in the order of the rules, for every provider."""
    choose_providers("", list(PROVIDERS))
    for name, rule in RULES.items():
        services.create(name, None)
        protocol.update_messages(name, example(rule.bad, rule.example_provider))
        diagnosed(name)


def test_the_repairs_of_each_line_do_what_their_preview_shows(fleet, operator_client):
    lines = [line for line in DoctorPage(midnight()).used if line.verb]
    assert len(lines) > 5
    for line in lines:
        shown = operator_client.post("/doctor/repair/", line.fields)
        would = shown.context["repairs"]
        assert would.done, line.title  # a verb that repairs nothing is not shown
        done = operator_client.post(
            "/doctor/repair/", {**line.fields, "versions": shown.context["versions"]}
        )
        did = done.context["repairs"]
        assert did.done == would.done
        assert not did.refused
        for name in did.done:
            diagnosed(name)
        repairable = IllFilter(provider=line.fields["provider"])
        assert not set(ill_ids(repairable, 99)) & set(did.done)
        back = operator_client.post("/doctor/undo/", {"steps": done.context["steps"]})
        assert not back.context["refused"]
        for name in did.done:
            diagnosed(name)


def test_heading_flag_filter_list_and_api_count_the_same(fleet, operator_client):
    refused = doctor_counts().refused
    heading = words(operator_client.get("/doctor/").content)
    assert f"{refused} conversations would fail now." in heading
    assert overview_stats(midnight()).flagged["refused"] == refused
    flag = next(each for each in flags() if each.name == "refused")
    assert MemoryFilter(flag=flag).rows().count() == refused
    assert len(ill_ids(IllFilter(), 99)) == refused
    assert operator_client.get("/api/v1/doctor/").json()["refused"] == refused
    for line in filter(lambda line: line.is_red, DoctorPage(midnight()).used):
        listed = words(operator_client.get(line.address).content)
        count = re.search(r"(\d+) conversations?\.", listed)
        assert count is not None, line.title
        # The list also has those that this provider only mishandles
        assert int(count[1]) >= line.count, line.title


def test_a_cause_without_a_repair_has_advice_in_place_of_a_verb(operator_client):
    choose_providers("", ["gemini", "mistral"])
    create_and_add("no-user", MessageWindow(9), [BRIEF, call("1"), result("1")])
    diagnosed("no-user")
    page = DoctorPage(midnight())
    assert {line.verb for line in page.used if line.is_red} == {""}
    html = words(operator_client.get("/doctor/").content)
    assert "What prevents it: The option snap_to_user of the policy" in html
    assert "Repair…" not in words(operator_client.get("/doctor/?rule=call_after_model").content)


def test_a_repair_with_snap_to_user_shows_its_price_and_is_undone_with_it(operator_client):
    choose_providers("", ["gemini"])
    said = [BRIEF, *users("Where is A-1182?"), call("1"), result("1", "A-1182: on its way")]
    create_and_add("m", MessageWindow(4), [*said, *users("And?"), AiMessage("A-1182 is late.")])
    services.add("m", [call("2"), result("2"), *users("Thanks")])
    diagnosed("m")
    asked = {"provider": "gemini", "rule": "call_after_model"}
    shown = operator_client.post("/doctor/repair/", asked)
    page = words(shown.content)
    assert "Taken afterwards, each one checked 1 of 1" in page
    assert "Messages that leave memory, on average 2.0" in page
    assert "if memory begins with a user message after each trim 50 % → 0 %" in page
    assert "It does not help while a turn is longer than the limit" in page
    before = Memory.objects.get().window_count
    sent = {**asked, "versions": shown.context["versions"], "snap": "yes"}
    done = operator_client.post("/doctor/repair/", sent)
    assert conversations.policy("m") == MessageWindow(4, snap_to_user=True)
    both = {name: done.context[name] for name in ("steps", "policies")}
    undone = words(operator_client.post("/doctor/undo/", both).content)
    assert "1 repair undone and 1 policy as before" in undone
    assert conversations.policy("m") == MessageWindow(4)
    assert Memory.objects.get().window_count == before
