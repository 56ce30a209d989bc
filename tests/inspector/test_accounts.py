"""Signing in by a link or a password, waiting times, and the rights of admins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
import requests
from axes.models import AccessAttempt
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from rest_framework.settings import api_settings

from chatmemory import MessageWindow, services
from chatmemory.signals import vacuuming
from inspector.access import get_account, make_token
from inspector.project.accounts import ACCOUNTS_PER_ADDRESS

pytestmark = pytest.mark.django_db
RIGHT = "correct horse"

# Links


def link() -> str:
    return f"/sign-in/{make_token(get_account('operator'))}/"


def test_a_link_signs_in_once():
    url, client = link(), Client()
    for _ in range(2):  # who has signed in by it goes on to the page
        assert client.get(url).headers["Location"] == "/"
    assert client.get("/").status_code == 200
    assert client.get("/sign-in/forged/").headers["Location"] == "/"
    assert Client().get(url).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_link_used_many_times_at_once_signs_in_once(served):
    url = served.sign_in_link()

    def come(_) -> int:
        return requests.get(url, allow_redirects=False, timeout=30).status_code

    with ThreadPoolExecutor(8) as threads:
        answers = sorted(threads.map(come, range(8)))
    assert answers == [302, *[403] * 7]


def test_the_command_prints_a_link_that_works(capsys):
    call_command("sign_in_link", port=8123)
    url = capsys.readouterr().out.strip()
    assert url.startswith("http://127.0.0.1:8123/")
    assert Client().get(url.partition(":8123")[2]).status_code == 302


def test_a_misspelt_username_does_not_create_an_account(django_user_model):
    with pytest.raises(CommandError, match="no account has the name 'oparator'"):
        call_command("sign_in_link", username="oparator")
    assert not django_user_model.objects.exists()


@pytest.mark.parametrize("port", ["0", "-1", "65536", "9" * 30, "80x"])
@pytest.mark.parametrize("command", ["sign_in_link", "serve"])
def test_a_command_refuses_an_impossible_port(command, port):
    with pytest.raises(CommandError, match="the port must be a whole number from 1 to 65535"):
        call_command(command, "--port", port)


def test_a_link_works_for_15_minutes(monkeypatch):
    url = link()
    later = (timezone.now() + timedelta(minutes=16)).timestamp()
    monkeypatch.setattr("django.core.signing.time", SimpleNamespace(time=lambda: later))
    assert Client().get(url).status_code == 403


def test_a_link_works_on_this_machine_only():
    assert Client(REMOTE_ADDR="192.0.2.7").get(link()).status_code == 403
    assert Client().get(link(), headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403
    forged = Client().get("/sign-in/forged/")
    assert forged.status_code == 403
    assert b"manage.py sign_in_link" in forged.content


# Passwords and sessions


@pytest.fixture
def account(django_user_model):
    return django_user_model.objects.create_user("ada", password=RIGHT)


def sign_in(password: str, username: str = "ada", **options):
    return Client(**options).post("/sign-in/", {"username": username, "password": password})


def test_a_password_signs_in_until_signed_out(account, operator_client):
    assert b"correct username" in sign_in("wrong").content
    assert sign_in(RIGHT).status_code == 302
    assert operator_client.get("/sign-out/").status_code == 405
    operator_client.post("/sign-out/")
    assert operator_client.get("/").status_code == 302


def test_weak_passwords_are_refused(account):
    with pytest.raises(ValidationError, match="too common"):
        validate_password("password123", account)


def test_an_htmx_request_leads_to_the_sign_in_page_and_back():
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/c/order-7741/?at=2"}
    response = Client().get("/c/order-7741/?at=3", headers=headers)
    assert response["HX-Redirect"] == "/sign-in/?next=/c/order-7741/%3Fat%3D2"
    assert response.content == b""
    assert "Location" not in response


@pytest.mark.parametrize(
    ("page", "back"),
    [
        ("http://testserver/c/order-7741/?at=2", "/c/order-7741/%3Fat%3D2"),
        ("http://elsewhere.example/c/order-7741/", "/"),
        ("http://testserver//elsewhere.example/", "/"),
        ("http://[", "/"),
        ("", "/"),
    ],
)
def test_a_form_sent_signed_out_leads_to_the_sign_in_page_and_back_to_its_page(page, back):
    response = Client().post("/bulk/", headers={"Referer": page})
    assert response["Location"] == f"/sign-in/?next={back}"


def test_an_address_of_forms_that_is_opened_says_so_and_leads_on(operator_client):
    response = operator_client.get("/bulk/")
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert b'<a class="btn" href="/">Show all conversations</a>' in response.content


def test_a_form_without_its_csrf_token_gets_the_inspectors_error_page(operator_client):
    client = Client(enforce_csrf_checks=True)
    client.cookies = operator_client.cookies
    response = client.post("/tokens/", {"name": "x"})
    assert response.status_code == 403
    assert "This form is out of date" in response.text
    assert "style=" not in response.text


def test_the_theme_is_kept_in_a_cookie(operator_client):
    response = operator_client.post("/theme/", {"theme": "dark", "next": "/c/x/"})
    assert response["Location"] == "/c/x/"
    assert b'data-theme="dark"' in operator_client.get("/").content
    operator_client.post("/theme/", {"theme": ""})
    assert b"data-theme=" not in operator_client.get("/").content


# Who is told to wait


def test_ten_wrong_passwords_lock_an_account_for_an_address(account, settings):
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert sign_in("wrong").status_code == 200
    assert sign_in(RIGHT).status_code == 302  # does not reset the count
    assert sign_in("wrong").status_code == 429
    locked = sign_in(RIGHT)
    assert (locked.status_code, locked["Retry-After"]) == (429, "900")
    assert "Wait 15 minutes" in locked.text
    assert sign_in(RIGHT, REMOTE_ADDR="192.0.2.7").status_code == 302


@pytest.mark.parametrize("address", ["192.0.2.9", "", "unknown", "x" * 200])
def test_a_locked_account_does_not_lock_its_neighbours_out(account, settings, address):
    """Neighbours have the same address, or none."""
    for _ in range(settings.AXES_FAILURE_LIMIT):
        sign_in("wrong", username="bob", REMOTE_ADDR=address)
    assert sign_in("wrong", username="bob", REMOTE_ADDR=address).status_code == 429
    assert sign_in(RIGHT, REMOTE_ADDR=address).status_code == 302


def test_ten_times_as_many_for_any_accounts_lock_their_address_out(account, settings):
    assert (settings.AXES_FAILURE_LIMIT, ACCOUNTS_PER_ADDRESS) == (10, 10)
    settings.AXES_FAILURE_LIMIT = 2
    for n in range(2 * ACCOUNTS_PER_ADDRESS - 1):
        assert sign_in("wrong", username=f"user-{n}").status_code == 200
    assert sign_in(RIGHT).status_code == 302
    assert sign_in("wrong", username="one more").status_code == 429
    assert sign_in(RIGHT).status_code == 429
    assert sign_in(RIGHT, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_a_failed_sign_in_leaves_no_parameters_and_is_forgotten(account):
    for _ in range(2):
        words = {"username": "ada", "password": "wrong", "next": "/?q=QUOKKA"}
        Client().post("/sign-in/?next=/%3Fq=QUOKKA", words)
    assert AccessAttempt.objects.get().failures_since_start == 2
    assert "QUOKKA" not in str(AccessAttempt.objects.values())
    vacuuming.send(None)
    assert AccessAttempt.objects.exists()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    vacuuming.send(None)
    assert not AccessAttempt.objects.exists()


def test_expired_sessions_are_forgotten(operator_client):
    vacuuming.send(None)
    assert Session.objects.exists()
    Session.objects.update(expire_date=timezone.now() - timedelta(minutes=1))
    vacuuming.send(None)
    assert not Session.objects.exists()


def test_strangers_are_counted_by_the_api_and_by_pages(client, operator_client, api, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "stranger", "3/minute")
    bad, made_up = {"Authorization": "Bearer cm_guess"}, {"cookie": "sessionid=guess"}
    asked = [("/api/v1/memories/", bad), ("/", made_up), ("/bulk/", {"HX-Request": "true"})]
    statuses = [client.get(path, headers=headers).status_code for path, headers in asked]
    assert statuses == [401, 302, 200]
    for path, headers in asked:
        refused = client.get(path, headers=headers)
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= 60
    assert client.get("/sign-in/").status_code == 200
    assert client.get("/api/v1/memories/", REMOTE_ADDR="192.0.2.7").status_code == 401
    assert operator_client.get("/").status_code == api.get("/api/v1/memories/").status_code == 200


def test_a_client_over_its_rate_is_refused_and_others_are_not(api, operator_client, monkeypatch):
    monkeypatch.setitem(api_settings.DEFAULT_THROTTLE_RATES, "caller", "3/minute")
    assert [api.get("/api/v1/memories/").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = api.get("/api/v1/memories/")
    assert 0 < int(answer["Retry-After"]) <= 60
    assert answer["Content-Type"] == "application/problem+json"
    assert operator_client.get("/api/v1/memories/").status_code == 200
    monkeypatch.setattr("chatmemory.access.rates.time", lambda: 1_000_000_060.0)
    assert api.get("/api/v1/memories/").status_code == 200


# The admin


def test_the_admin_has_the_texts_of_its_scripts(admin_client):
    assert Client().get("/admin/jsi18n/").status_code == 302
    assert b"django.gettext" in admin_client.get("/admin/jsi18n/").content


def test_staff_cannot_make_themselves_superuser(django_user_model):
    """Admins may manage accounts, but neither their own permissions nor other staff."""
    users = django_user_model.objects
    staff = users.create_user("eve", is_staff=True)
    staff.groups.add(Group.objects.get(name="Admins"))
    chief, plain = users.create_superuser("chief"), users.create_user("bob")
    other = users.create_user("joe", is_staff=True)
    client = Client()
    client.force_login(staff)
    form = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}
    for name in ("date_joined", "last_login"):
        form |= {f"{name}_0": "2026-01-01", f"{name}_1": "12:00:00"}
    for account in (staff, plain):
        page = f"/admin/auth/user/{account.pk}/change/"
        assert client.post(page, form | {"username": account.username}).status_code == 302
        account.refresh_from_db()
        assert not account.is_superuser
    assert not plain.is_staff
    for account in (chief, other):
        for path in ("change", "password", "delete"):
            page = f"/admin/auth/user/{account.pk}/{path}/"
            assert client.post(page, form).status_code == 403, path
    for account in (staff, chief):
        client.force_login(account)
        assert client.get("/admin/chatmemory/auditentry/").status_code == 200


def test_the_admin_leads_from_a_conversation_into_the_inspector(admin_client):
    services.create("acme/1", MessageWindow(2))
    page = admin_client.get(f"/admin/chatmemory/memory/{quote('acme/1')}/change/").content.decode()
    assert 'href="/c/acme~2F1/"' in page
