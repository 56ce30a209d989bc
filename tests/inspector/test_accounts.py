from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
import requests
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from inspector.access import get_account, make_token

pytestmark = pytest.mark.django_db


def link() -> str:
    return f"/sign-in/{make_token(get_account('operator'))}/"


def test_a_link_signs_in_once():
    url = link()
    client = Client()
    assert client.get(url).headers["Location"] == "/"
    assert client.get("/").status_code == 200
    assert Client().get(url).status_code == 403


def test_a_used_link_goes_on_to_the_page_where_it_has_signed_in():
    url, client = link(), Client()
    for _ in range(2):
        assert client.get(url).headers["Location"] == "/"
    assert client.get("/sign-in/forged/").headers["Location"] == "/"


@pytest.mark.django_db(transaction=True)
def test_a_link_used_many_times_at_once_signs_in_once(served):
    url = served.sign_in_link()

    def come(_) -> int:
        return requests.get(url, allow_redirects=False, timeout=30).status_code

    with ThreadPoolExecutor(8) as threads:
        answers = sorted(threads.map(come, range(8)))
    assert answers == [302, *[403] * 7]


def test_a_form_without_its_csrf_token_gets_the_inspectors_error_page(operator_client):
    client = Client(enforce_csrf_checks=True)
    client.cookies = operator_client.cookies
    response = client.post("/tokens/", {"name": "x"})
    assert response.status_code == 403
    assert "This form is out of date" in response.content.decode()
    assert "style=" not in response.content.decode()


def test_the_command_prints_a_link_that_works(capsys):
    call_command("sign_in_link", port=8123)
    url = capsys.readouterr().out.strip()
    assert url.startswith("http://127.0.0.1:8123/")
    assert Client().get(url.partition(":8123")[2]).status_code == 302


def test_a_misspelt_username_does_not_create_an_account(django_user_model):
    with pytest.raises(CommandError, match="no account is named 'oparator'"):
        call_command("sign_in_link", username="oparator")
    assert not django_user_model.objects.exists()


@pytest.mark.parametrize("port", ["0", "-1", "65536", "9" * 30, "80x"])
@pytest.mark.parametrize("command", ["sign_in_link", "serve"])
def test_a_command_refuses_an_impossible_port(command, port):
    with pytest.raises(CommandError, match="a port is a number from 1 to 65535"):
        call_command(command, "--port", port)


def test_a_link_works_for_15_minutes(monkeypatch):
    url = link()
    later = (timezone.now() + timedelta(minutes=16)).timestamp()
    monkeypatch.setattr("django.core.signing.time", SimpleNamespace(time=lambda: later))
    assert Client().get(url).status_code == 403


def test_a_link_works_on_this_machine_only():
    assert Client(REMOTE_ADDR="192.0.2.7").get(link()).status_code == 403
    proxied = {"X-Forwarded-For": "127.0.0.1"}
    assert Client().get(link(), headers=proxied).status_code == 403


def test_a_forged_link_is_refused_with_advice():
    response = Client().get("/sign-in/forged/")
    assert response.status_code == 403
    assert b"manage.py sign_in_link" in response.content


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
    assert b'<a class="btn" href="/">All conversations</a>' in response.content


@pytest.mark.parametrize("path", ["/", "/c/order-7741/", "/api/docs/", "/admin/"])
def test_signed_out_readers_get_the_sign_in_page_only(path):
    response = Client().get(path)
    assert response.status_code == 302
    assert "/sign-in/" in response["Location"] or "/admin/login/" in response["Location"]


def test_a_password_signs_in(django_user_model):
    django_user_model.objects.create_user("ada", password="lovelace-1842")
    form = {"username": "ada", "password": "wrong"}
    assert b"correct username" in Client().post("/sign-in/", form).content
    form["password"] = "lovelace-1842"
    assert Client().post("/sign-in/", form).status_code == 302


def test_signing_out_ends_the_session(operator_client):
    assert operator_client.get("/sign-out/").status_code == 405
    operator_client.post("/sign-out/")
    assert operator_client.get("/").status_code == 302


def test_the_theme_is_kept_in_a_cookie(operator_client):
    response = operator_client.post("/theme/", {"theme": "dark", "next": "/c/x/"})
    assert response["Location"] == "/c/x/"
    assert b'data-theme="dark"' in operator_client.get("/").content
    operator_client.post("/theme/", {"theme": ""})
    assert b"data-theme=" not in operator_client.get("/").content


@pytest.mark.parametrize("target", ["x", "overview", "/\n", "?", "."])
def test_the_theme_form_accepts_any_target(target):
    assert Client().post("/theme/", {"next": target}).status_code == 302


@pytest.mark.parametrize("target", ["https://example.org/", "//example.org", "javascript:alert(1)"])
def test_the_theme_form_redirects_to_no_other_site(operator_client, target):
    response = operator_client.post("/theme/", {"theme": "dark", "next": target})
    assert response["Location"] == "/"


@pytest.mark.parametrize(("path", "body"), [("/healthz", b"ok\n"), ("/readyz", b"ready\n")])
def test_health_is_open_to_all(path, body):
    assert Client().get(path).content == body
