"""list_tokens and revoke_token, and when a token expires."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chatmemory.access.tokens import TokenRefused, create_token, token_of
from chatmemory.models import ApiToken

pytestmark = pytest.mark.django_db


def test_tokens_are_listed_with_their_states_and_without_secrets(capsys):
    secret = create_token("old", days=1)
    ApiToken.objects.update(expires_at=timezone.now())
    create_token("shop", role="viewer", prefix="acme/", days=0)
    call_command("list_tokens")
    shop, old, total = capsys.readouterr().out.splitlines()
    assert shop.startswith("shop: viewer, ids that begin with acme/, valid, no expiry, made ")
    assert old.startswith("old: operator, all ids, expired, until ")
    assert total == "2 tokens, 1 valid"
    call_command("list_tokens", "--json")
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert (rows[0]["name"], rows[0]["expires_at"], rows[1]["state"]) == ("shop", None, "expired")
    assert rows[-1] == {"total": {"tokens": 2, "valid": 1}}
    assert secret not in printed
    assert ApiToken.objects.get(name="old").digest not in printed


def test_a_token_is_revoked_by_its_name(capsys):
    secret = create_token("shop")
    call_command("revoke_token", "shop")
    with pytest.raises(TokenRefused, match="was revoked"):
        token_of(secret.encode())
    call_command("revoke_token", "shop")
    assert capsys.readouterr().out == "shop is revoked\nshop was already revoked\n"
    with pytest.raises(CommandError, match="no token has the name 'nobody'"):
        call_command("revoke_token", "nobody")


@pytest.mark.parametrize(
    ("setting", "given", "days"), [(365, None, 365), (30, None, 30), (30, 7, 7), (0, None, None)]
)
def test_a_token_expires_after_the_days_of_the_setting(settings, setting, given, days):
    settings.CHATMEMORY = {"TOKEN_DAYS": setting}
    create_token("shop", days=given)
    expires = ApiToken.objects.get().expires_at
    assert (expires and round((expires - timezone.now()) / timedelta(days=1))) == days


def test_without_an_end_by_the_command(capsys):
    call_command("create_token", "shop", "--days", "0")
    assert ApiToken.objects.get().expires_at is None
