from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import UserMessage, queries, services
from chatmemory.converters import address, memory_id_at
from chatmemory.core.policies import MessageWindow

from ..properties import examples

URL = "/api/v1/memories/"
WINDOW = {"kind": "message_window", "max_messages": 20}


def test_it_creates(api):
    response = api.post(URL, {"id": "a/b", "policy": WINDOW, "labels": {"team": "x"}})
    assert response.status_code == 201
    assert response["Location"].endswith("/api/v1/memories/a~2Fb/")
    assert response.data["policy"]["estimator"] == "gpt-4o"
    assert response.data["last_step"] == 0


def test_it_refuses_an_id_that_is_taken(api, memory_id):
    response = api.post(URL, {"id": memory_id, "policy": WINDOW})
    assert response.status_code == 409
    assert memory_id in response.data["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"policy": WINDOW}, "id"),
        ({"id": "m"}, "policy"),
        ({"id": "m", "policy": {"kind": "nothing"}}, "policy"),
        ({"id": "m", "policy": {"kind": "token_window", "max_tokens": 0}}, "policy"),
        ({"id": "m", "policy": {**WINDOW, "max_messages": True}}, "policy"),
        ({"id": "m", "policy": {**WINDOW, "typo": 1}}, "policy"),
        ({"id": "m", "policy": {**WINDOW, "max_messages": 10**30}}, "policy"),
        ({"id": "m", "policy": WINDOW, "label": {}}, "label"),
        ([], None),
    ],
)
def test_bad_bodies_get_problem_details_and_change_nothing(api, body, field):
    response = api.post(URL, body)
    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    assert response.data["title"]
    assert response.data["type"].startswith("urn:chatmemory:")
    assert response.data.get("field") == field
    assert not queries.any_memory()


@pytest.mark.parametrize(
    ("method", "request_", "type_"),
    [
        ("PUT", {}, "method-not-allowed"),
        ("GET", {"HTTP_ACCEPT": "text/html"}, "not-acceptable"),
        ("POST", {"data": "x", "content_type": "text/plain"}, "unsupported-media-type"),
    ],
)
def test_a_problem_has_a_type(api, method, request_, type_):
    response = api.generic(method, URL, **request_)
    assert response.data["type"] == f"urn:chatmemory:{type_}"


def test_a_post_without_a_trailing_slash_is_redirected_with_its_body(api):
    response = api.post(URL.rstrip("/"), {"id": "m", "policy": WINDOW}, follow=True)
    assert response.redirect_chain == [(URL, 308)]
    assert response.status_code == 201


def test_a_bad_limit_is_refused_in_langchain4js_words(api):
    body = {"id": "m", "policy": {"kind": "token_window", "max_tokens": -1}}
    assert api.post(URL, body).data["detail"] == "maxTokens must be greater than zero, but is: -1"


@pytest.mark.parametrize("raw", ["{", "[1,]", "NaN", '{"a":' * 100_000, "9" * 10_000, '"\\ud800"x'])
def test_invalid_json_is_a_400(api, raw):
    response = api.generic("POST", URL, raw, content_type="application/json")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


def test_invalid_utf_8_is_a_400(api):
    response = api.generic("POST", URL, b'{"id":"\xff"}', content_type="application/json")
    assert response.status_code == 400
    assert "UTF-8" in response.data["detail"]


def test_it_shows_a_conversation(api, memory_id):
    response = api.get(f"{URL}{memory_id}/")
    assert response.data["id"] == memory_id
    assert response["ETag"] == '"0"'


def test_an_unknown_id_is_not_found(api):
    response = api.get(f"{URL}nobody/")
    assert response.status_code == 404
    assert "'nobody'" in response.data["detail"]


def test_it_changes_policy_and_labels_as_steps(api, memory_id):
    services.add(memory_id, [UserMessage("a")])
    body = {"policy": {"kind": "token_window", "max_tokens": 99}, "labels": {"a": "b"}}
    response = api.patch(f"{URL}{memory_id}/", body)
    assert response.data["policy"]["max_tokens"] == 99
    assert response.data["version"] == 3


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([], "labels must be an object with string values"),
        (None, "This field may not be null."),
        ({"a": None}, 'label "a" must be a string, but is: null'),
        ({"ä": [True, "ö"]}, 'label "ä" must be a string, but is: [true,"ö"]'),
        ({"a": ["b" * 99]}, f'label "a" must be a string, but is: ["{"b" * 38}…'),
        ({"": "b"}, "label '' is empty or longer than 255 characters"),
        ({"import_digest": ""}, "label 'import_digest' is kept for imports: choose another name"),
        ({str(n): "" for n in range(65)}, "a conversation can have up to 64 labels, not 65"),
    ],
)
def test_invalid_labels_are_named(api, memory_id, labels, words):
    for response in (
        api.patch(f"{URL}{memory_id}/", {"labels": labels}),
        api.post(URL, {"id": "new", "policy": WINDOW, "labels": labels}),
    ):
        assert (response.status_code, response.data["field"]) == (422, "labels")
        assert response.data["detail"] == words


def test_it_changes_nothing_for_a_stale_version(api, memory_id):
    response = api.patch(f"{URL}{memory_id}/", {"policy": WINDOW}, headers={"If-Match": '"7"'})
    assert response.status_code == 412
    assert queries.memory(memory_id).policy == MessageWindow(3)


def test_it_deletes(api, memory_id):
    assert api.delete(f"{URL}{memory_id}/").status_code == 204
    assert api.delete(f"{URL}{memory_id}/").status_code == 404


@examples(40)
@given(
    st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40
    )
)
def test_any_id_is_reachable(api, memory_id):
    assert memory_id_at(address(memory_id)) == memory_id
    created = api.post(URL, {"id": memory_id, "policy": WINDOW})
    assert created.status_code in (201, 409)
    assert api.get(f"{URL}{address(memory_id)}/").data["id"] == memory_id
    assert api.get(f"/api/v1/store/{address(memory_id)}/").json() == []


@pytest.mark.parametrize("memory_id", [".", "..", "a/b", "a b", "ü", "~", "%2F", "?", "#", "a.b"])
def test_awkward_ids_have_an_address(api, memory_id):
    api.post(URL, {"id": memory_id, "policy": WINDOW})
    assert api.get(f"{URL}{address(memory_id)}/").data["id"] == memory_id


@pytest.mark.parametrize("segment", ["~", "~2", "~FF", "a~zz"])
def test_invalid_path_segments_are_not_found(api, segment):
    assert api.get(f"{URL}{segment}/").status_code == 404
