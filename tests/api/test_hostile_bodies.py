"""Hostile bodies get a clear problem, on every route with a body."""

from __future__ import annotations

import gzip
import io

import pytest
from django.test import Client

from chatmemory import UserMessage, services
from chatmemory.messages.codec import DEPTH_MAX
from chatmemory.models import Memory
from chatmemory.reading import conversations, history
from chatmemory.windows.policies import MessageWindow

ROUTES = [
    ("POST", "memories/"),
    ("PATCH", "memories/order-7741/"),
    ("POST", "memories/order-7741/messages/"),
    ("PUT", "memories/order-7741/messages/"),
    ("POST", "memories/order-7741/simulate/"),
    ("PUT", "store/order-7741/"),
]
VALUES = {
    "10,000 lists": "[" * 10_000 + "]" * 10_000,
    "10,000 objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "900 lists": "[" * 900 + "]" * 900,
    "300 objects": '{"a":' * 300 + "1" + "}" * 300,
    "a million digits": "9" * 1_000_000,
    "a million digits and a half": "9" * 1_000_000 + ".5",
    "a vast exponent": "1e999999",
    "not a number": "NaN",
    "a lone surrogate": r'"\ud800"',
    "a lone surrogate as a name": r'{"\ud800":1}',
    "NUL": r'"a\u0000b"',
}
RAW = [
    b'{"id":"\xff\xfe"}',
    '{"id":"x"}'.encode("utf-16"),
    b'{"id":"x',
    b"{",
    b"[1,]",
    b'"\\ud800"x',
]
BOMB = gzip.compress(b"[" * 10_000_000)
MEMORY, PATCH, MESSAGES, STORE = ROUTES[:1], ROUTES[1:2], ROUTES[2:5], ROUTES[5:]
# Where a value may stand on these routes; `%s` takes it.
PLACES = {
    "%s": ROUTES,
    '{"id":%s,"policy":{"kind":"message_window","max_messages":3}}': MEMORY,
    '{"policy":%s}': PATCH,
    '{"policy":{"kind":%s,"max_messages":3}}': PATCH,
    '{"policy":{"kind":"message_window","max_messages":%s}}': PATCH,
    '{"policy":{"kind":"message_window","max_messages":3,"estimator":%s}}': PATCH,
    '{"labels":{"a":%s}}': PATCH,
    '{"messages":%s}': MESSAGES,
    '{"messages":[%s]}': MESSAGES,
    '{"messages":[{"type":%s}]}': MESSAGES,
    '{"messages":[{"type":"AI","text":%s}]}': MESSAGES,
    '{"messages":[{"type":"CUSTOM","attributes":{"a":%s}}]}': MESSAGES,
    '{"messages":[],"format":%s}': MESSAGES,
    '{"messages":[{"type":"AI","text":"x"}],"client_ids":[%s]}': MESSAGES[:1],
    '{"format":"openai_chat","messages":[{"role":"assistant","tool_calls":%s}]}': MESSAGES,
    '{"format":"sharegpt","messages":[{"from":"function_call","value":%s}]}': MESSAGES,
    '[{"type":"USER","contents":%s}]': STORE,
    '[{"type":"TOOL_EXECUTION_RESULT","text":%s}]': STORE,
}
# What is refused while it is read, as reading all of it would take long.
UNREAD = {
    "a million digits": "a number has more than 4,300 digits",
    "a million digits and a half": "is too large",
    "a vast exponent": "is too large",
}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _conversation(memory_id):
    services.add(memory_id, [UserMessage("hello")])


def send(client: Client, method: str, path: str, body: bytes, **headers: str):
    client.raise_request_exception = False
    return client.generic(
        method, f"/api/v1/{path}", body, content_type="application/json", headers=headers
    )


@pytest.mark.parametrize("value", VALUES)
def test_hostile_values_are_problems_in_every_place(operator_client, value):
    for place, routes in PLACES.items():
        for method, path in routes:
            response = send(operator_client, method, path, (place % VALUES[value]).encode())
            assert response.status_code in (200, 201, 204, 400, 422), (place, method, path)
            if response.status_code >= 400:
                assert response["Content-Type"] == "application/problem+json", place
                assert UNREAD.get(value, "") in response.json()["detail"], place
                assert response.json()["detail"], place
            else:
                assert value == "NUL", place  # JSON escapes it in a payload; text refuses it


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_body_that_is_not_a_json_object_is_refused_on_every_route(
    operator_client, method, path, settings
):
    for body in RAW:
        response = send(operator_client, method, path, body)
        assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
    empty = send(operator_client, method, path, b"")  # is an empty object
    assert empty.status_code == (200 if method == "PATCH" else 422)
    bomb = send(operator_client, method, path, BOMB, content_encoding="gzip")
    assert bomb.status_code == 415
    assert "gzip" in bomb.json()["detail"]
    setting = "PUT_BYTES" if method == "PUT" else "POST_BYTES"
    settings.CHATMEMORY = {setting: 99}
    large = send(operator_client, method, path, b" " * 100)
    assert (large.status_code, large["Content-Type"]) == (413, "application/problem+json")
    told = f'the body is larger than 99 bytes, the limit of CHATMEMORY["{setting}"]'
    assert large.json()["detail"] == told
    assert send(operator_client, method, path, b" " * 99).status_code != 413
    assert conversations.memory("order-7741").last_step == 1


