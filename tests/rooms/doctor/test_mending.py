"""The lines of the doctor: what one mend would cure, and what only a client can change."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, services
from chatmemory.models import Memory
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.overview.causes import counted_headlines
from inspector.overview.common import Everywhere
from inspector.overview.selection import midnight
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.mending import mends
from inspector.rooms.doctor.reads import issues

from ...conversations import BRIEF, HI, call, create_and_add, keep, result
from ...images import made_once
from ...inspector.markup import tree, words

pytestmark = pytest.mark.django_db


@made_once
def fleet() -> None:
    """Four that one mend cures, and three lists of a client."""
    choose_providers("", ["openai", "anthropic"])
    client = DjangoChatMemoryStore()
    for n in range(3):
        create_and_add(f"shop/dangling-{n}", MessageWindow(9), [HI, call("1"), HI])
        client.update_messages(f"hooli/list-{n}", [BRIEF, result("71"), HI])
    create_and_add("orphan", MessageWindow(9), [HI, result("9"), HI])
    create_and_add("fine", MessageWindow(9), [HI])
    keep()


def mends_now():
    everywhere = Everywhere(Memory.objects.count())
    return mends(issues().used, midnight(), is_used=True, everywhere=everywhere)


@pytest.mark.needs("repairs")
def test_a_line_is_what_one_mend_would_cure(fleet):
    found = mends_now()
    lines = {(line.by_client, line.rules[0]): line for line in found.shown}
    assert set(lines) == {
        (False, "dangling_call"),
        (True, "orphan_result"),
        (False, "orphan_result"),
    }
    mend, theirs = lines[False, "dangling_call"], lines[True, "orphan_result"]
    assert (mend.count, mend.new, mend.verb) == (3, 3, "Repair all 3…")
    assert mend.common.words == ["shop/"]
    assert (mend.common.count, mend.common.cases) == (3, 3)
    assert (theirs.count, theirs.verb) == (3, "")
    assert "[1] tool result, call 71  <- here" in theirs.to_copy.splitlines()
    assert [line.new for line in found.shown] == sorted((3, 3, 1), reverse=True)


def test_a_list_of_a_client_is_never_mended(fleet, operator_client):
    page = operator_client.get("/doctor/").text
    assert page.count("Only your client can fix this problem") == 1
    asked = {"provider": "openai", "rule": ["orphan_result", "dangling_call"]}
    shown = operator_client.post("/doctor/repair/", asked).context["repairs"]
    assert set(shown.done) == {"orphan", *(f"shop/dangling-{n}" for n in range(3))}
    version = Memory.objects.get(pk="hooli/list-0").last_step
    repair = operator_client.get("/c/hooli~2Flist-0/repair/")
    assert "Only your client can fix this problem" in repair.text
    operator_client.post(
        "/c/hooli~2Flist-0/repair/",
        {"provider": "openai", "version": repair.context["memory"].version},
    )
    assert Memory.objects.get(pk="hooli/list-0").last_step == version


@pytest.mark.needs("repairs")
def test_a_refused_conversation_has_its_sentence_on_top(fleet, operator_client):
    page = operator_client.get("/c/shop~2Fdangling-0/").text
    report = page[page.index('<div id="report">') : page.index('id="tape"')]
    said = words(report.encode())
    assert "OpenAI, Anthropic would reject this memory: a tool call without its result." in said
    assert "Repair memory…" in said
    client = operator_client.get("/c/hooli~2Flist-0/").text
    report = client[client.index('<div id="report">') : client.index('id="tape"')]
    assert "Only your client can fix this problem" in words(report.encode())
    assert "Repair memory…" not in words(report.encode())
    fine = operator_client.get("/c/fine/").text
    assert "would reject" not in fine


def test_what_is_not_refused_is_folded(fleet, operator_client):
    services.add("fine", [HI])
    page = operator_client.get("/doctor/").text
    folded = page[page.index('class="folds"') :]
    assert "Providers you do not use" in folded
    assert "<details open" not in folded


def test_a_line_says_whose_its_cases_are_and_since_when(fleet):
    services.change("shop/dangling-0", labels={"release": "4.2"})
    create_and_add("shop/fine", MessageWindow(9), [HI])
    create_and_add("mill/dangling", MessageWindow(9), [HI, call("1"), HI])
    keep()
    line = next(each for each in mends_now().shown if each.rules[0] == "dangling_call")
    assert [(each.tenant, each.count, each.conversations) for each in line.groups] == [
        ("shop/", 3, 4),
        ("mill/", 1, 1),
    ]
    assert line.groups[0].newest == "shop/dangling-2"
    assert line.groups[0].label == ""  # one of three has it
    assert line.since == min(line.cases[f"shop/dangling-{n}"].problem.at for n in range(3))


def test_the_doctor_and_the_overview_say_the_same_of_a_cause(fleet, operator_client):
    line = next(each for each in mends_now().shown if each.rules[0] == "dangling_call")
    cause = next(
        each for each in counted_headlines(0).causes if each.name == "refused.dangling_call"
    )
    assert (cause.common, cause.since, cause.count) == (line.common, line.since, line.count)


def test_an_error_is_pasted_on_the_page_of_the_doctor(fleet, operator_client):
    page = operator_client.get("/doctor/").text
    form = page[page.index('<form class="doc__error"') :]
    assert 'action="/doctor/error/"' in form[: form.index(">")]
    answer = operator_client.post("/doctor/error/", {"error": "prompt is too long: 9 tokens > 8"})
    assert "The prompt is too long" in answer.text


def test_the_line_that_the_overview_leads_to_is_open(fleet, operator_client):
    cause = next(
        each for each in counted_headlines(0).causes if each.name == "refused.dangling_call"
    )
    page = tree(operator_client.get(cause.address).text)
    opened = [each for each in page.iter("article") if each.find("details").get("open") is not None]
    assert [each.get("data-id") for each in opened] == ["mend-refused-dangling_call"]
    shown = tree(operator_client.get("/doctor/").text)
    assert all(each.find("details").get("open") is None for each in shown.iter("article"))


def test_a_single_line_is_open(operator_client):
    choose_providers("", ["openai"])
    create_and_add("m", MessageWindow(9), [HI, call("1"), HI])
    keep()
    (line,) = tree(operator_client.get("/doctor/").text).iterfind(".//section//article")
    assert line.find("details").get("open") is not None
