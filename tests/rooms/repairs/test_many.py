"""Repairs of many conversations at once: their preview, their effect, and taking them back; limits
that are raised to the largest turn.
"""

from __future__ import annotations

import json
import re

import pytest

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.models import Memory
from chatmemory.reading import conversations
from inspector.overview.selection import midnight
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.largest import short_windows
from inspector.rooms.doctor.page import DoctorPage
from inspector.rooms.doctor.reads import IllFilter, ill_ids

from ...conversations import BRIEF, HI, call, create_and_add, result, users
from ...inspector.markup import words
from ..doctor.diagnosed import break_each_rule, diagnosed

pytestmark = pytest.mark.django_db


def test_the_listed_ones_are_repaired_after_a_look(operator_client):
    choose_providers("", ["openai"])
    create_and_add("m", MessageWindow(9), [HI, call("1"), HI])
    create_and_add("orphan", MessageWindow(9), [HI, result("8"), HI])
    diagnosed()
    asked = operator_client.get("/doctor/repair/", {"rule": "dangling_call"})
    assert "Repair 1 conversation?" in words(asked.content)
    sent = {"rule": "dangling_call", "versions": asked.context["versions"]}
    operator_client.get("/doctor/repair/", sent)  # an address repairs nothing
    assert ill_ids(IllFilter("dangling_call"), 9) == ["m"]
    create_and_add("later", MessageWindow(9), [HI, call("1"), HI])
    done = {"rule": "dangling_call", "versions": asked.context["versions"], "reason": "refused"}
    operator_client.post("/doctor/repair/", done)
    diagnosed()
    assert ill_ids(IllFilter("dangling_call"), 9) == ["later"]  # the page did not show it
    assert ill_ids(IllFilter("orphan_result"), 9) == ["orphan"]


def test_the_repairs_of_each_line_do_what_their_preview_shows(operator_client):
    break_each_rule()
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


def test_a_repair_with_snap_to_user_shows_its_price_and_is_undone_with_it(operator_client):
    choose_providers("", ["gemini"])
    said = [BRIEF, *users("Where is A-1182?"), call("1"), result("1", "A-1182: on its way")]
    create_and_add("m", MessageWindow(4), [*said, *users("And?"), AiMessage("A-1182 is late.")])
    services.add("m", [call("2"), result("2"), *users("Thanks")])
    diagnosed("m")
    asked = {"provider": "gemini", "rule": "call_after_model"}
    shown = operator_client.post("/doctor/repair/", asked)
    page = words(shown.content)
    assert "Conversations accepted after the repair (each one checked) 1 of 1" in page
    assert "Messages that leave memory, on average per conversation 2.0" in page
    assert "Facts in memory when needed again 1 → 0 of 2" in page
    assert re.search(r"sending everything \d\.\d\d → \d\.\d\d", page)
    assert "not while a turn is larger than the limit" in page
    before = Memory.objects.get().window_count
    sent = {**asked, "versions": shown.context["versions"], "snap": "yes"}
    done = operator_client.post("/doctor/repair/", sent)
    assert conversations.policy("m") == MessageWindow(4, snap_to_user=True)
    both = {name: done.context[name] for name in ("steps", "policies")}
    undone = words(operator_client.post("/doctor/undo/", both).content)
    assert "1 repair undone and 1 former policy restored" in undone
    assert conversations.policy("m") == MessageWindow(4)
    assert Memory.objects.get().window_count == before


# Limits


@pytest.fixture
def short(db):
    """A window of 4 messages with a largest turn of 5, beside the system message."""
    said = [BRIEF, HI, call("call_1"), result("call_1"), call("call_2"), result("call_2")]
    create_and_add("short", MessageWindow(4), said)
    diagnosed("short")


@pytest.mark.database
def test_a_limit_is_raised_to_the_largest_turn_after_a_preview_and_taken_back(
    short, operator_client
):
    assert [(each.memory_id, each.needed) for each in short_windows()] == [("short", 6)]
    assert "Raise the limit…" in words(operator_client.get("/doctor/").content)
    preview = operator_client.post("/doctor/raise/")
    assert "4 → 6 messages" in words(preview.content)
    shown = json.loads(preview.context["policies"])
    assert shown == {"short": ["message_window:6", 6]}
    services.add("short", [UserMessage("Hello?")])
    late = operator_client.post("/doctor/raise/", {"policies": json.dumps(shown)})
    assert "short was not changed" in words(late.content)
    shown["short"][1] = Memory.objects.get(pk="short").last_step
    done = operator_client.post("/doctor/raise/", {"policies": json.dumps(shown)})
    assert "1 policy changed" in words(done.content)
    assert conversations.policy("short") == MessageWindow(6)
    assert short_windows() == []
    undone = operator_client.post("/doctor/undo/", {"policies": done.context["policies"]})
    assert "1 former policy restored" in words(undone.content)
    assert conversations.policy("short") == MessageWindow(4)


def test_a_policy_that_has_changed_since_is_not_taken_back(short, operator_client):
    before = json.dumps({"short": ["message_window:9", 3], "gone": ["message_window:9", 1]})
    undone = words(operator_client.post("/doctor/undo/", {"policies": before}).content)
    assert conversations.policy("short") == MessageWindow(4)
    assert "version" in undone
    for wrong in ("[1]", '{"short": 1}', "no JSON"):
        assert operator_client.post("/doctor/undo/", {"policies": wrong}).status_code == 409