def test_the_deepest_accepted_value_can_be_stored_and_shown(operator_client):
    services.create("deep", MessageWindow(3))
    levels = DEPTH_MAX - 3  # the body, its list and the message are levels too
    deep = '{"a":' * levels + "1" + "}" * levels
    body = '{"messages":[{"type":"CUSTOM","attributes":%s}]}'
    sent = send(operator_client, "POST", "memories/deep/messages/", (body % deep).encode())
    assert sent.status_code == 201, sent.content
    for path in ("/api/v1/memories/deep/messages/", "/c/deep/", "/c/deep/export/?download=1"):
        assert operator_client.get(path).status_code == 200, path
    too_deep = (body % f'{{"a":{deep}}}').encode()
    assert send(operator_client, "POST", "memories/deep/messages/", too_deep).status_code == 400


def test_ids_cannot_inject_headers(operator_client):
    body = rb'{"id":"a\r\nSet-Cookie: b=c","policy":{"kind":"message_window","max_messages":3}}'
    response = send(operator_client, "POST", "memories/", body)
    assert response.status_code == 201
    assert response["Location"].endswith("/memories/a~0D~0ASet-Cookie~3A~20b~3Dc/")
    page = operator_client.get("/c/a~0D~0ASet-Cookie~3A~20b~3Dc/export/?download=1")
    assert not set("\r\n") & set(page["Content-Disposition"])


def test_bidirectional_text_is_kept(operator_client):
    backwards = "\u202egnp.exe"
    services.add("order-7741", [UserMessage(backwards)])
    assert history.all_messages("order-7741", None)[-1] == UserMessage(backwards)
    services.create(backwards, MessageWindow(3))
    name = operator_client.get("/c/~E2~80~AEgnp.exe/export/?download=1")["Content-Disposition"]
    assert name == 'attachment; filename="~E2~80~AEgnp.exe-history.json"'


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"id":"a","id":"b","policy":null}', "id"),
        ('{"id":"a","policy":{"kind":"message_window","max_messages":3,"max_messages":4}}', "max_"),
        ('{"id":"a","policy":null,"labels":{"team":"x","team":"y"}}', "team"),
    ],
)
def test_a_property_that_is_there_twice_is_refused(api, body, name):
    answer = api.post("/api/v1/memories/", body, content_type="application/json")
    assert answer.status_code == 400
    assert f"the property '{name}" in answer.data["detail"]
    assert not Memory.objects.exclude(pk="order-7741").exists()


def test_within_messages_the_last_of_two_counts_as_for_langchain4j(api):
    body = '{"messages":[{"type":"AI","text":"one","text":"two"}]}'
    url = "/api/v1/memories/order-7741/messages/"
    assert api.post(url, body, content_type="application/json").status_code == 201
    assert history.all_messages("order-7741")[-1].text == "two"
    twice = body.replace("{", '{"messages":[],', 1)
    assert api.post(url, twice, content_type="application/json").status_code == 400


def test_a_body_that_is_declared_too_large_is_not_read(operator_client, settings):
    settings.CHATMEMORY = {"POST_BYTES": 99}
    unread = io.BytesIO()
    unread.close()  # so that reading it is an error
    declared = {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": "100", "wsgi.input": unread}
    response = operator_client.generic("POST", "/api/v1/memories/", **declared)
    assert response.status_code == 413


def test_a_message_with_a_lone_surrogate_is_refused(operator_client):
    body = rb'{"messages":[{"type":"AI","text":"\ud800"}]}'
    for method in ("POST", "PUT"):
        response = send(operator_client, method, "memories/order-7741/messages/", body)
        assert response.status_code == 422
        assert "surrogate" in response.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("", {"id": 5}, "id"),
        ("m/compact/", {"summary": 5, "keep_last": 1}, "summary"),
        ("m/compact/", {"summary": "S", "covering": ["1"]}, "covering"),
        ("m/compact/", {"summary": "S", "covering": [True]}, "covering"),
        ("m/compact/", {"summary": "S", "keep_last": "1"}, "keep_last"),
        ("m/compact/", {"summary": "S", "keep_last": 1.0}, "keep_last"),
        ("m/compact/", {"summary": "S", "keep_last": 1, "trigger": 5}, "trigger"),
        ("m/messages/", {"messages": [], "client_ids": [5]}, "client_ids"),
        ("m/simulate/", {"messages": [], "at": "0"}, "at"),
        ("m/simulate/", {"messages": [], "recount": "no"}, "recount"),
    ],
)
def test_a_value_of_another_type_is_refused_and_not_converted(api, path, body, field):
    services.create("m", MessageWindow(2))
    answer = api.post(f"/api/v1/memories/{path}", body, format="json")
    assert answer.status_code == 422, answer.data
    assert answer.data["field"].startswith(field)
