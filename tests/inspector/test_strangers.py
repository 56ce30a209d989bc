"""Who keeps posting without an account is told to wait: 429, before anything is parsed."""

from __future__ import annotations

import asyncio
import io

import pytest
from django.test import Client
from rest_framework.settings import api_settings

import inspector
from inspector.middleware import refusals
from inspector.middleware.bodies import BoundedBodies

FORM = "application/x-www-form-urlencoded"
POSTED = ["/sign-in/", "/theme/", "/display/", "/nowhere/", "/admin/login/", "/api/nowhere/"]
POSTED += ["/learn/playground/"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    for scope in ("form", "playground", "stranger"):
        monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, scope, "3/minute")


@pytest.fixture(params=["its own server", "mounted"])
def prefix(request, settings) -> str:
    if request.param == "its own server":
        return ""
    settings.ROOT_URLCONF = "tests.mounted.urls"
    settings.MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        *inspector.MIDDLEWARE,
    ]
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
    settings.INSPECTOR = {}
    return "/ops/chat"


class Unread(io.BytesIO):
    """A body that nobody may read."""

    def read(self, *_: object) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def posted(path: str, address: str = "192.0.2.1", size: int = 99, body: io.BytesIO | None = None):
    asked = {"CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(size), "REMOTE_ADDR": address}
    asked["wsgi.input"] = body or io.BytesIO(b"a" * size)
    return Client(enforce_csrf_checks=True).generic("POST", path, **asked)


@pytest.mark.parametrize("path", POSTED)
def test_forms_of_an_address_are_counted_before_they_are_read(prefix, path):
    if prefix and path.startswith("/admin/"):
        pytest.skip("the project has no such page")
    assert 429 not in [posted(prefix + path).status_code for _ in range(3)]
    refused = posted(prefix + path, body=Unread())
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert posted(prefix + path, "192.0.2.7").status_code != 429
    assert Client().get(f"{prefix}/sign-in/", REMOTE_ADDR="192.0.2.1").status_code == 200


def test_pages_of_the_project_are_not_counted(prefix):
    if prefix:
        assert [posted("/").status_code for _ in range(5)] == [403] * 5


@pytest.mark.parametrize("path", [*POSTED, "/policies/", "/api/v1/memories/"])
def test_bodies_that_are_too_large_are_counted(prefix, path):
    asked = {"size": 100 * 2**20, "body": Unread()}
    statuses = [posted(prefix + path, **asked).status_code for _ in range(4)]
    assert statuses == [413, 413, 413, 429]
    assert posted(prefix + path, "192.0.2.7", **asked).status_code == 413


@pytest.mark.parametrize("is_slow", [False, True], ids=["too large", "too slow"])
def test_a_server_counts_what_it_refuses_before_django(monkeypatch, is_slow):
    monkeypatch.setattr("inspector.middleware.bodies.BODY_SECONDS", 0)
    monkeypatch.setattr(refusals, "LINGER_SECONDS", 0)

    async def application(scope, receive, send):
        while (await receive()).get("more_body"):
            pass

    def status(address: str) -> int:
        answered = []

        async def send(message):
            answered.append(message.get("status"))

        length = [] if is_slow else [(b"content-length", b"999999999")]
        scope = {"type": "http", "method": "POST", "path": "/theme/", "headers": length}
        scope["client"] = (address, 5)
        asyncio.run(BoundedBodies(application)(scope, asyncio.Event().wait, send))
        return answered[0]

    first = 408 if is_slow else 413
    assert [status("192.0.2.1") for _ in range(4)] == [first, first, first, 429]
    assert status("192.0.2.7") == first
