"""Hostile URLs and searches, on the database of the test run."""

from __future__ import annotations

import base64
import json

import pytest

from chatmemory import UserMessage, services

PATHS = [
    "/?q=%00",
    "/?q=%ED%A0%80",
    "/?q=%25_%5C",
    "/?q=" + "x" * 5_000,
    "/?sort=activity&older=",
    "/c/~00/",
    "/c/order-7741/?find=%00",
    "/c/order-7741/?find=%25",
    "/c/order-7741/?at=1&with=2",
    "/c/order-7741/?at=1&with=999",
    "/c/order-7741/?before=0",
    "/c/order-7741/?after=999999999999999999",
    "/c/order-7741/?msg=0",
    "/c/" + "x" * 3_000 + "/",
    "/c/~FF~FE/",
    "/api/v1/memories/?search=%00",
    "/api/v1/memories/?label=%00",
    "/api/v1/memories/?label=a__b:c",
    "/api/v1/memories/?cursor=%00",
    "/api/v1/memories/~00/",
    "/api/v1/store/~00/",
    "/api/v1/memories/order-7741/history/?around=999999999999999999",
    "/api/v1/memories/order-7741/steps/999999999999999999/",
    "/api/v1/memories/order-7741/messages/99999999999999999999999/",
]


def cursor(*value) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.fixture(autouse=True)
def _said(memory_id):
    services.add(memory_id, [UserMessage("100 % sure"), UserMessage("a_b")])


@pytest.mark.parametrize("path", PATHS)
def test_hostile_urls_get_a_page_or_a_refusal(operator_client, path):
    assert operator_client.get(path).status_code in (200, 400, 404, 422)


@pytest.mark.parametrize("sort", ["activity", "said", "forgotten"])
@pytest.mark.parametrize(
    "older",
    [
        cursor(5, "x", False),
        cursor("2026-01-01T00:00:00+00:00", "x", False),
        cursor("2026-01-01", "x", False),
        cursor(2**80, "x", False),
        cursor(1, "\0", False),
        cursor(None, None, False),
        cursor([[]], {}, True),
        cursor(),
        "%00",
        "é",
    ],
)
def test_invalid_cursors_show_the_first_page(operator_client, sort, older):
    assert operator_client.get("/", {"sort": sort, "older": older}).status_code == 200


@pytest.mark.parametrize("estimator", ["gpt-4o\0", "gpt-4o" + "x" * 300, "o\ud800", "o\n"])
def test_invalid_estimator_names_are_refused(operator_client, estimator):
    body = {"policy": {"kind": "token_window", "max_tokens": 9, "estimator": estimator}}
    response = operator_client.patch(
        "/api/v1/memories/order-7741/", json.dumps(body), content_type="application/json"
    )
    assert response.status_code == 422


@pytest.mark.parametrize(("phrase", "seq"), [("%25", 1), ("_", 2)])
def test_sql_wildcards_are_searched_literally(operator_client, phrase, seq):
    page = operator_client.get(f"/c/order-7741/?find={phrase}").context["page"]
    (group,) = page.panel.found.groups
    assert [mention.row.seq for mention in group.mentions] == [seq]


@pytest.mark.parametrize("path", ["/api/", "/api/v1/memories/~zz/", "/api/v1/no/", "/api/v1/%00"])
def test_an_unknown_url_of_the_api_is_a_problem(operator_client, path):
    response = operator_client.get(path)
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


def test_an_unreadable_request_gets_a_page_or_a_problem(operator_client):
    page = operator_client.get("/", headers={"host": "evil.example"})
    assert page.status_code == 400
    assert b"Bad request" in page.content
    problem = operator_client.get("/api/v1/memories/", headers={"host": "evil.example"})
    assert (problem.status_code, problem["Content-Type"]) == (400, "application/problem+json")
