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

from chatmemory import UserMessage, queries, services
from chatmemory.access.tokens import create_token
from chatmemory.api.idempotency import _claimed, forget_expired_answers, read_key
from chatmemory.core.policies import MessageWindow
from chatmemory.models import ApiToken, IdempotentAnswer, Memory

URL = "/api/v1/memories/order-7741/messages/"
STORE_URL = "/api/v1/store/order-7741/"
A_MESSAGE = {"type": "AI", "text": "one"}
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


def said(*words: str) -> dict:
    return {
        "messages": [{"role": "user", "content": word} for word in words],
        "format": "openai_chat",
    }


def send(api, body, key=KEY, url=URL, method="post"):
    return getattr(api, method)(url, body, headers={"Idempotency-Key": key})


def test_a_repeated_request_gets_the_stored_response(api, memory_id):
    first = send(api, said("one"))
    second = send(api, said("one"))
    assert first.status_code == second.status_code == 201
    assert second.json() == first.json()
    assert second["ETag"] == first["ETag"] == '"1"'
    assert second["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert queries.memory(memory_id).last_seq == 1


def test_requests_without_a_key_are_all_carried_out(api, memory_id):
    api.post(URL, said("one"))
    api.post(URL, said("one"))
    assert queries.memory(memory_id).last_seq == 2


@pytest.mark.parametrize(
    ("url", "body", "method"),
    [
        (URL, said("two"), "post"),
        (URL, said("one"), "put"),
        ("/api/v1/memories/", said("one"), "post"),
        (URL + "?x=1", said("one"), "post"),
    ],
)
def test_a_key_with_another_request_is_refused(api, memory_id, url, body, method):
    send(api, said("one"))
    answer = send(api, body, url=url, method=method)
    assert answer.status_code == 422
    assert answer.data["type"] == "urn:chatmemory:idempotency-key-reused"
    assert queries.memory(memory_id).last_seq == 1


def test_a_response_from_before_a_rotation_of_the_secret_key_is_found(api, memory_id, settings):
    send(api, said("one"))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert send(api, said("one"))["Idempotency-Replayed"] == "true"


def test_a_fingerprint_lets_nobody_guess_the_words(api, memory_id):
    send(api, said("one"))
    kept = IdempotentAnswer.objects.get().request
    body = json.dumps(said("one"), separators=(",", ":")).encode()
    guessed = hashlib.sha256(f"POST {URL}\n".encode() + body).hexdigest()
    assert kept != guessed


@pytest.mark.parametrize("erase", ["messages/1/redact/", ""])
def test_an_erasure_erases_responses_and_nothing_is_done_twice(api, memory_id, erase):
    url = "/api/v1/memories/order-7741/"
    send(api, said("my card is QUOKKA"))
    (api.post if erase else api.delete)(url + erase)
    kept = IdempotentAnswer.objects.get()
    assert (kept.request, kept.headers, kept.body) == ("", {}, "")
    answer = send(api, said("my card is QUOKKA"))
    assert (answer.status_code, answer.data["title"]) == (410, "Idempotent response erased")
    assert not Memory.objects.filter(last_seq__gt=1).exists()


def test_of_an_erased_request_only_its_conversation_is_known(api, memory_id):
    services.create("other", MessageWindow(3))
    send(api, said("my card is QUOKKA"))
    api.post("/api/v1/memories/order-7741/messages/1/redact/")
    answer = send(api, said("something else"))
    assert (answer.status_code, answer.data["title"]) == (410, "Idempotent response erased")
    assert "was carried out; whether it was this one is no longer known" in answer.data["detail"]
    answer = send(api, said("something else"), url="/api/v1/memories/other/messages/")
    assert (answer.status_code, answer.data["title"]) == (422, "Idempotency key reused")


def test_of_an_erased_creation_the_key_is_for_no_other_conversation(api, db):
    policy = {"kind": "message_window", "max_messages": 3}
    send(api, {"id": "new", "policy": policy}, url="/api/v1/memories/")
    api.delete("/api/v1/memories/new/")
    answer = send(api, {"id": "other", "policy": policy}, url="/api/v1/memories/")
    assert (answer.status_code, answer.data["title"]) == (422, "Idempotency key reused")
    answer = send(api, {"id": "new", "policy": policy}, url="/api/v1/memories/")
    assert (answer.status_code, answer.data["title"]) == (410, "Idempotent response erased")
    assert send(api, ["new"], url="/api/v1/memories/").status_code == 422
    assert not Memory.objects.exists()


def test_a_deletion_erases_the_response_of_the_creation(api, db):
    policy = {"kind": "message_window", "max_messages": 3}
    body = {"id": "new", "policy": policy, "labels": {"name": "QUOKKA"}}
    send(api, body, url="/api/v1/memories/")
    api.delete("/api/v1/memories/new/")
    assert IdempotentAnswer.objects.get().body == ""


def test_callers_do_not_share_keys(api, memory_id):
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('other')}")
    send(api, said("one"))
    assert "Idempotency-Replayed" not in send(other, said("two"))
    assert queries.memory(memory_id).last_seq == 2


