"""Production settings: an unsafe configuration does not start, and sign-ins are rate-limited."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from rest_framework.settings import api_settings

ROOT = Path(__file__).parents[2]
SAFE = {
    "CHATMEMORY_PRODUCTION": "1",
    "CHATMEMORY_SECRET_KEY": secrets.token_urlsafe(48),
    "CHATMEMORY_HOSTS": "memory.example.org",
}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = ("CHATMEMORY_", "DJANGO_ALLOW_ASYNC_UNSAFE")  # the latter is for the browser tests
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=inherited | environment,
        capture_output=True,
        text=True,
    )


def test_djangos_deployment_check_reports_no_issues(tmp_path):
    found = manage(
        "check", "--deploy", "--fail-level", "WARNING", **SAFE, CHATMEMORY_VAR=str(tmp_path)
    )
    assert found.returncode == 0, found.stderr
    assert "no issues (0 silenced)" in found.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"CHATMEMORY_SECRET_KEY": ""}, "CHATMEMORY_SECRET_KEY must be a secret"),
        ({"CHATMEMORY_SECRET_KEY": "short"}, "CHATMEMORY_SECRET_KEY must be a secret"),
        ({"CHATMEMORY_SECRET_KEY": "a" * 60}, "CHATMEMORY_SECRET_KEY must be a secret"),
        (
            {"CHATMEMORY_SECRET_KEY": "django-insecure-" + secrets.token_urlsafe(48)},
            "is an example",
        ),
        ({"CHATMEMORY_DEBUG": "1"}, "unset it in production"),
        ({"CHATMEMORY_HOSTS": ""}, "CHATMEMORY_HOSTS must name the hosts"),
        ({"CHATMEMORY_HOSTS": "a.example,*"}, "without *"),
        ({"CHATMEMORY_HOSTS": "*.example"}, "without *"),
    ],
)
def test_an_unsafe_configuration_does_not_start(tmp_path, change, words):
    found = manage("check", **(SAFE | change), CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode != 0
    assert words in found.stderr


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("CHATMEMORY_PRODUCTION", "true", "must be 0 or 1"),
        ("CHATMEMORY_PRODUCTION", "", "must be 0 or 1"),
        ("CHATMEMORY_DEBUG", "yes", "must be 0 or 1"),
        ("CHATMEMORY_PROXY", "on", "must be 0 or 1"),
        ("CHATMEMORY_HSTS_SECONDS", "a year", "Not a valid integer"),
        ("CHATMEMORY_LOCK_SECONDS", "-1", "Must be greater than or equal to 0"),
        ("CHATMEMORY_LOG", "xml", "Must be one of: text, json"),
        ("CHATMEMORY_API_RATE", "many", "must be a rate such as 100/second"),
        ("CHATMEMORY_API_RATE", "0/second", "must be a rate"),
        ("DATABASE_URL", "mysql://x/y", "must begin with sqlite"),
        ("DATABASE_URL", "var/db.sqlite3", "must begin with sqlite"),
        ("DATABASE_URL", "", "must begin with sqlite"),
    ],
)
def test_an_invalid_setting_is_named(tmp_path, variable, value, why):
    found = manage("check", **(SAFE | {variable: value}), CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode != 0
    assert f'"{variable}" invalid' in found.stderr
    assert why in found.stderr


@pytest.mark.parametrize("url", ["mysql://ada:QUOKKA@x/y", "postgresql://ada:QUOKKA/7@x/y"])
def test_a_password_is_not_repeated(tmp_path, url):
    found = manage("check", **SAFE, DATABASE_URL=url, CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode != 0
    assert '"DATABASE_URL" invalid' in found.stderr
    assert "QUOKKA" not in found.stderr


@pytest.fixture
def account(django_user_model):
    return django_user_model.objects.create_user("ada", password="correct horse")


def sign_in(password: str, username: str = "ada", **options):
    return Client(**options).post("/sign-in/", {"username": username, "password": password})


def test_ten_wrong_passwords_lock_an_address_out(account, settings):
    assert sign_in("correct horse").status_code == 302
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert sign_in("wrong").status_code == 200
    assert sign_in("wrong").status_code == 429
    locked = sign_in("correct horse")
    assert locked.status_code == 429
    assert locked["Retry-After"] == "900"
    assert "Wait 15 minutes" in locked.content.decode()
    elsewhere = sign_in("correct horse", REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 302


def test_wrong_passwords_for_many_accounts_count_together(account, settings):
    for n in range(settings.AXES_FAILURE_LIMIT - 1):
        assert sign_in("wrong", username=f"user-{n}").status_code == 200
    assert (
        sign_in("correct horse").status_code == 302
    )  # a correct password does not reset the count
    assert sign_in("wrong", username="one more").status_code == 429
    assert sign_in("correct horse").status_code == 429


def test_a_client_over_its_rate_is_refused_and_others_are_not(api, operator_client, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "caller", "3/minute")
    assert [api.get("/api/v1/memories/").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = api.get("/api/v1/memories/")
    assert 0 < int(answer["Retry-After"]) <= 60
    assert answer["Content-Type"] == "application/problem+json"
    assert operator_client.get("/api/v1/memories/").status_code == 200
    cache.clear()
    assert api.get("/api/v1/memories/").status_code == 200
