"""The doctor's heading, lines, flag and filter have equal counts."""

from __future__ import annotations

import re

import pytest

from chatmemory import MessageWindow
from chatmemory.flags import flags
from chatmemory.ledger.protocol import update_messages
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import overview_stats
from inspector.overview.selection import midnight
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.page import DoctorPage
from inspector.rooms.doctor.reads import IllFilter, doctor_counts, ill_ids

from ...conversations import BRIEF, HI, call, create_and_add, result
from ...images import made_once
from ...inspector.markup import words
from .diagnosed import break_each_rule, diagnosed

pytestmark = [pytest.mark.django_db]


@made_once
def fleet():
    break_each_rule()


def test_heading_flag_filter_list_and_api_count_the_same(fleet, operator_client):
    refused = doctor_counts().refused
    heading = words(operator_client.get("/doctor/").content)
    assert f"Your providers would reject {refused} conversations now." in heading
    assert overview_stats(midnight()).flagged["refused"] == refused
    flag = next(each for each in flags() if each.name == "refused")
    assert MemoryFilter(flag=flag).rows().count() == refused
    assert len(ill_ids(IllFilter(), 99)) == refused
    assert operator_client.get("/api/v1/doctor/").json()["refused"] == refused
    for line in filter(lambda line: line.is_red, DoctorPage(midnight()).used):
        listed = words(operator_client.get(line.address).content)
        count = re.search(r"(\d+) conversations? ha(?:s|ve) this problem\.", listed)
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
    assert "Prevention: Set the policy option snap_to_user" in html
    assert "Repair memory…" not in words(
        operator_client.get("/doctor/?rule=call_after_model").content
    )


def test_an_option_of_a_policy_prevents_only_where_there_is_a_policy(operator_client):
    update_messages("client", [HI, call("1"), HI])
    diagnosed("client")
    option = "auto_recover_orphaned_tool_messages"
    assert option not in words(operator_client.get("/doctor/").content)
    assert option not in words(operator_client.get("/doctor/?rule=dangling_call").content)
    create_and_add("service", MessageWindow(9), [HI, call("1"), HI])
    diagnosed("service")
    assert option in words(operator_client.get("/doctor/").content)
    assert option in words(operator_client.get("/doctor/?rule=dangling_call").content)
