from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone
from rest_framework.test import APIClient

from chatmemory.models import ApiToken

FORM = {"name": "shop", "role": "viewer", "beginning": "acme/", "days": "7"}


def bearer(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def secret(operator_client) -> str:
    return operator_client.post("/tokens/", FORM).context["secret"]


def test_a_secret_is_shown_once_and_not_stored(operator_client, secret):
    token = ApiToken.objects.get()
    assert (token.name, token.role, token.prefix) == ("shop", "viewer", "acme/")
    assert token.created_by == "operator"
    assert timedelta(days=6) < token.expires_at - timezone.now() < timedelta(days=8)
    assert secret not in operator_client.get("/tokens/").content.decode()
    assert secret not in str(ApiToken.objects.values())
    assert bearer(secret).get("/api/v1/memories/").status_code == 200


def test_the_newest_token_is_the_first(operator_client, secret):
    operator_client.post("/tokens/", FORM | {"name": "later"})
    html = operator_client.get("/tokens/").content.decode()
    assert html.index(">later<") < html.index(">shop<")


def test_a_revoked_token_is_refused_with_the_reason(operator_client, secret):
    assert operator_client.get("/tokens/1/revoke/").status_code == 405
    key = ApiToken.objects.get().pk
    operator_client.post(f"/tokens/{key}/revoke/")
    answer = bearer(secret).get("/api/v1/memories/")
    assert answer.status_code == 401
    assert "'shop' was revoked" in answer.data["detail"]
    assert "revoked" in operator_client.get("/tokens/").content.decode()


def test_an_expired_token_is_refused_with_the_reason(secret):
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = bearer(secret).get("/api/v1/memories/")
    assert answer.status_code == 401
    assert "has expired" in answer.data["detail"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "shop"}, "already exists"),
        ({"name": ""}, "required"),
        ({"name": "b", "role": "god"}, "valid choice"),
        ({"name": "b", "days": "0"}, "greater than or equal to 1"),
    ],
)
def test_an_invalid_token_form_shows_the_reason(operator_client, secret, change, words):
    response = operator_client.post("/tokens/", FORM | change)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert ApiToken.objects.count() == 1


def test_hostile_names_show_as_text(operator_client):
    form = FORM | {"name": "<script>x</script>", "beginning": '"><img>'}
    html = operator_client.post("/tokens/", form).content.decode()
    assert "<script>x" not in html
    assert "<img>" not in html


def test_only_roles_within_the_users_permissions_are_offered(client, django_user_model):
    helper = django_user_model.objects.create_user("helper")
    for name in ("view_memory", "change_memory", "add_apitoken"):
        helper.user_permissions.add(Permission.objects.get(codename=name))
    client.force_login(helper)
    assert 'value="admin"' not in client.get("/tokens/").content.decode()
    assert client.post("/tokens/", FORM | {"role": "admin"}).status_code == 422
    assert not ApiToken.objects.exists()
    assert client.post("/tokens/", FORM | {"role": "operator"}).status_code == 200


def test_making_and_revoking_a_token_is_logged(
    operator_client, caplog, django_capture_on_commit_callbacks
):
    with (
        caplog.at_level(logging.INFO, "chatmemory.audit"),
        django_capture_on_commit_callbacks(execute=True),
    ):
        secret = operator_client.post("/tokens/", FORM).context["secret"]
        address = f"/tokens/{ApiToken.objects.get().pk}/revoke/"
        operator_client.post(address)
        operator_client.post(address)
    lines = [record for record in caplog.records if record.name == "chatmemory.audit"]
    assert [(line.action, line.token, line.actor) for line in lines] == [
        ("make_token", "shop", "operator"),
        ("revoke_token", "shop", "operator"),
    ]
    assert secret not in caplog.text
