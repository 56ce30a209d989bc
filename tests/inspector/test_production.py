"""Production settings: an unsafe configuration does not start, and sign-ins are rate-limited."""

from __future__ import annotations

import os
import re
import runpy
import secrets
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.test import Client
from django.utils import timezone
from environs import EnvValidationError
from rest_framework.settings import api_settings

from chatmemory import MessageWindow, services
from chatmemory.access.rates import shared_rates
from chatmemory.models import RequestCount
from chatmemory.signals import compacting

ROOT = Path(__file__).parents[2]
DATES = {
    f"{name}_{part}": value
    for name in ("date_joined", "last_login")
    for part, value in (("0", "2026-01-01"), ("1", "12:00:00"))
}
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


@pytest.fixture
def read_settings(monkeypatch, tmp_path):
    """Read the module of settings anew, in an environment of these variables alone."""

    def read(given: dict[str, str]) -> dict[str, Any]:
        for name in [each for each in os.environ if each.startswith("CHATMEMORY_")]:
            monkeypatch.delenv(name)
        for name, value in ({"CHATMEMORY_VAR": str(tmp_path)} | given).items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(ROOT / "inspector/project/settings.py"))

    return read


def test_djangos_deployment_check_reports_no_issues(tmp_path):
    found = manage(
        "check", "--deploy", "--fail-level", "WARNING", **SAFE, CHATMEMORY_VAR=str(tmp_path)
    )
    assert found.returncode == 0, found.stderr
    assert "no issues (0 silenced)" in found.stdout


def test_bounds_are_read_from_the_environment():
    asked = "from django.conf import settings as s; print(s.CHATMEMORY['PUT_BYTES'], s.INSPECTOR)"
    found = manage("shell", "-c", asked, CHATMEMORY_PUT_BYTES="9", INSPECTOR_FORM_BYTES="8")
    assert "\n9 {" in found.stdout
    assert "'FORM_BYTES': 8" in found.stdout
    found = manage("check", CHATMEMORY_WINDOW_MESSAGES="0")
    assert 'CHATMEMORY["WINDOW_MESSAGES"] must be a whole number from 1 to' in found.stderr


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
        ({"CHATMEMORY_HOSTS": ""}, '"CHATMEMORY_HOSTS" invalid'),
        ({"CHATMEMORY_HOSTS": "a.example,*"}, "without *"),
        ({"CHATMEMORY_HOSTS": "*.example"}, "without *"),
        ({"CHATMEMORY_HOSTS": "a.example,.example.com"}, "without a first dot"),
    ],
)
def test_an_unsafe_configuration_is_refused(read_settings, change, words):
    with pytest.raises((ImproperlyConfigured, EnvValidationError), match=re.escape(words)):
        read_settings(SAFE | change)


def test_the_hosts_of_a_site_that_others_reach_are_named(tmp_path):
    unnamed = {name: value for name, value in SAFE.items() if name != "CHATMEMORY_HOSTS"}
    found = manage("check", **unnamed, CHATMEMORY_VAR=str(tmp_path))
    assert found.returncode != 0
    assert "CHATMEMORY_HOSTS must name the hosts" in found.stderr


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("CHATMEMORY_PRODUCTION", "true", "must be 0 or 1"),
        ("CHATMEMORY_PRODUCTION", "", "must be 0 or 1"),
        ("CHATMEMORY_DEBUG", "yes", "must be 0 or 1"),
        ("CHATMEMORY_PROXY", "on", "must be 0 or 1"),
        ("CHATMEMORY_HSTS_SECONDS", "a year", "Not a valid integer"),
        ("CHATMEMORY_LOCK_SECONDS", "0", "Must be greater than or equal to 1"),
        ("CHATMEMORY_LOCK_SECONDS", "3000000", "less than or equal to 1000000"),
        ("CHATMEMORY_CONNECTIONS", "1", "Must be greater than or equal to 2"),
        ("CHATMEMORY_LOG", "xml", "Must be one of: text, json"),
        ("CHATMEMORY_API_RATE", "many", "must be a rate such as 100/second"),
        ("CHATMEMORY_API_RATE", "0/second", "must be a rate"),
        ("REDIS_URL", "memcached://x", "must begin with redis://"),
        ("REDIS_URL", "redis://h:abc/0", "has a port that is no number"),
        ("REDIS_URL", "redis://h:0/0", "has the port 0"),
        ("DATABASE_URL", "mysql://x/y", "must begin with sqlite"),
        ("DATABASE_URL", "var/db.sqlite3", "must begin with sqlite"),
        ("DATABASE_URL", "", "must begin with sqlite"),
        ("CHATMEMORY_VAR", "", "must name a folder"),
        ("CHATMEMORY_HOSTS", "", "must name at least one host"),
        ("CHATMEMORY_HOSTS", ",", "must be names"),
        ("CHATMEMORY_HOSTS", "https://a.example", "must be names without https://"),
        ("CHATMEMORY_HOSTS", "a.example:8000", "without a port"),
        ("CHATMEMORY_ORIGINS", "foo", "must be origins such as"),
        ("CHATMEMORY_ORIGINS", "https://a.example/", "must be origins such as"),
    ],
)
def test_an_invalid_setting_is_named(read_settings, variable, value, why):
    with pytest.raises(EnvValidationError, match=re.escape(f'"{variable}" invalid')) as told:
        read_settings(SAFE | {variable: value})
    assert why in str(told.value)


