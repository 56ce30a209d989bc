"""Problem details are written in one place; the docs and the OpenAPI document list them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions as drf

from chatmemory import exceptions as core
from chatmemory.api import errors
from chatmemory.api.errors import CONTENT_TYPE, Problem

from .messages import URL

ROOT = Path(__file__).parents[2]
MEMORIES = "/api/v1/memories/"


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def test_a_problem_is_the_same_bytes_everywhere():
    members = {"field": "\udfff"}  # which UTF-8 cannot encode
    problem = Problem(409, "Policy required", "not \ud800", members, {"Retry-After": "2"})
    expected = {
        "type": "urn:chatmemory:policy-required",
        "title": "Policy required",
        "status": 409,
        "detail": "not \\ud800",
        "field": "\\udfff",
    }
    response = problem.to_http_response()
    assert problem.to_dict() == json.loads(problem.to_json()) == json.loads(response.content)
    assert problem.to_dict() == problem.to_api_response().data == expected
    for each in (response, problem.to_api_response()):
        assert each.status_code == 409
        assert each["Retry-After"] == "2"
    assert response["Content-Type"] == CONTENT_TYPE == problem.to_api_response().content_type


def test_problem_details_have_one_writer():
    written = {
        str(file.relative_to(ROOT))
        for folder in ("chatmemory", "inspector")
        for file in (ROOT / folder).rglob("*.py")
        if f'"{CONTENT_TYPE}"' in file.read_text() or "urn:chatmemory:{" in file.read_text()
    }
    assert written == {"chatmemory/api/errors.py"}


def test_every_chatmemory_error_has_a_status():
    places = [each for each, _, _ in errors.KINDS]
    for kind in subclasses(core.ChatMemoryError) - {core.ChatMemoryError}:
        if kind.__module__ == core.__name__:
            above = [each for each in places if issubclass(kind, each)]
            assert above, kind
            assert kind not in places or above[0] is kind, "it must stand before its base class"


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


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "title"),
    [
        ("GET", f"{URL}messages/9/", {}, 404, "Message not found"),
        ("GET", f"{URL}steps/9/", {}, 404, "Step not found"),
        ("GET", f"{URL}messages/?at=9", {}, 404, "Step not found"),
        ("GET", f"{URL}messages/?at=x", {}, 422, "Invalid value"),
        ("GET", f"{URL}messages/?as=x", {}, 422, "Invalid value"),
        ("GET", f"{URL}messages/?as=claude_code", {}, 422, "Invalid value"),
        ("GET", f"{URL}nothing/", {}, 404, "Not found"),
        ("GET", f"{MEMORIES}nobody/", {}, 404, "Conversation not found"),
        ("GET", f"{MEMORIES}nobody/incidents/", {}, 404, "Conversation not found"),
        ("PUT", MEMORIES, {}, 405, "Method not allowed"),
        ("GET", MEMORIES, {"HTTP_ACCEPT": "text/html"}, 406, "Not acceptable"),
        ("POST", MEMORIES, {"content_type": "text/plain"}, 415, "Unsupported media type"),
        ("POST", "/api/v1/schema/", {}, 405, "Method not allowed"),
        ("GET", "/api/v1/schema/?format=x", {}, 404, "Not found"),
    ],
)
def test_titles_name_the_problem(api, memory_id, method, path, more, status, title):
    response = api.generic(method, path, "x" if more else "", **more)
    assert response.headers["Content-Type"] == CONTENT_TYPE
    told = response.json()
    assert (response.status_code, told["status"], told["title"]) == (status, status, title)
    assert told["type"] == f"urn:chatmemory:{title.lower().replace(' ', '-')}"
