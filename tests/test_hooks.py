"""Each hook of a room, tried with a room that is made for it (tests/a_room)."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.core.checks import run_checks
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatmemory import MemoryNotFound, MessageWindow, UserMessage, services
from chatmemory.access.scopes import Scope
from chatmemory.exceptions import MessageNotFound
from chatmemory.flags import flag_named
from chatmemory.ledger.verification import verify
from chatmemory.reading import history
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.kinds import IncidentKind
from chatmemory.room import Erased
from chatmemory.rooms import known_incidents, providers_in_use
from inspector.conversation.keeping import SECTION
from inspector.conversation.state import conversation_state
from inspector.live import with_live_streams
from inspector.shell.agents import Agent
from inspector.shell.room import Place
from inspector.shell.rooms import tools
from inspector.shell.state import ConversationQuery

from .a_room.apps import ARoom
from .conversations import create_and_add

pytestmark = pytest.mark.django_db
PAGE = "/c/m/"
NOT_AVAILABLE = "The room of tests is not available."


@pytest.fixture(autouse=True)
def room(settings):
    """The room, installed."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.a_room"]
    ARoom.failing, ARoom.erased, ARoom.observed = set(), [], []
    return ARoom


@pytest.fixture(autouse=True)
def conversation():
    create_and_add("m", MessageWindow(3), [UserMessage(f"message {n}") for n in range(5)])


ALWAYS = ("fields", "top", "flag", "link", "report", "report_beside", "history", "below_memory")
OF_A_STEP = (*ALWAYS, "card", "above_step", "below_step")


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", OF_A_STEP),
        ("counted=instead", OF_A_STEP),
        ("counted=answered", (*ALWAYS, "answer", "card")),
        ("msg=4", (*ALWAYS, "below_reason", "below_text", "below_message")),
        (
            "msg=4&counted=answered",
            (*ALWAYS, "answer", "below_reason", "below_text", "below_message"),
        ),
    ],
)
def test_a_part_is_shown_at_its_place(operator_client: Client, query, places):
    page = operator_client.get(f"{PAGE}?{query}").text
    assert [place for place in Place if f"Part {place} at" in page] == [*places]


def test_parts_are_in_the_order_of_the_page(operator_client):
    page = operator_client.get(PAGE).text
    of_page = ["Part fields", "Part top", "<h1", "Part flag", "Part link", "Part report"]
    of_panes = ['id="h-h"', "Part history", 'id="h-m"', "Part below_memory", 'id="h-w"']
    of_panel = ["Part card", "Part above_step", ">Step 5</h2>", "Part below_step"]
    places = [page.index(words) for words in (*of_page, *of_panes, *of_panel)]
    assert places == sorted(places)


def test_a_room_marks_texts_messages_and_steps(operator_client):
    page = operator_client.get(f"{PAGE}?counted=marked").text
    assert page.count("<mark>message</mark> ") > 5
    assert len(re.findall(r'<li class="said [^"]*is-hit[^"]*"\s+id="said-2"', page)) == 1
    assert 'aria-label="Marked at steps 2 to 3"' in page
    assert f"{PAGE}?at=4&amp;msg=3&amp;counted=marked" not in page
    assert f"{PAGE}?at=4&amp;counted=marked" in page
    assert "is-hit" not in operator_client.get(PAGE).text


def test_without_marks_of_a_room_that_fails_the_page_is_shown(operator_client, room, caplog):
    room.failing = {"marks"}
    assert "message 4" in operator_client.get(f"{PAGE}?counted=marked").text
    assert "on purpose" in caplog.text


def test_a_room_selects_a_message_that_exists(operator_client):
    assert "Why did #2 leave?" in operator_client.get(f"{PAGE}?counted=%232").text
    assert ">Step 5</h2>" in operator_client.get(f"{PAGE}?counted=%2399").text
    assert operator_client.get(f"{PAGE}?msg=99").status_code == 404


def test_a_page_waits_for_what_a_part_awaits(operator_client):
    services.keep("m")  # so that no other room has a part that waits
    assert "kept=0" not in operator_client.get(PAGE).text
    assert "kept=0" in operator_client.get(f"{PAGE}?counted=soon").text


