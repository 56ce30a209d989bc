"""Tokens and sessions. tests/test_roles.py has what each may do."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from chatmemory.models import ApiToken

pytestmark = pytest.mark.django_db
URL = "/api/v1/memories/"


def test_a_session_is_accepted_and_needs_its_csrf_token(operator):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(operator)
    assert client.get(URL).status_code == 200
    assert client.post(URL, {}).status_code == 403


def test_a_token_is_printed_once_and_stored_hashed(capsys):
    call_command("create_token", "my-app")
    secret = capsys.readouterr().out.strip()
    token = ApiToken.objects.get(name="my-app")
    assert secret not in token.digest
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert client.get(URL).status_code == 200
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}x")
    assert client.get(URL).status_code == 401
    with pytest.raises(CommandError, match="my-app"):
        call_command("create_token", "my-app")


def test_the_use_of_a_token_is_noted_once_a_minute(api):
    def used_at() -> datetime:
        api.get(URL)
        return ApiToken.objects.get().last_used_at

    first = used_at()
    assert used_at() == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    assert used_at() > first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([""], "name: This field cannot be blank"),
        (["name", "--days", "-1"], "days"),
        (["name", "--days", "9999999999"], "1 to 3650"),
        (["n" * 101], "at most 100"),
        (["name", "--prefix", "p" * 256], "at most 255"),
        (["\udcff"], "the name of a token cannot contain NUL or lone surrogates"),
        (["name", "--prefix", "\0"], "the prefix of a token cannot contain NUL"),
    ],
)
def test_an_invalid_token_is_refused(arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("create_token", *arguments)
    assert not ApiToken.objects.exists()
