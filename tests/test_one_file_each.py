"""A rule, a card and a kind of policy, each registered from one file, are on the page, in the list
and in the API.
"""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.lint.catalog import RULES
from chatmemory.windows.policies import KINDS
from inspector.rooms.doctor.diagnosing import DiagnosisKeeper

from .a_kind import PageWindow
from .a_rule import RULE
from .conversations import create_and_add, numbered

pytestmark = pytest.mark.django_db
PAGE = "/c/m/"


def test_a_rule(operator_client, api, monkeypatch):
    before = DiagnosisKeeper().version()
    monkeypatch.setitem(RULES, RULE.id, RULE)
    assert DiagnosisKeeper().version() != before, "all that was examined is examined anew"
    create_and_add("m", MessageWindow(9), [UserMessage("WHERE IS IT?")])
    create_and_add("calm", MessageWindow(9), [UserMessage("Where is it?")])
    for memory_id in ("m", "calm"):
        services.keep(memory_id)
    assert "A message that shouts (#1)" in operator_client.get(f"{PAGE}?open=providers").text
    listed = operator_client.get("/doctor/?rule=shouting").text
    assert f'href="{PAGE}' in listed
    assert "/c/calm/" not in listed
    (found,) = api.get("/api/v1/doctor/?rule=shouting").json()["results"]
    (problem,) = found["problems"]
    assert (found["id"], problem["rule"], problem["since"]) == ("m", "shouting", 1)
    assert "shouting" in str(api.get("/api/v1/schema/").content)


def test_a_card(operator_client, settings):
    create_and_add("m", MessageWindow(9), numbered(2))
    assert "Part card at 2" not in operator_client.get(PAGE).text
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.a_room"]
    assert "Part card at 2" in operator_client.get(PAGE).text
    assert "A badge" in operator_client.get("/").text


def test_a_kind_of_policy(operator_client, api):
    assert api.get("/api/v1/memories/?policy=page_window").status_code == 422
    KINDS.register(PageWindow.kind, PageWindow)
    try:
        create_and_add("m", PageWindow(2), numbered(3))
        assert "Page window" in (page := operator_client.get(PAGE).text)
        assert "2 pg" in " ".join(page.split())
        assert "Page" in operator_client.get("/?policy=page_window").text
        (found,) = api.get("/api/v1/memories/?policy=page_window").json()["results"]
        assert (found["policy"]["kind"], found["load"]) == ("page_window", 2)
    finally:
        KINDS.unregister(PageWindow.kind)
