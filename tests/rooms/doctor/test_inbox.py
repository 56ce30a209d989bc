"""What the doctor has on the overview: its lines, and the question which providers are in use."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import DEFAULT_DB_ALIAS

from chatmemory import MessageWindow, TokenWindow, services
from chatmemory.roles import GROUPS, Role, make_groups
from inspector.overview.causes import counted_headlines
from inspector.rooms.doctor.choosing import choose_providers

from ...conversations import HI, call, create_and_add, keep, result, users
from ...images import made_once
from ...inspector.markup import tree, words

pytestmark = pytest.mark.django_db
TOLD = users("My order is A-1182.", "a", "b", "A-1182, as I said.")


@made_once
def fleet() -> None:
    """Conversations with one cause, with two, and with none."""
    create_and_add("refused", MessageWindow(9), [HI, call("1"), HI])
    create_and_add("missed", TokenWindow(40), [HI, call("1"), result("1", "found " * 26), HI])
    create_and_add("told", MessageWindow(2), TOLD)
    create_and_add("both", MessageWindow(2), [*TOLD, call("1"), HI])
    create_and_add("fine", MessageWindow(9), users("a"))
    keep()


def test_no_number_of_a_page_contradicts_another(operator_client, fleet):
    choose_providers("", ["openai"])
    found = counted_headlines(0)
    numbers = {cause.name: cause.count for cause in found.causes}
    assert numbers["refused.dangling_call"] == 2
    ids: set[str] = set()
    for name, count in numbers.items():
        rows = operator_client.get(f"/?flagged={name}").context["rows"]
        flag = name.partition(".")[0]  # the API has no parts
        listed = operator_client.get(f"/api/v1/memories/?flag={flag}").json()["results"]
        assert len(rows) == len(listed) == count
        ids |= {row.memory.id for row in rows}
    assert found.needing == len(ids) < sum(numbers.values())
    doctor = " ".join(operator_client.get("/doctor/").text.split())
    assert "Your providers would reject 2 conversations now." in doctor
    for cause in found.causes:
        assert cause.cases.new_today == sum(cause.cases.by_day) <= cause.count


def test_the_doctor_leads_only_to_flags_that_conversations_have(operator_client):
    create_and_add("m", MessageWindow(9), [HI])
    assert "Other problems of conversations" not in operator_client.get("/doctor/").text
    create_and_add("n", TokenWindow(40), users("and then " * 100))
    keep()
    shown = words(operator_client.get("/doctor/").content).partition(
        "Other problems of conversations"
    )[2]
    assert "Messages that never reached the model 1 conversation" in shown
    assert "0 conversations" not in shown


def test_a_rule_without_a_repair_has_no_button_where_another_one_has(operator_client):
    twice = [*users("a"), call("1"), result("1"), *users("b"), call("1"), result("1")]
    create_and_add("m", MessageWindow(20), [*twice, call("2"), HI])
    keep()
    page = tree(operator_client.get("/doctor/?rule=reused_call_id").text)
    assert "Repair memory…" in "".join(page.itertext()), "call 2 has no result"
    labels = ["".join(each.itertext()).strip() for each in page.findall(".//main//button")]
    assert "" not in labels


def test_each_line_says_what_happened_in_its_newest_case(fleet):
    choose_providers("", ["openai"])
    told = {cause.name: cause.words for cause in counted_headlines(0).causes}
    assert told["refused.dangling_call"] == "message #5 breaks the rule"
    assert told["never_in_memory"].endswith("the limit is 40 tokens")
    assert "repeated in #4" in told["user_repeated"]


def test_it_asks_for_the_providers_until_they_are_chosen(operator_client, fleet):
    page = operator_client.get("/")
    assert "Which providers do you use?" in page.text
    assert "refused" not in [cause.name for cause in page.context["headlines"].causes]


def test_who_cannot_choose_providers_reads_who_can(client, django_user_model, fleet):
    make_groups(DEFAULT_DB_ALIAS)  # tests that empty all tables delete them
    viewer = django_user_model.objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    client.force_login(viewer)
    found = words(client.get("/").content)
    assert "No provider is chosen yet. Only an admin can choose the providers." in found
    assert "Which providers do you use?" not in found


def test_later_puts_the_question_off_until_tomorrow(operator_client, admin_client, fleet):
    assert admin_client.post("/doctor/providers/", {"later": "1"}).url == "/"
    assert "Which providers" not in admin_client.get("/").text
    assert "Which providers" in operator_client.get("/").text
    session = admin_client.session
    session["providers_asked_later"] = "2026-01-01"
    session.save()
    assert "Which providers" in admin_client.get("/").text


def test_a_cause_without_cases_is_struck_until_tomorrow(operator_client, fleet):
    choose_providers("", ["openai"])
    assert not counted_headlines(0).resolved
    services.clear_messages("refused")
    keep()
    (line,) = (
        cause for cause in counted_headlines(0).causes if cause.name == "refused.dangling_call"
    )
    assert (line.count, line.cases.new_today) == (1, 1)
    assert line.cases.begun[-1] == 2, "the spark keeps the resolved one"
    services.clear_messages("both")
    keep()
    found = counted_headlines(0)
    assert [(each.name, each.count) for each in found.resolved] == [("refused", 1)]
    assert "refused" not in [cause.name for cause in found.causes]
    assert "no conversation left today" in words(operator_client.get("/").content)
