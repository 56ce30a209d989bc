"""Idempotency keys follow draft-ietf-httpapi-idempotency-key-header, also after a crash."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.urls import get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from chatmemory import services
from chatmemory.access.tokens import create_token
from chatmemory.api.idempotency import claimed_key, forget_expired_answers, read_key
from chatmemory.models import ApiToken, IdempotentAnswer, Memory
from chatmemory.reading import conversations
from chatmemory.windows.policies import MessageWindow

from ..conversations import users
from .messages import URL as ONE
from .messages import body_with

MEMORIES = "/api/v1/memories/"
URL = f"{ONE}messages/"
STORE_URL = "/api/v1/store/order-7741/"
A_MESSAGE = {"type": "AI", "text": "one"}
NEW = {"id": "new", "policy": {"kind": "message_window", "max_messages": 3}}
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'
LONG_AGO = timedelta(hours=25)


def send(api, body, key=KEY, url=URL, method="post"):
    return getattr(api, method)(url, body, headers={"Idempotency-Key": key})


def problem(answer) -> tuple[int, str]:
    return answer.status_code, answer.data["title"]


ERASED = (410, "Idempotent response erased")
REUSED = (422, "Idempotency key reused")


@pytest.fixture
def other_api(db) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('other')}")
    return client


def test_a_repeated_request_gets_the_stored_response(api, memory_id, settings):
    first = send(api, body_with("one"))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]  # the secret is rotated meanwhile
    settings.SECRET_KEY = "another"
    second = send(api, body_with("one"))
    assert first.status_code == second.status_code == 201
    assert second.json() == first.json()
    assert second["ETag"] == first["ETag"] == '"1"'
    assert second["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert conversations.memory(memory_id).last_seq == 1
    for _ in range(2):
        api.post(URL, body_with("one"))  # without a key
    assert conversations.memory(memory_id).last_seq == 3


@pytest.mark.parametrize(
    ("url", "body", "method"),
    [
        (URL, body_with("two"), "post"),
        (URL, body_with("one"), "put"),
        (MEMORIES, body_with("one"), "post"),
        (URL + "?x=1", body_with("one"), "post"),
    ],
)
def test_a_key_with_another_request_is_refused(api, memory_id, url, body, method):
    send(api, body_with("one"))
    assert problem(send(api, body, url=url, method=method)) == REUSED
    assert conversations.memory(memory_id).last_seq == 1


def test_a_fingerprint_lets_nobody_guess_the_words(api, memory_id):
    send(api, body_with("one"))
    kept = IdempotentAnswer.objects.get().request
    body = json.dumps(body_with("one"), separators=(",", ":")).encode()
    guessed = hashlib.sha256(f"POST {URL}\n".encode() + body).hexdigest()
    assert kept != guessed


@pytest.mark.parametrize("erase", ["messages/1/redact/", ""])
def test_an_erasure_erases_responses_and_nothing_is_done_twice(api, memory_id, erase):
    services.create("other", MessageWindow(3))
    send(api, body_with("my card is QUOKKA"))
    (api.post if erase else api.delete)(ONE + erase)
    kept = IdempotentAnswer.objects.get()
    assert (kept.request, kept.headers, kept.body) == ("", {}, "")
    for words in ("my card is QUOKKA", "something else"):  # only the conversation is known
        answer = send(api, body_with(words))
        assert problem(answer) == ERASED
        assert (
            "was carried out, but a redaction or a deletion erased its stored response"
            in answer.data["detail"]
        )
    assert problem(send(api, body_with("one"), url=f"{MEMORIES}other/messages/")) == REUSED
    assert not Memory.objects.filter(last_seq__gt=1).exists()


def test_of_an_erased_creation_the_key_is_for_no_other_conversation(api, db):
    send(api, NEW | {"labels": {"name": "QUOKKA"}}, url=MEMORIES)
    api.delete(f"{MEMORIES}new/")
    assert IdempotentAnswer.objects.get().body == ""
    assert problem(send(api, NEW | {"id": "other"}, url=MEMORIES)) == REUSED
    assert problem(send(api, NEW, url=MEMORIES)) == ERASED
    assert send(api, ["new"], url=MEMORIES).status_code == 422
    assert not Memory.objects.exists()


def test_callers_do_not_share_keys(api, other_api, operator, operator_client, memory_id):
    """Not even a token and an account of the same number. A session can send keys, too."""
    ApiToken.objects.filter(name="tests").update(id=operator.pk)
    send(api, body_with("one"))
    send(other_api, body_with("two"))
    for _ in range(2):
        headers = {"Idempotency-Key": KEY}
        operator_client.post(
            URL, body_with("three"), content_type="application/json", headers=headers
        )
    assert conversations.memory(memory_id).last_seq == 3


def test_a_failed_request_can_be_sent_again(api, memory_id):
    url = f"{MEMORIES}new/messages/"
    assert send(api, body_with("one"), url=url).status_code == 404
    assert send(api, {"messages": 7}).status_code == 422
    api.post(MEMORIES, NEW)
    assert send(api, body_with("one"), url=url).status_code == 201


def test_a_repeated_deletion_gets_the_stored_response(api, memory_id):
    assert [send(api, None, url=ONE, method="delete").status_code for _ in range(2)] == [204, 204]
    assert api.delete(ONE).status_code == 404


def test_a_key_expires_after_a_day(api, memory_id, monkeypatch):
    monkeypatch.setattr("chatmemory.api.idempotency.FORGOTTEN_AT_ONCE", 0)  # of others
    send(api, body_with("one"))
    IdempotentAnswer.objects.update(created_at=timezone.now() - LONG_AGO)
    assert "Idempotency-Replayed" not in send(api, body_with("one"))
    assert IdempotentAnswer.objects.count() == 1
    assert conversations.memory(memory_id).last_seq == 2


@pytest.mark.parametrize("by", ["a request", "vacuum"])
def test_expired_responses_are_deleted_and_others_kept(api, other_api, memory_id, by):
    send(api, body_with("one"))
    send(api, body_with("two"), key="newer")
    IdempotentAnswer.objects.exclude(key="newer").update(created_at=timezone.now() - LONG_AGO)
    if by == "vacuum":
        forget_expired_answers()
    else:
        send(other_api, body_with("three"), key="other")
    kept = set(IdempotentAnswer.objects.values_list("key", flat=True))
    assert kept == ({"newer"} if by == "vacuum" else {"newer", "other"})
    assert send(api, body_with("two"), key="newer")["Idempotency-Replayed"] == "true"


def test_a_key_in_use_is_refused_at_once(api, memory_id):
    with claimed_key(f"token {ApiToken.objects.get().pk}", KEY.strip('"')):
        assert problem(send(api, body_with("one"))) == (409, "Idempotency key in use")


@pytest.mark.parametrize("header", ['"a"', "a", ' "a" ', "x" * 255])
def test_keys_may_be_quoted(header):
    assert read_key(header) == header.strip(' "')


@pytest.mark.parametrize("header", ["", '""', '"a', "ä", "a\x7f", "x" * 256, 'a"b'])
def test_an_invalid_key_is_refused(api, memory_id, header):
    assert problem(send(api, body_with("one"), key=header)) == (400, "Invalid idempotency key")
    assert conversations.memory(memory_id).last_seq == 0


NEVER_STORED = {
    "sqlite": (
        (
            "CREATE TEMP TRIGGER never BEFORE INSERT ON chatmemory_idempotentanswer "
            "BEGIN SELECT RAISE(ABORT, 'never'); END"
        ),
        "DROP TRIGGER never",
    ),
    "postgresql": (
        "ALTER TABLE chatmemory_idempotentanswer ADD CONSTRAINT never CHECK (status < 0)",
        "ALTER TABLE chatmemory_idempotentanswer DROP CONSTRAINT never",
    ),
}


def test_the_change_and_its_response_are_one_transaction(api, memory_id):
    """Nothing is changed if the response cannot be stored."""
    forbid, allow = NEVER_STORED[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(forbid)
        with pytest.raises(IntegrityError):
            send(api, body_with("one"))
        assert conversations.memory(memory_id).last_seq == 0
        cursor.execute(allow)
    assert send(api, body_with("one")).status_code == 201


def test_concurrent_requests_with_one_key_are_carried_out_once(served):
    served.create("at-once")
    url = f"{served.url}/api/v1/memories/at-once/messages/"

    def post(_) -> tuple[int, str]:
        answer = served.api.post(url, json=body_with("one"), headers={"Idempotency-Key": KEY})
        return answer.status_code, answer.text

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(post, range(24)))
    assert {status for status, _ in answers} <= {201, 409}
    assert len({text for status, text in answers if status == 201}) == 1
    assert served.api.get(f"{served.url}/api/v1/memories/at-once/").json()["last_step"] == 1


def test_every_change_honours_a_key():
    """The handlers of all routes of the API that change something."""
    views = {
        pattern.callback.cls
        for resolver in get_resolver().url_patterns
        if "api" in str(resolver.pattern)
        for inner in resolver.url_patterns
        for pattern in getattr(inner, "url_patterns", [])
        if not str(pattern.name).startswith("unknown-")
    }
    found = {
        f"{view.__name__}.{method}": hasattr(getattr(view, method), "is_idempotent")
        for view in views
        for method in ("post", "put", "patch", "delete")
        if hasattr(view, method)
    }
    assert len(found) > 7
    assert {name for name, honours in found.items() if not honours} == {
        "RecallOf.post",
        "Simulate.post",
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("post", URL, body_with("one")),
        ("put", URL, body_with("one")),
        ("put", STORE_URL, [A_MESSAGE]),
        ("patch", ONE, {"policy": {**NEW["policy"], "estimator": "watched"}}),
    ],
)
def test_messages_are_counted_before_anything_is_locked(
    api, memory_id, counted_in_transactions, method, url, body
):
    """The sent messages, or the messages of the window for another estimator."""
    if method == "patch":
        services.add(memory_id, users("one", "two"))
    else:
        services.change(memory_id, policy=MessageWindow(3, estimator="watched"))
    assert send(api, body, url=url, method=method).status_code in (200, 201, 204)
    assert set(counted_in_transactions) == {False}