def test_a_token_and_an_account_of_one_number_do_not_share_keys(
    api, operator, operator_client, memory_id
):
    ApiToken.objects.update(id=operator.pk)
    send(api, said("one"))
    headers = {"Idempotency-Key": KEY}
    operator_client.post(URL, said("two"), content_type="application/json", headers=headers)
    assert queries.memory(memory_id).last_seq == 2


def test_a_session_can_send_keys(operator_client, memory_id):
    for _ in range(2):
        operator_client.post(
            URL, said("one"), content_type="application/json", headers={"Idempotency-Key": "k"}
        )
    assert queries.memory(memory_id).last_seq == 1


def test_a_failed_request_can_be_sent_again(api, memory_id):
    url = "/api/v1/memories/later/messages/"
    assert send(api, said("one"), url=url).status_code == 404
    assert send(api, {"messages": 7}).status_code == 422
    policy = {"kind": "message_window", "max_messages": 3}
    api.post("/api/v1/memories/", {"id": "later", "policy": policy})
    assert send(api, said("one"), url=url).status_code == 201


def test_a_repeated_deletion_gets_the_stored_response(api, memory_id):
    url = "/api/v1/memories/order-7741/"
    assert [send(api, None, url=url, method="delete").status_code for _ in range(2)] == [204, 204]
    assert api.delete(url).status_code == 404


def test_a_key_expires_after_a_day(api, memory_id, monkeypatch):
    monkeypatch.setattr("chatmemory.api.idempotency.FORGOTTEN_AT_ONCE", 0)  # of others
    send(api, said("one"))
    IdempotentAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert "Idempotency-Replayed" not in send(api, said("one"))
    assert IdempotentAnswer.objects.count() == 1
    assert queries.memory(memory_id).last_seq == 2


def test_a_key_in_use_is_refused_at_once(api, memory_id):
    with _claimed(f"token {ApiToken.objects.get().pk}", KEY.strip('"')):
        answer = send(api, said("one"))
    assert (answer.status_code, answer.data["title"]) == (409, "Idempotency key in use")


@pytest.mark.parametrize("header", ['"a"', "a", ' "a" '])
def test_keys_may_be_quoted(header):
    assert read_key(header) == "a"


def test_a_key_may_have_255_characters():
    assert read_key("x" * 255) == "x" * 255


@pytest.mark.parametrize("header", ["", '""', '"a', "ä", "a\x7f", "x" * 256, 'a"b'])
def test_an_invalid_key_is_refused(api, memory_id, header):
    answer = send(api, said("one"), key=header)
    assert answer.status_code == 400
    assert queries.memory(memory_id).last_seq == 0


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
            send(api, said("one"))
        assert queries.memory(memory_id).last_seq == 0
        cursor.execute(allow)
    assert send(api, said("one")).status_code == 201


def test_concurrent_requests_with_one_key_are_carried_out_once(served):
    served.create("at-once")
    url = f"{served.url}/api/v1/memories/at-once/messages/"

    def post(_) -> tuple[int, str]:
        answer = served.api.post(url, json=said("one"), headers={"Idempotency-Key": KEY})
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


@pytest.mark.parametrize("forget", [False, True])
def test_expired_responses_are_deleted(api, memory_id, forget):
    """Expired responses are deleted by the next request or by `compact`; others are kept."""
    send(api, said("one"))
    send(api, said("two"), key="newer")
    long_ago = timezone.now() - timedelta(hours=25)
    IdempotentAnswer.objects.exclude(key="newer").update(created_at=long_ago)
    if forget:
        forget_expired_answers()
    else:
        other = APIClient()
        other.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('other')}")
        send(other, said("three"), key="other")
    kept = set(IdempotentAnswer.objects.values_list("key", flat=True))
    assert kept == ({"newer"} if forget else {"newer", "other"})
    assert send(api, said("two"), key="newer")["Idempotency-Replayed"] == "true"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("method", "url", "body"),
    [("post", URL, said("one")), ("put", URL, said("one")), ("put", STORE_URL, [A_MESSAGE])],
)
def test_messages_are_counted_before_anything_is_locked(
    api, memory_id, counted_in_transactions, method, url, body
):
    services.change(memory_id, policy=MessageWindow(3, estimator="watched"))
    assert send(api, body, url=url, method=method).status_code in (200, 201, 204)
    assert set(counted_in_transactions) == {False}


@pytest.mark.django_db(transaction=True)
def test_a_window_is_counted_anew_before_anything_is_locked(
    api, memory_id, counted_in_transactions
):
    services.add(memory_id, [UserMessage("one"), UserMessage("two")])
    body = {"policy": {"kind": "message_window", "max_messages": 3, "estimator": "watched"}}
    response = send(api, body, url=f"/api/v1/memories/{memory_id}/", method="patch")
    assert (response.status_code, counted_in_transactions) == (200, [False, False])
