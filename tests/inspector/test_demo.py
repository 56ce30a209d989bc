from __future__ import annotations

import json
import shlex
from html import unescape
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from chatmemory import UserMessage
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.reading import conversations, history, windows
from chatmemory.reading.overview import overview_stats
from chatmemory.roles import GROUPS, Role
from inspector import demo
from inspector.rooms.evidence.incidents import incidents

pytestmark = pytest.mark.django_db


def test_the_demo_is_loaded_once(capsys):
    call_command("load_demo")
    assert "order-7741" in capsys.readouterr().out
    steps = conversations.memory("order-7741").last_step
    call_command("load_demo")
    told = capsys.readouterr().out
    assert told.startswith("Nothing was stored, because the database already has conversations. ")
    assert told.endswith("Use --force to add the example conversations\n")
    assert conversations.memory("order-7741").last_step == steps


def test_a_database_in_use_gets_no_demo():
    protocol.update_messages("mine", [UserMessage("a")])
    call_command("load_demo")
    assert overview_stats(conversations.memory("mine").created_at).conversations == 1
    call_command("load_demo", force=True)
    assert conversations.memory("classroom").said_count == 17


def test_the_travel_desk_looks_a_booking_up_twice_and_asks_for_a_voucher_again():
    call_command("load_demo")
    found = incidents("ferry-5120")
    assert found.is_current
    told = [
        (each.kind, each.what, each.shown.said, each.again, each.is_forced)
        for each in found.incidents
        if each.kind != "used_unseen"
    ]
    assert told == [
        ("call_repeated", "get_booking", 6, 34, False),
        ("user_repeated", "VX-4471", 2, 40, True),
    ]
    calls = [history.message("ferry-5120", seq).message for seq in (5, 33)]
    assert len({call.tool_execution_requests[0].arguments for call in calls}) == 1
    window = windows.window("ferry-5120", 36)
    assert not [row for row in window.rows if "VX-4471" in row.text]
    assert "Why did it not use the voucher?" in history.message("ferry-5120", 38).text


def test_the_demo_matches_its_replay():
    call_command("load_demo")
    for memory_id in ("order-7741", "ferry-5120", "classroom", "lisbon-guide"):
        assert verify(memory_id) is None


def test_a_missing_example_can_be_added_where_it_is_missed(operator_client):
    """Lessons lead to examples, also on a site that has none."""
    page = operator_client.get("/c/classroom/?find=green")
    assert page.status_code == 404
    words = page.content.decode()
    assert "The examples are not stored on this site." in words
    assert "Add the examples" in words
    answer = operator_client.post("/demo/", {"example": "classroom"})
    assert (answer.status_code, answer["Location"]) == (302, "/c/classroom/")
    assert operator_client.get("/c/classroom/").status_code == 200
    assert operator_client.post("/demo/", {"example": "//a.example"})["Location"] == "/"
    assert "one of the examples" not in operator_client.get("/c/nobody/").content.decode()


def test_who_may_not_add_examples_is_not_offered_them(client, django_user_model):
    viewer = django_user_model.objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    client.force_login(viewer)
    words = client.get("/c/classroom/").content.decode()
    assert "This conversation is an example" in words
    assert "Add the examples" not in words


def test_the_commands_of_the_first_page_store_a_message(operator_client, api):
    page = unescape(operator_client.get("/").content.decode())
    _, *calls = page.partition("<pre")[2].partition("</pre>")[0].split("curl ")
    for each in calls:
        _, _, url, _, body = shlex.split(each.replace("\\\n", ""))
        assert api.post(urlsplit(url).path, json.loads(body)).status_code in (200, 201), url
    [memory] = Memory.objects.all()
    assert history.message(memory.id, 1).message == UserMessage("Hello")
    assert memory.id not in demo.ids()