def test_blanks_around_hosts_and_origins_are_no_part_of_them(read_settings):
    given = {
        "CHATMEMORY_HOSTS": "a.example, [::1]",
        "CHATMEMORY_ORIGINS": "https://a.example, https://*.b.example",
    }
    found = read_settings(SAFE | given)
    assert found["ALLOWED_HOSTS"] == ["a.example", "[::1]"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://a.example", "https://*.b.example"]


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


def test_ten_wrong_passwords_lock_an_account_for_an_address(account, settings):
    assert sign_in("correct horse").status_code == 302
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert sign_in("wrong").status_code == 200
    assert sign_in("correct horse").status_code == 302  # does not reset the count
    assert sign_in("wrong").status_code == 429
    locked = sign_in("correct horse")
    assert locked.status_code == 429
    assert locked["Retry-After"] == "900"
    assert "Wait 15 minutes" in locked.content.decode()
    assert sign_in("correct horse", REMOTE_ADDR="192.0.2.7").status_code == 302


@pytest.mark.parametrize("address", ["192.0.2.9", ""], ids=["one address", "no address"])
def test_a_locked_account_does_not_lock_its_neighbours_out(account, settings, address):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        sign_in("wrong", username="bob", REMOTE_ADDR=address)
    assert sign_in("wrong", username="bob", REMOTE_ADDR=address).status_code == 429
    assert sign_in("correct horse", REMOTE_ADDR=address).status_code == 302


def test_a_hundred_wrong_passwords_for_many_accounts_lock_their_address_out(account, settings):
    for n in range(10 * settings.AXES_FAILURE_LIMIT - 1):
        assert sign_in("wrong", username=f"user-{n}").status_code == 200
    assert sign_in("correct horse").status_code == 302
    assert sign_in("wrong", username="one more").status_code == 429
    assert sign_in("correct horse").status_code == 429
    assert sign_in("correct horse", REMOTE_ADDR="192.0.2.7").status_code == 302


def test_a_failed_sign_in_leaves_no_parameters_and_is_forgotten(account):
    for _ in range(2):
        words = {"username": "ada", "password": "wrong", "next": "/?q=QUOKKA"}
        Client().post("/sign-in/?next=/%3Fq=QUOKKA", words)
    assert AccessAttempt.objects.get().failures_since_start == 2
    assert "QUOKKA" not in str(AccessAttempt.objects.values())
    compacting.send(None)
    assert AccessAttempt.objects.exists()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    compacting.send(None)
    assert not AccessAttempt.objects.exists()


def test_the_admin_has_the_texts_of_its_scripts(django_user_model):
    client = Client()
    assert client.get("/admin/jsi18n/").status_code == 302
    client.force_login(django_user_model.objects.create_superuser("chief"))
    assert b"django.gettext" in client.get("/admin/jsi18n/").content


def test_staff_cannot_make_themselves_superuser(django_user_model):
    """Admins may manage accounts, but neither their own permissions nor other staff."""
    users = django_user_model.objects
    staff = users.create_user("eve", is_staff=True)
    staff.groups.add(Group.objects.get(name="Admins"))
    chief, plain = users.create_superuser("chief"), users.create_user("bob")
    client = Client()
    client.force_login(staff)
    form = {"username": "eve", "is_active": "on", "is_staff": "on", "is_superuser": "on"}
    for account in (staff, plain):
        page = f"/admin/auth/user/{account.pk}/change/"
        assert client.post(page, form | {"username": account.username} | DATES).status_code == 302
        account.refresh_from_db()
        assert not account.is_superuser
    assert not plain.is_staff
    other = users.create_user("joe", is_staff=True)
    for account in (chief, other):
        for path in ("change", "password", "delete"):
            page = f"/admin/auth/user/{account.pk}/{path}/"
            assert client.post(page, form).status_code == 403, path
    for account in (staff, chief):
        client.force_login(account)
        assert client.get("/admin/chatmemory/auditentry/").status_code == 200


def test_weak_passwords_are_refused(django_user_model):
    with pytest.raises(ValidationError, match="too common"):
        validate_password("password123", django_user_model(username="ada"))


@pytest.mark.parametrize(
    "path", ["/", "/c/order-7741/", "/c/order-7741/export/?download=1", "/tokens/", "/import/"]
)
def test_pages_are_kept_out_of_caches(operator_client, path):
    services.create("order-7741", MessageWindow(3))
    assert "no-store" in operator_client.get(path)["Cache-Control"]


def test_the_api_keeps_its_answers_out_of_caches(api):
    for path in ("memories/", "memories/none/", "schema/"):
        assert api.get(f"/api/v1/{path}")["Cache-Control"] == "no-store"


def test_an_address_that_is_refused_too_often_is_told_to_wait(client, api, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "stranger", "3/minute")
    bad = {"Authorization": "Bearer cm_guess"}
    statuses = [client.get("/api/v1/memories/", headers=bad).status_code for _ in range(3)]
    answer = client.get("/api/v1/memories/")
    assert [*statuses, answer.status_code] == [401, 401, 401, 429]
    assert 0 < int(answer["Retry-After"]) <= 60
    assert client.get("/api/v1/memories/", REMOTE_ADDR="192.0.2.7").status_code == 401
    assert api.get("/api/v1/memories/").status_code == 200


def test_pages_count_strangers_with_the_api(client, operator_client, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "stranger", "3/minute")
    made_up = {"cookie": "sessionid=guess"}
    assert client.get("/api/v1/memories/").status_code == 401
    assert [client.get("/", headers=made_up).status_code for _ in range(2)] == [302, 302]
    answer = client.get("/bulk/", headers={"HX-Request": "true"})
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 60
    assert client.get("/sign-in/").status_code == 200
    assert client.get("/", REMOTE_ADDR="192.0.2.7").status_code == 302
    assert operator_client.get("/").status_code == 200


def test_an_address_that_is_none_locks_the_account_only(client, db):
    User.objects.create_user("ada", password="right and long")
    asked = {"username": "ada", "password": "wrong"}
    for claimed in ("unknown", "x" * 200):
        statuses = {
            client.post("/sign-in/", asked, REMOTE_ADDR=claimed).status_code for _ in range(5)
        }
        assert statuses <= {200, 429}
    assert client.post("/sign-in/", asked, REMOTE_ADDR="unknown").status_code == 429


def test_a_client_over_its_rate_is_refused_and_others_are_not(api, operator_client, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "caller", "3/minute")
    assert [api.get("/api/v1/memories/").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = api.get("/api/v1/memories/")
    assert 0 < int(answer["Retry-After"]) <= 60
    assert answer["Content-Type"] == "application/problem+json"
    assert operator_client.get("/api/v1/memories/").status_code == 200
    RequestCount.objects.update(ends_at=timezone.now())
    shared_rates.cache_clear()  # as in another process
    assert api.get("/api/v1/memories/").status_code == 200
