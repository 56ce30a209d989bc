from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from chatmemory.models import ApiToken

pytestmark = pytest.mark.django_db

PATHS = [
    "memories/",
    "memories/m/",
    "memories/m/messages/",
    "memories/m/messages/1/",
    "memories/m/messages/1/pin/",
    "memories/m/messages/1/redact/",
    "memories/m/history/",
    "memories/m/steps/",
    "memories/m/steps/1/",
    "memories/m/simulate/",
    "recall/",
    "store/m/",
    "schema/",
]


@pytest.mark.parametrize("path", PATHS)
def test_requests_without_credentials_are_refused(path):
    for method in ("get", "post", "put", "patch", "delete"):
        response = getattr(APIClient(), method)(f"/api/v1/{path}")
        assert response.status_code == 401, method
        assert response["WWW-Authenticate"] == "Bearer"
        assert response["Content-Type"] == "application/problem+json"


def test_an_unknown_token_is_refused():
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Bearer cm_nonsense")
    assert client.get("/api/v1/memories/").status_code == 401


def test_a_session_is_accepted(operator_client):
    assert operator_client.get("/api/v1/memories/").status_code == 200


def test_a_session_needs_its_csrf_token(operator):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(operator)
    assert client.post("/api/v1/memories/", {}).status_code == 403


def test_a_token_is_printed_once_and_stored_hashed(capsys):
    call_command("create_token", "my-app")
    secret = capsys.readouterr().out.strip()
    token = ApiToken.objects.get(name="my-app")
    assert secret not in token.digest
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert client.get("/api/v1/memories/").status_code == 200
    token.refresh_from_db()
    assert token.last_used_at is not None
    with pytest.raises(CommandError, match="my-app"):
        call_command("create_token", "my-app")


def test_the_use_of_a_token_is_noted_once_a_minute(api):
    def used_at() -> datetime:
        api.get("/api/v1/memories/")
        return ApiToken.objects.get().last_used_at

    first = used_at()
    assert used_at() == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    assert used_at() > first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([""], "name: This field cannot be blank"),
        (["name", "--days", "0"], "days: Enter 1 to 3650"),
        (["name", "--days", "-1"], "1 to 3650"),
        (["name", "--days", "9999999999"], "1 to 3650"),
        (["n" * 101], "at most 100"),
        (["name", "--prefix", "p" * 256], "at most 255"),
    ],
)
def test_an_invalid_token_is_refused(arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("create_token", *arguments)
    assert not ApiToken.objects.exists()


def test_a_wrong_method_is_a_problem(api):
    response = api.put("/api/v1/memories/", {})
    assert response.status_code == 405
    assert response.data["status"] == 405


def test_the_schema_describes_every_route(api):
    schema = api.get("/api/v1/schema/?format=json").json()
    assert len(schema["paths"]) == len(PATHS) - 1
    assert schema["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_swagger_needs_no_other_host(operator_client):
    page = operator_client.get("/api/docs/").content.decode()
    assert "http://" not in page
    assert "https://" not in page
