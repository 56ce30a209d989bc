"""Hostile addresses, searches and forms get a page, a refusal, or are kept as text."""

from __future__ import annotations

import base64
import gzip
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chatmemory import services
from chatmemory.models import Memory
from chatmemory.reading import conversations

from ..conversations import users

# Beside what tests/fuzz asks for at random.
PATHS = [
    "/?q=%ED%A0%80",
    "/?q=" + "x" * 5_000,
    "/?sort=activity&older=",
    "/c/~00/",
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
DEEP = "[" * 10_000 + "]" * 10_000
DRAFTS = {
    "deep": f'[{{"type":"CUSTOM","attributes":{{"a":{DEEP}}}}}]',
    "long number": '[{"type":"CUSTOM","attributes":{"a":' + "9" * 1_000_000 + "}}]",
    "lone surrogate": r'[{"type":"AI","text":"\ud800"}]',
    "lone surrogate in a name": r'[{"type":"AI","\ud800":1}]',
    "lone surrogate in a role": r'[{"role":"\ud800","content":"x"}]',
    "type that is a list": '[{"type":[1]}]',
    "escaped NUL": r'[{"type":"AI","text":"a\u0000b"}]',
    "NUL": "user: a\0b",
    "no JSON": "[{",
}
FILES = {
    "deep": DEEP.encode(),
    "long number": b"9" * 1_000_000,
    "no UTF-8": b'[{"type":"AI","text":"\xff"}]',
    "packed": gzip.compress(b"[" * 10_000_000),
    "empty": b"",
    "NUL": b"\0",
}
LEADS_AWAY = [
    "//evil.example",
    "https://evil.example",
    "https:evil.example",
    r"/\evil.example",
    r"\\evil.example",
    "\x01//evil.example",
    " //evil.example",
    "javascript:alert(1)",
    "/\r\nLocation: //evil.example",
]


def cursor(*value) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.fixture
def said(memory_id) -> str:
    services.add(memory_id, users("100 % sure", "a_b"))
    return memory_id


@pytest.mark.parametrize("path", PATHS)
def test_hostile_urls_get_a_page_or_a_refusal(operator_client, said, path):
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
def test_invalid_cursors_show_the_first_page(operator_client, said, sort, older):
    assert operator_client.get("/", {"sort": sort, "older": older}).status_code == 200


@pytest.mark.parametrize("estimator", ["gpt-4o\0", "gpt-4o" + "x" * 300, "o\ud800", "o\n"])
def test_invalid_estimator_names_are_refused(operator_client, said, estimator):
    body = {"policy": {"kind": "token_window", "max_tokens": 9, "estimator": estimator}}
    response = operator_client.patch(
        "/api/v1/memories/order-7741/", json.dumps(body), content_type="application/json"
    )
    assert response.status_code == 422


@pytest.mark.parametrize(("phrase", "seq"), [("%25", 1), ("_", 2)])
def test_sql_wildcards_are_searched_literally(operator_client, said, phrase, seq):
    page = operator_client.get(f"/c/order-7741/?find={phrase}").context["page"]
    assert [row.seq for row in page.marks.rows] == [seq]


@pytest.mark.parametrize("path", ["/api/", "/api/v1/memories/~zz/", "/api/v1/no/", "/api/v1/%00"])
def test_an_unknown_url_of_the_api_is_a_problem(operator_client, path):
    response = operator_client.get(path)
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


def test_a_request_under_another_host_gets_a_page_or_a_problem_that_names_the_setting(
    operator_client,
):
    page = operator_client.get("/", headers={"host": "evil.example"})
    assert page.status_code == 400
    assert "Bad request" in page.text
    assert "add the name to CHATMEMORY_HOSTS." in page.text
    problem = operator_client.get("/api/v1/memories/", headers={"host": "evil.example"})
    assert (problem.status_code, problem["Content-Type"]) == (400, "application/problem+json")
    assert problem.json()["detail"].endswith("add the name to CHATMEMORY_HOSTS")
    assert "evil.example" not in page.text + problem.text


@pytest.mark.parametrize("path", ["simulate", "add"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_hostile_scripts_are_refused_or_kept_as_text(operator_client, memory_id, path, draft):
    fields = {"role": "script", "text": DRAFTS[draft]}
    response = operator_client.post(f"/c/{memory_id}/{path}/", fields)
    assert response.status_code == 422
    assert conversations.memory(memory_id).last_step == 0


@pytest.mark.parametrize("path", ["simulate", "add"])
@pytest.mark.parametrize(
    "limit", ["9" * 1_000_000, "-1", "NaN", "1e9", "٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣", "\0"]
)
def test_invalid_limits_are_refused(operator_client, memory_id, path, limit):
    response = operator_client.post(f"/c/{memory_id}/{path}/", {"text": "x", "limit": limit})
    assert response.status_code == 422


@pytest.mark.parametrize("file", FILES)
def test_hostile_files_are_refused_by_the_import(operator_client, file):
    assert _import(operator_client, FILES[file]).status_code == 422
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    "name", [r"\ud800", r"a\u0000b", "x" * 300, r"\u202egnp.exe", "../../etc/passwd"]
)
def test_hostile_names_in_a_file_are_shown_as_text(operator_client, name):
    content = f'[{{"id":"{name}","messages":[{{"role":"user","content":"x"}}]}},'
    content += f'{{"id":"{name}","messages":[{{"role":"robot"}}]}}]'
    assert _import(operator_client, content.encode()).status_code == 200


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", r"..\..\boot.ini", "/etc/passwd", "a\r\nX: y.json", "\u202e"]
)
def test_a_hostile_file_name_is_not_used_as_a_path(operator_client, name):
    chat = [{"role": "user", "content": "x"}]
    response = _import(operator_client, json.dumps(chat).encode(), name)
    assert response.status_code in (200, 422)
    for memory in Memory.objects.all():
        assert not set("/\\\r\n") & set(memory.pk)


@pytest.mark.parametrize("next", LEADS_AWAY)
def test_no_form_redirects_to_another_site(client, operator_client, django_user_model, next):
    user = django_user_model.objects.create_user("reader", password="a long password")
    signed_in = client.post(
        "/sign-in/", {"username": user.username, "password": "a long password", "next": next}
    )
    answers = [
        signed_in,
        client.post("/theme/", {"theme": "dark", "next": next}),
        client.post("/sign-out/", {"next": next}),
    ]
    for answer in answers:
        assert answer.status_code == 302
        assert re.match("/(?![/\\\\])", answer["Location"])


def test_more_fields_than_any_form_has_are_refused(operator_client, memory_id):
    fields = {f"field{n}": "x" for n in range(2_000)}
    assert operator_client.post(f"/c/{memory_id}/add/", fields).status_code == 400


def _import(client, content: bytes, name: str = "chats.json"):
    fields = {"format": "auto", "kind": "message_window", "limit": "20"}
    return client.post("/import/", {**fields, "file": SimpleUploadedFile(name, content)})
