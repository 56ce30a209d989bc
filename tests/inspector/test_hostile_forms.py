"""Hostile form input is answered with a 4xx page or kept as text."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chatmemory import queries
from chatmemory.models import Memory

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

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["simulate", "add"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_hostile_scripts_are_refused_or_kept_as_text(operator_client, memory_id, path, draft):
    fields = {"role": "script", "text": DRAFTS[draft]}
    response = operator_client.post(f"/c/{memory_id}/{path}/", fields)
    assert response.status_code == 422
    assert queries.memory(memory_id).last_step == 0


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
