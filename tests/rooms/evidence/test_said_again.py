"""Facts that users had to repeat, and messages that never reached the model, on the overview."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.models import Message
from chatmemory.recall.incidents import incidents_under
from chatmemory.windows.eviction import Reason
from inspector.overview.table import NewsRow, current_feed
from inspector.rooms.evidence.lists import latest_incidents
from tests.conversations import create_and_add, keep, users
from tests.inspector.test_overview import chips, row_of

pytestmark = pytest.mark.django_db
SAID = users("My order is A-1182.", "well", "well", "As I said, A-1182!")
API = "/api/v1/memories/"


def with_incidents(memory_id: str, messages=SAID) -> str:
    create_and_add(memory_id, MessageWindow(2), messages)
    services.keep(memory_id)
    return memory_id


def ids(page) -> list[str]:
    return [row.memory.id for row in page.context["rows"]]


def test_the_line_has_the_fact_and_leads_to_its_step(operator_client):
    with_incidents("told")
    row = row_of(operator_client.get("/"), "told")
    assert "A-1182 had to be repeated by the user, step 4" in row
    assert 'href="/c/told/?at=4"' in row
    asked = [
        *users("My order is A-1182.", "well", "well"),
        AiMessage("Which order?"),
        *users("A-1182"),
    ]
    with_incidents("asked", asked)
    assert "A-1182 had to be repeated by the user, step 5" in row_of(
        operator_client.get("/"), "asked"
    )
    services.add("told", users("well", "well", "Again, A-1182"))
    services.keep("told")
    row = row_of(operator_client.get("/now/?id=told"), "told")
    assert ", step 7" in row
    assert ", 1 of 2" in row


def test_what_nobody_forced_and_calls_are_no_flag(operator_client):
    with_incidents("own", users("My order is A-1182.", "well", "well", "A-1182!"))
    assert "who__again" not in row_of(operator_client.get("/"), "own")
    call = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
    result = ToolExecutionResultMessage("1", "find", "B-7731")
    with_incidents("again", [call, result, *users("a", "b"), call, result])
    assert "who__again" not in row_of(operator_client.get("/"), "again")
    assert len(services.current_incidents("again").incidents) == 1


def test_facts_only_in_a_cleared_result_are_forgotten():
    call = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
    first, *others = (
        ToolExecutionResultMessage("1", "find", f"{code} " + "was seen. " * 20)
        for code in ("B-7731", "a", "b")
    )
    said = [call, first, call, others[0], call, others[1], *users("It is B-7731.")]
    policy = TokenWindow(160, clear_tool_results=1)
    create_and_add("cleared", policy, said)
    (stored,) = services.current_incidents("cleared").incidents
    (replayed,) = incidents_under(policy, said)
    for each in (stored, replayed):
        assert (each.kind, each.again, each.facts[0].last) == ("user_supplied", 7, 2)
        assert each.facts[0].cause is Reason.STUBBED
    assert stored.facts[0].keeping == replayed.facts[0].keeping


def test_it_is_a_filter_newest_first(operator_client):
    for memory_id in ("first", "second"):
        with_incidents(memory_id)
    create_and_add("silent", MessageWindow(2), users("hi"))
    services.add("first", users("thanks"))
    services.keep("first")
    page = operator_client.get("/?flagged=user_repeated")
    assert chips(page)["Users repeated themselves"] == (2, True)
    assert ids(page) == ["second", "first"], "not the last activity"
    assert ids(operator_client.get("/?flag=said_again")) == ["second", "first"]
    assert ids(operator_client.get("/?flagged=user_repeated&sort=said")) == ["first", "second"]
    assert ids(operator_client.get("/?sort=said_again")) == ["second", "first", "silent"]
    assert ids(operator_client.get("/?flagged=any&sort=activity")) == ["first", "second"]
    assert 'href="?flagged=user_repeated"' in operator_client.get("/").content.decode()


@pytest.mark.needs("lab")
def test_from_the_filter_the_lab_looks_for_a_limit_for_all_of_them(operator_client):
    with_incidents("told", SAID)
    create_and_add("silent", MessageWindow(9), users("hi"))
    assert "Find better limits" not in operator_client.get("/").content.decode()
    page = operator_client.get("/?flagged=user_repeated&q=told")
    assert "Find better limits" in page.content.decode()
    lab = operator_client.get(page.context["query"].lab)
    assert lab.status_code == 200
    assert "1 conversation" in lab.content.decode()


def test_without_any_nothing_is_said_of_it(operator_client):
    create_and_add("silent", MessageWindow(9), users("hi"))
    html = operator_client.get("/").content.decode()
    assert "repeated by the user" not in html.replace('value="user_repeated"', "").replace(
        "Users repeated themselves</option>", ""
    )
    assert "never reached" not in html.lower()


def test_uses_by_the_assistant_alone_are_no_flag(operator_client):
    with_incidents("used", [*users("A-1182", "well", "well"), AiMessage("A-1182 is on its way.")])
    assert services.current_incidents("used").incidents
    assert ids(operator_client.get("/?flagged=said_again")) == []
    assert "who__again" not in row_of(operator_client.get("/"), "used")


@pytest.mark.needs("doctor")
def test_messages_that_never_reached_the_model_are_a_flag_and_a_filter(operator_client, api):
    services.create("large", TokenWindow(40))
    call = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
    found = ToolExecutionResultMessage("1", "find", "found " * 26)
    services.add("large", [UserMessage("hi"), call, found])
    create_and_add("small", MessageWindow(9), users("hi"))
    keep()
    for query in ("?flag=never_in_memory", "?flagged=never_in_memory"):
        page = operator_client.get(f"/{query}")
        assert ids(page) == ["large"]
    assert chips(page)["Messages that never reached the model"] == (1, True)
    assert 'href="/c/large/?at=3"' in row_of(page, "large")
    assert "never reached the model · step 3" in row_of(page, "large")
    answer = api.get(f"{API}?flag=never_in_memory").data["results"]
    assert [row["id"] for row in answer] == ["large"]


def test_the_api_has_the_same_filters_and_order(api):
    for memory_id in ("first", "second"):
        with_incidents(memory_id)
    create_and_add("silent", MessageWindow(2), users("hi"))
    asked = f"{API}?flag=said_again&ordering=-said_again&size=1"
    first = api.get(asked).data
    assert [row["id"] for row in first["results"]] == ["second"]
    assert [row["id"] for row in api.get(first["next"]).data["results"]] == ["first"]
    assert len(api.get(f"{API}?flag=any").data["results"]) == 2
    assert len(api.get(f"{API}?ordering=said_again").data["results"]) == 3
    refused = api.get(f"{API}?flag=burnt")
    assert refused.status_code == 422
    assert "user_repeated" in str(refused.data)


def test_the_feed_has_both_in_order(operator_client):
    with_incidents("told")
    services.add("told", users("bye"))
    shown = [
        row.news.context["came_up_again"] if isinstance(row, NewsRow) else "left"
        for row in current_feed()
    ]
    assert shown == ["A-1182 had to be repeated by the user", "left"], "an incident stays on top"
    services.keep("told")
    html = operator_client.get("/now/?seen=1").content.decode()
    assert 'data-id="told 4 again" data-again class="is-new"' in " ".join(html.split())


def test_the_feed_leaves_imports_out():
    services.import_conversation("imported", SAID, MessageWindow(2))
    services.keep("imported")
    assert current_feed() == []


def test_a_message_that_cannot_be_read_takes_no_page_down(operator_client):
    with_incidents("bad")
    Message.objects.filter(memory="bad", seq=4).update(frame="{")
    assert "who__again" not in row_of(operator_client.get("/"), "bad")


def test_stale_rows_have_no_line_after_a_change_of_the_words(operator_client, settings):
    with_incidents("told")
    settings.CHATMEMORY = {**getattr(settings, "CHATMEMORY", {}), "FACT_TERMS": ["well"]}
    assert "who__again" not in row_of(operator_client.get("/"), "told")


def test_a_redaction_takes_the_line_along(operator_client):
    with_incidents("told")
    services.redact("told", 1)
    assert "who__again" not in row_of(operator_client.get("/"), "told")
    assert latest_incidents(9).by_id == {}


def test_the_queries_do_not_depend_on_how_many_have_any(operator_client):
    def query_count() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            operator_client.get("/")
        return len(queries)

    for n in range(3):  # what cases have in common is asked from three on
        with_incidents(f"m{n}")
    few = query_count()
    for n in range(3, 25):
        with_incidents(f"m{n}")
    assert query_count() == few <= 25
