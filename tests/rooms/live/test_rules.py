"""Live streams follow the rules of the site like every other request: hosts, HTTPS, headers."""

from __future__ import annotations

import asyncio

import pytest
from rest_framework.settings import api_settings

from chatmemory.access.tokens import create_token
from inspector.project.asgi import application
from inspector.rooms.live import readers

HOST = "memory.example.org"
pytestmark = pytest.mark.django_db(transaction=True)  # the stream may take a new connection


@pytest.fixture(autouse=True)
def production(settings):
    settings.ALLOWED_HOSTS = [HOST]
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 3600


def answer(
    path: str, host: str = HOST, scheme: str = "https", secret: str = "", address: str = "192.0.2.1"
):
    """The status and the headers of a stream that is refused."""
    headers = [(b"host", host.encode()), (b"authorization", f"Bearer {secret}".encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": scheme,
        "path": path,
        "query_string": b"after=3",
        "headers": headers,
        "client": (address, 0),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], given


def test_plain_http_is_sent_to_https():
    status, headers = answer("/live/", scheme="http")
    assert (status, headers["location"]) == (301, f"https://{HOST}/live/?after=3")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_unknown_host_is_refused(scheme):
    status, headers = answer("/live/", host="evil.example", scheme=scheme)
    assert (status, "location" in headers) == (400, False)


def test_answers_have_the_headers_of_pages():
    status, headers = answer("/live/")
    assert status == 401
    assert headers["strict-transport-security"].startswith("max-age=3600")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_a_process_has_a_limited_number_of_streams(monkeypatch):
    monkeypatch.setattr(readers, "STREAMS", 0)
    status, headers = answer("/live/", secret=create_token("shop"))
    assert (status, headers["retry-after"]) == (503, "2")


def test_strangers_are_counted_as_by_the_api(monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "stranger", "3/minute")
    statuses = [answer("/live/", secret=f"guess {n}")[0] for n in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert answer("/live/", address="192.0.2.2")[0] == 401