def test_a_room_owns_parameters_of_the_page(operator_client):
    assert "Counted: nothing, number None" in operator_client.get(PAGE).text
    assert "Counted: 7, number 12" in operator_client.get(f"{PAGE}?counted=7&numbered=12").text
    assert operator_client.get(f"{PAGE}?numbered=x").status_code == 404


def test_a_room_shows_something_in_the_place_of_a_step(operator_client):
    page = operator_client.get(f"{PAGE}?counted=instead").text
    assert "A panel" in page
    assert "Shown instead" in page
    assert ">Step 5</h2>" not in page
    assert f"{PAGE}?at=4&amp;counted=instead" in page
    assert "A panel" not in operator_client.get(PAGE).text


def test_the_feed_has_the_news_of_rooms(operator_client):
    feed = operator_client.get("/").text
    assert feed.index("The first of 12") < feed.index(" left memory</b>") < feed.index("Long ago")


def test_a_room_reports_facts_that_came_up_again(monkeypatch):
    evidence = apps.get_app_config("chatmemory_evidence")
    monkeypatch.setattr(type(evidence), "incidents", lambda *_: ())
    monkeypatch.setattr(type(evidence), "next_need", lambda *_: None)
    found = {(each.again, each.kind) for each in known_incidents("m")}
    assert found == {(4, IncidentKind.USER_REPEATED)}
    query = ConversationQuery(msg=1, open=frozenset({SECTION}), room_parameters={"numbered": "4"})
    assert conversation_state("m", query).selection.would_keep.need.until == 4


def test_the_answer_about_a_step_has_fields_of_rooms(api):
    assert api.get("/api/v1/memories/m/steps/2/").json()["told"] == "step 2 of m"


def test_a_badge_and_an_item_of_the_menu(operator_client):
    overview = operator_client.get("/").text
    assert overview.count("A badge") == 1
    names = [f"<span>{name}</span>" for name in ("Conversations", "Tests", "API")]
    places = list(map(overview.index, names))
    assert places == sorted(places)


def test_a_column_of_the_overview(operator_client, api):
    create_and_add("longest", MessageWindow(3), [UserMessage(f"message {n}") for n in range(7)])
    create_and_add("shortest", MessageWindow(3), [UserMessage("hi")])
    page = operator_client.get("/").text
    assert page.index(">Steps</a>") < page.index(">Plain</th>")
    assert page.count("c-room") == 2 * (1 + 3)
    assert "5 steps" in page
    page = operator_client.get("/?sort=steps").text
    assert page.index("7 steps") < page.index("5 steps") < page.index("1 steps")
    assert 'aria-sort="descending"' in page
    found = api.get("/api/v1/memories/?ordering=steps").json()["results"]
    assert [each["id"] for each in found] == ["shortest", "m", "longest"]
    assert api.get("/api/v1/memories/?ordering=plain").status_code == 422


def test_the_cells_of_all_rows_are_read_together(operator_client):
    operator_client.get("/")  # keeps the numbers above the table for a while
    counts = []
    for n in range(3):
        create_and_add(f"more-{n}", MessageWindow(3), [UserMessage("hi")])
        with CaptureQueriesContext(connection) as queries:
            operator_client.get(f"/now/?id=m&id=more-0&id=more-{n}")
        counts.append(len(queries))
    assert counts[1:] == counts[:1] * 2


def test_links_are_in_the_order_of_their_places(operator_client):
    page = operator_client.get(PAGE).text
    assert page.index(">Compact<") < page.index("Part link at 5") < page.index(">Compare<")


def test_styles_are_served_where_the_room_says(operator_client):
    assert "a_room/room.css" in operator_client.get(PAGE).text
    assert "a_room/room.css" not in operator_client.get("/").text


