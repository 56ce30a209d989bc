"""Problem details are written in one place; the OpenAPI document and the docs list them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions as drf

from chatmemory.api import errors
from chatmemory.api.problems import CONTENT_TYPE, Problem
from chatmemory.core import exceptions as core

from .said import URL, add, user

ROOT = Path(__file__).parents[2]


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def test_a_problem_is_the_same_bytes_everywhere():
    problem = Problem(409, "Policy required", "why", {"field": "policy"}, {"Retry-After": "2"})
    expected = {
        "type": "urn:chatmemory:policy-required",
        "title": "Policy required",
        "status": 409,
        "detail": "why",
        "field": "policy",
    }
    response = problem.to_http_response()
    assert problem.to_dict() == json.loads(problem.to_json()) == json.loads(response.content)
    assert problem.to_dict() == problem.to_api_response().data == expected
    for each in (response, problem.to_api_response()):
        assert each.status_code == 409
        assert each["Retry-After"] == "2"
    assert response["Content-Type"] == CONTENT_TYPE == problem.to_api_response().content_type


def test_a_problem_that_quotes_any_text_can_be_encoded():
    problem = Problem(422, "Invalid value", "not \ud800", {"field": "\udfff"})
    assert problem.to_dict()["detail"] == "not \\ud800"
    assert problem.to_dict()["field"] == "\\udfff"


def test_problem_details_have_one_writer():
    written = {
        str(file.relative_to(ROOT))
        for folder in ("chatmemory", "inspector")
        for file in (ROOT / folder).rglob("*.py")
        if f'"{CONTENT_TYPE}"' in file.read_text() or "urn:chatmemory:{" in file.read_text()
    }
    assert written == {"chatmemory/api/problems.py"}


@pytest.mark.parametrize("kind", sorted(subclasses(core.ChatMemoryError), key=str))
def test_every_chatmemory_error_has_a_status(kind):
    if kind.__module__ != core.__name__ or kind is core.ChatMemoryError:
        return
    assert any(issubclass(kind, each) for each, _, _ in errors.KINDS)
    places = [each for each, _, _ in errors.KINDS]
    above = [each for each in places if kind in places and issubclass(kind, each)]
    assert not above or above[0] is kind, "a subclass must stand before its base class"


@pytest.mark.parametrize(
    ("error", "status", "type_"),
    [
        (Http404(), 404, "not-found"),
        (PermissionDenied(), 403, "forbidden"),
        (drf.NotAuthenticated(), 401, "unauthorized"),
        (drf.Throttled(0.2), 429, "too-many-requests"),
        (core.UnsupportedMessage("x"), 422, "unsupported-message"),
        (core.PolicyUnavailable("x"), 409, "policy-unavailable"),
        (core.CorruptRow("x"), 500, "corrupt-row"),
        (errors.InvalidField("at", "x"), 422, "invalid-value"),
    ],
)
def test_errors_become_problems(error, status, type_):
    problem = errors.problem_of(error)
    assert (problem.status, problem.type) == (status, f"urn:chatmemory:{type_}")


def test_an_unexpected_error_is_not_converted():
    assert errors.problem_of(ZeroDivisionError()) is None


@pytest.mark.parametrize("title", [title for _, _, title in errors.KINDS])
def test_the_documentation_lists_every_problem(title):
    text = (ROOT / "docs" / "api.md").read_text()
    assert f"| {title} |" in text


def test_every_change_documents_its_headers(api):
    document = api.get("/api/v1/schema/?format=json").json()
    for path, operations in document["paths"].items():
        for method in {"post", "put", "patch", "delete"} & operations.keys():
            names = {each["name"] for each in operations[method].get("parameters", [])}
            expected = {"If-Match", "Idempotency-Key"}
            if path.endswith(("/simulate/", "/recall/")):
                expected = set()
            elif (path, method) == ("/api/v1/memories/", "post"):
                expected = {"Idempotency-Key"}
            assert expected == names & {"If-Match", "Idempotency-Key"}, (path, method)


def test_every_operation_is_described(api):
    document = api.get("/api/v1/schema/?format=json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            description = operation["description"]
            assert description, (path, method)
            assert description.rstrip()[-1] == ".", (path, method)


@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("messages/9/", 404, "Message not found"),
        ("steps/9/", 404, "Step not found"),
        ("messages/?at=9", 404, "Step not found"),
        ("nothing/", 404, "Not found"),
        ("messages/?as=x", 422, "Invalid value"),
    ],
)
def test_titles_name_the_problem(api, memory_id, path, status, title):
    response = api.get(URL + path)
    assert (response.status_code, response.json()["title"]) == (status, title)


def test_titles_of_changes_name_the_problem(api, memory_id):
    add(api, "a", client_ids=["1"])
    taken = add(api, "b", client_ids=["1"])
    assert (taken.status_code, taken.data["title"]) == (409, "Duplicate client id")
    stale = api.delete(URL, headers={"If-Match": '"7"'})
    assert (stale.status_code, stale.data["title"]) == (412, "Version conflict")
    unknown = api.post("/api/v1/memories/nobody/messages/", {"messages": [user("a")]})
    assert (unknown.status_code, unknown.data["title"]) == (404, "Conversation not found")
    twice = api.post(
        "/api/v1/memories/",
        {"id": memory_id, "policy": {"kind": "message_window", "max_messages": 1}},
    )
    assert (twice.status_code, twice.data["title"]) == (409, "Conversation already exists")
    api.put("/api/v1/store/bare/", [user("a")])
    bare = api.post("/api/v1/memories/bare/messages/", {"messages": [user("a")]})
    assert (bare.status_code, bare.data["title"]) == (409, "Policy required")


def test_problems_of_the_document_are_json(api, client):
    refused = client.get("/api/v1/schema/")
    for response in (refused, api.post("/api/v1/schema/"), api.get("/api/v1/schema/?format=x")):
        assert response.headers["Content-Type"] == CONTENT_TYPE
        assert json.loads(response.content)["status"] == response.status_code


def test_a_format_is_an_unknown_parameter(api, memory_id):
    assert api.get(f"/api/v1/memories/{memory_id}/messages/?format=openai_chat").status_code == 200
