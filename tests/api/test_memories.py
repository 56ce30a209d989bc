"""Conversations over HTTP: create, show, change, delete, and their ids in URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import UserMessage, services
from chatmemory.converters import address
from chatmemory.reading.conversations import any_memory

from ..properties import examples
from .messages import URL as ONE

URL = "/api/v1/memories/"
WINDOW = {"kind": "message_window", "max_messages": 20}


def test_it_creates(api):
    response = api.post(URL, {"id": "a/b", "policy": WINDOW, "labels": {"team": "x"}})
    assert response.status_code == 201
    assert response["Location"].endswith("/api/v1/memories/a~2Fb/")
    assert response.data["policy"]["estimator"] == "gpt-4o"
    assert response.data["last_step"] == 0
    again = api.post(URL, {"id": "a/b", "policy": WINDOW})
    assert (again.status_code, again.data["title"]) == (409, "Conversation already exists")
    assert "'a/b'" in again.data["detail"]


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({"policy": WINDOW}, "id", "required"),
        ({"id": "m"}, "policy", ""),
        ({"id": "m", "policy": {"kind": "nothing"}}, "policy", "kind"),
        (
            {"id": "m", "policy": {"kind": "token_window", "max_tokens": -1}},
            "policy",
            "maxTokens must be greater than zero, but is: -1",
        ),
        ({"id": "m", "policy": {**WINDOW, "max_messages": True}}, "policy", ""),
        ({"id": "m", "policy": {**WINDOW, "typo": 1}}, "policy", "typo"),
        ({"id": "m", "policy": {**WINDOW, "max_messages": 10**30}}, "policy", ""),
        ([], None, "the body must be a JSON object"),
    ],
)
def test_bad_bodies_get_problem_details_and_change_nothing(api, body, field, why):
    response = api.post(URL, body)
    assert (response.status_code, response.data.get("field")) == (422, field)
    assert response["Content-Type"] == "application/problem+json"
    assert response.data["type"] == "urn:chatmemory:invalid-value"
    assert why in response.data["detail"]
    assert not any_memory()


@pytest.mark.parametrize(
    ("method", "path", "body", "unknown", "known"),
    [
        ("post", "", {"id": "m", "policy": WINDOW, "label": {}}, "label", "id, policy, labels"),
        ("get", "?labels=a", None, "labels", "search, policy, label, flag"),
        ("get", "?format=json", None, "format", "search, policy, label, flag"),
        ("post", "?label=a", {"id": "m", "policy": WINDOW}, "label", "none are allowed here"),
    ],
)
def test_unknown_members_and_parameters_are_refused(api, method, path, body, unknown, known):
    answer = getattr(api, method)(f"{URL}{path}", body)
    assert (answer.status_code, answer.data["title"]) == (400, "Unknown name")
    assert answer.data["field"] == unknown
    assert known in answer.data["detail"]
    assert not any_memory()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([], "labels must be an object with string values"),
        (None, "This field may not be null."),
        ({"a": None}, 'label "a" must be a string, but is: null'),
        ({"ä": [True, "ö"]}, 'label "ä" must be a string, but is: [true,"ö"]'),
        ({"a": ["b" * 99]}, f'label "a" must be a string, but is: ["{"b" * 38}…'),
        (
            {"": "b"},
            (
                "a label name must have 1 to 255 characters, and a label value at most 255, "
                "unlike the label ''"
            ),
        ),
        (
            {"import_digest": ""},
            "the label 'import_digest' is reserved for imports: choose a different name",
        ),
        ({str(n): "" for n in range(65)}, "a conversation can have at most 64 labels, but has 65"),
    ],
)
def test_invalid_labels_are_named(api, memory_id, labels, words):
    for response in (
        api.patch(ONE, {"labels": labels}),
        api.post(URL, {"id": "new", "policy": WINDOW, "labels": labels}),
    ):
        assert (response.status_code, response.data["field"]) == (422, "labels")
        assert response.data["detail"] == words


def test_a_post_without_a_trailing_slash_is_redirected_with_its_body(api):
    response = api.post(URL.rstrip("/"), {"id": "m", "policy": WINDOW}, follow=True)
    assert response.redirect_chain == [(URL, 308)]
    assert response.status_code == 201


def test_it_shows_changes_and_deletes(api, memory_id):
    services.add(memory_id, [UserMessage("a")])
    body = {"policy": {"kind": "token_window", "max_tokens": 99}, "labels": {"a": "b"}}
    response = api.patch(ONE, body)
    assert (response.data["policy"]["max_tokens"], response.data["version"]) == (99, 3)
    shown = api.get(ONE).data
    assert shown == response.data
    assert (shown["id"], shown["address"], shown["labels"]) == (memory_id, memory_id, {"a": "b"})
    assert api.delete(ONE).status_code == 204
    for gone in (api.delete(ONE), api.get(ONE)):
        assert (gone.status_code, gone.data["title"]) == (404, "Conversation not found")
        assert f"'{memory_id}'" in gone.data["detail"]


# Ids


def reaches(api, memory_id: str) -> None:
    created = api.post(URL, {"id": memory_id, "policy": WINDOW})
    assert created.status_code in (201, 409)
    assert api.get(f"{URL}{address(memory_id)}/").data["id"] == memory_id
    assert api.get(f"/api/v1/store/{address(memory_id)}/").json() == []


@examples(20)
@given(
    st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40
    )
)
def test_any_id_is_reachable(api, memory_id):
    reaches(api, memory_id)


def test_awkward_ids_are_reachable(api):
    for memory_id in (".", "..", "a/b", "a b", "ü", "~", "%2F", "?", "#", "a.b"):
        reaches(api, memory_id)


@pytest.mark.parametrize("segment", ["~", "~2", "~FF", "a~zz"])
def test_invalid_path_segments_are_not_found(api, segment):
    assert api.get(f"{URL}{segment}/").status_code == 404