@pytest.mark.parametrize(
    ("hook", "path"),
    [
        ("parts", PAGE),
        ("parts", f"{PAGE}?msg=4"),
        ("badges", "/"),
        ("news", "/"),
        ("questions", "/"),
        ("cells", "/"),
    ],
)
def test_a_hook_of_a_page_that_fails_costs_a_line(operator_client, room, caplog, hook, path):
    room.failing = {hook}
    answer = operator_client.get(path)
    assert answer.status_code == 200
    assert (NOT_AVAILABLE in answer.text) == (hook not in ("badges", "cells"))
    assert "message 4" in answer.text
    assert "on purpose" in caplog.text


def test_a_room_asks_a_question_on_the_overview(operator_client):
    page = operator_client.get("/").text
    assert page.index("A question") < page.index('id="search"')


def test_a_room_knows_the_providers_in_use():
    assert providers_in_use("m") == {"openai": ["the model of m"]}
    assert providers_in_use() == {"openai": ["the model of all"]}


def test_a_flag_is_a_filter_of_pages_and_the_api(operator_client, api):
    create_and_add("new", MessageWindow(3), [UserMessage("hi")])
    assert "only just begun" in operator_client.get("/").text
    found = api.get("/api/v1/memories/?flag=short").json()["results"]
    assert [each["id"] for each in found] == ["new"]
    assert MemoryFilter(flag=flag_named("any")).rows().count() == 1


def test_its_services_are_among_all_services(room, settings):
    assert services.answer() == "An answer"
    settings.INSTALLED_APPS = [each for each in settings.INSTALLED_APPS if each != "tests.a_room"]
    with pytest.raises(AttributeError, match="no attribute 'answer'"):
        _ = services.answer


def test_an_erasure_asks_the_rooms(room):
    services.redact("m", 2, actor="operator")
    services.delete("m", actor="operator")
    assert room.erased == [Erased("m", [2]), Erased("m")]


def test_an_erasure_that_a_room_refuses_is_undone(room):
    room.failing = {"erasing"}
    with pytest.raises(LookupError):
        services.redact("m", 2, actor="operator")
    with pytest.raises(LookupError):
        services.delete("m", actor="operator")
    assert history.message("m", 2).text == "message 1"
    with pytest.raises(MessageNotFound):
        services.redact("m", 9, actor="operator")


def test_a_room_checks_what_is_verified(room):
    assert verify("m") is None
    room.failing = {"verifying"}
    assert str(verify("m")) == "'m': the room: is suspicious"


def test_a_room_observes_answers(operator_client, room):
    operator_client.get(PAGE)
    operator_client.post(PAGE)
    assert room.observed == [
        ("GET", "inspector:conversation", 200),
        ("POST", "inspector:conversation", 405),
    ]


def test_a_room_answers_beside_django():
    sent: list[dict] = []

    async def django(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def send(message):
        sent.append(message)

    for path in ("/tea/", "/coffee/"):
        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        async_to_sync(with_live_streams(django))(scope, None, send)
    assert [each["status"] for each in sent if "status" in each] == [418, 200]


def test_an_agent_asks_a_room():
    agent = Agent("http://site", Scope("m"))
    (tool,) = [tool for tool in tools() if tool.__name__ == "how_many"]
    answer = tool(agent, "m")
    assert (answer.words, answer.url) == (["5 messages"], "http://site/c/m/")
    with pytest.raises(MemoryNotFound):
        tool(agent, "another")


def test_a_room_that_lacks_another_is_named(room, monkeypatch):
    monkeypatch.setattr(room, "needs", ("cellar",))
    (found,) = [each for each in run_checks() if each.id == "chatmemory.E010"]
    assert "The room 'a_room' needs the room 'cellar'." in str(found)


def test_a_package_that_a_room_lacks_is_named_with_the_line_that_installs_it(room, monkeypatch):
    monkeypatch.setattr(room, "packages", {"json-of-python": "json", "no-such": "no_such.module"})
    (found,) = [each for each in run_checks() if each.id == "chatmemory.E013"]
    assert "The room 'a_room' needs the package 'no-such'." in str(found)
    assert "pip install no-such" in found.hint
    assert f"remove {room.name!r} from INSTALLED_APPS" in found.hint
