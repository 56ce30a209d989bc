"""The list of conversations: filters, orderings and pages."""

from __future__ import annotations

import base64
import json
from itertools import chain

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import UserMessage, services
from chatmemory.ledger import protocol
from chatmemory.reading.overview import memory_page
from chatmemory.windows.policies import MessageWindow, TokenWindow

from ..conversations import create_and_add

URL = "/api/v1/memories/"
ORDERINGS = ["activity", "created", "fill", "forgotten", "id", "said", "tokens"]


@pytest.fixture
def three(db):
    services.create("alpha", MessageWindow(3), {"team": "a"})
    services.create("beta", TokenWindow(100), {"team": "b"})
    protocol.update_messages("gamma", [UserMessage("the parcel A-1182")])


def ids(response) -> list[str]:
    return [row["id"] for row in response.data["results"]]


def cursor(*value) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["gamma", "beta", "alpha"]),
        ("?ordering=id", ["alpha", "beta", "gamma"]),
        ("?search=ALPH", ["alpha"]),
        ("?search=a-1182", ["gamma"]),
        ("?policy=token_window", ["beta"]),
        ("?policy=client", ["gamma"]),
        ("?label=team:b", ["beta"]),
        ("?label=team&ordering=id", ["alpha", "beta"]),
        ("?active_since=2001-01-01T00:00:00Z&ordering=-said", ["gamma", "beta", "alpha"]),
        ("?active_before=2001-01-01T00:00:00Z", []),
        ("?active_since=2001-01-01&ordering=id&search=&policy=", ["alpha", "beta", "gamma"]),
    ],
)
def test_it_filters_the_list(api, three, query, expected):
    assert ids(api.get(URL + query)) == expected


@pytest.mark.parametrize(
    "query",
    [
        "?ordering=shoe",
        "?ordering=--id",
        "?policy=x",
        "?active_since=never",
        "?active_since=9999-12-31T23:59:59-14:00",
        "?active_before=0001-01-01T00:00:00%2B14:00",
        "?size=0",
        "?size=-1",
        "?size=201",
        "?count=maybe",
        "?size=many",
        "?search=%00",
    ],
)
def test_invalid_filters_are_refused(api, query):
    response = api.get(URL + query)
    assert response.status_code == 422
    assert response.data["field"] == query[1:].partition("=")[0]


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_pages_have_every_conversation_once_in_both_directions(api, db, ordering):
    for number in range(7):
        create_and_add(f"m{number}", MessageWindow(2), [UserMessage("hello")] * (number % 3))
    for sign in ("", "-"):
        pages, url = [], f"{URL}?ordering={sign}{ordering}&size=3"
        while url:
            pages.append(api.get(url).data)
            url = pages[-1]["next"]
        listed = [[row["id"] for row in page["results"]] for page in pages]
        assert [len(page) for page in listed] == [3, 3, 1]
        assert sorted(chain.from_iterable(listed)) == [f"m{number}" for number in range(7)]
        assert pages[0]["previous"] is None
        back = api.get(pages[2]["previous"]).data
        assert [row["id"] for row in back["results"]] == listed[1]
        first = api.get(back["previous"]).data
        assert [row["id"] for row in first["results"]] == listed[0]
        assert first["previous"] is None


def test_changes_on_other_pages_do_not_shift_a_page(api, three):
    first = api.get(f"{URL}?ordering=id&size=2").data
    services.create("aardvark", MessageWindow(3))
    services.delete("beta")
    assert ids(api.get(first["next"])) == ["gamma"]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's query plan")
@pytest.mark.parametrize("ordering", ["-activity", "-created"])
def test_a_later_page_is_read_from_an_index_range(three, ordering):
    first = memory_page(ordering=ordering, size=1)
    with CaptureQueriesContext(connection) as captured:
        memory_page(ordering=ordering, size=1, cursor=first.next)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + captured[0]["sql"])
        (step,) = cursor.fetchall()
    assert step[3].startswith("SEARCH chatmemory_memory USING INDEX memory_by_")


def test_links_keep_the_filters(api, three):
    first = api.get(f"{URL}?ordering=id&size=1&label=team").data
    second = api.get(first["next"])
    assert ids(second) == ["beta"]
    assert second.data["next"] is None


def test_the_page_size_is_limited(api, db):
    for number in range(205):
        services.create(f"m{number}", MessageWindow(2))
    assert len(ids(api.get(URL))) == 50
    assert len(ids(api.get(f"{URL}?size=200"))) == 200


def test_a_list_is_counted_on_request(api, three):
    assert api.get(URL).data["count"] is None
    page = api.get(f"{URL}?count=true&size=1").data
    assert (page["count"], len(page["results"])) == (3, 1)
    assert api.get(f"{URL}?count=true&search=beta").data["count"] == 1
    assert api.get(page["next"]).data["count"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "cD0lMDA%3D",  # base64 of p=%00
        "%00",
        "broken",
        "é",
        cursor(),
        cursor(1),
        cursor(None, None, None),
        cursor([[]], {}, False),
        cursor(2**80, "x", False),
        cursor(1.5, "x", False),
        cursor(True, "x", False),
        cursor("\0", "\0", False),
        cursor("\ud800", "\ud800", False),
        cursor(1, "x", "back"),
    ],
)
def test_invalid_cursors_are_refused(api, three, text):
    for ordering in ("activity", "id", "said"):
        response = api.get(f"{URL}?ordering={ordering}&cursor={text}")
        assert (response.status_code, response.data.get("field")) == (422, "cursor"), ordering


@pytest.mark.parametrize("moment", ["2026-01-01", "9999-12-31T23:59:59-14:00", "now", 7])
def test_a_cursor_without_a_time_zone_is_refused(api, three, moment):
    response = api.get(f"{URL}?cursor={cursor(moment, 'x', False)}")
    assert response.status_code == 422


@pytest.mark.parametrize(
    ("label", "found"),
    [
        ("a:b", ["named", "valued"]),
        ("a:b:c", ["named", "valued too"]),
        ("a:b:", []),
        ("a", ["valued", "valued too"]),
        (":", []),
        ("a" + 300 * ":", []),
    ],
)
def test_a_label_may_have_colons(api, db, label, found):
    services.create("named", MessageWindow(3), labels={"a:b": "c"})
    services.create("valued", MessageWindow(3), labels={"a": "b"})
    services.create("valued too", MessageWindow(3), labels={"a": "b:c"})
    assert ids(api.get(URL, {"label": label, "ordering": "id"})) == found
