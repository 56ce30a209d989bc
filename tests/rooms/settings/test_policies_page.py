"""The page of default policies."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, services
from chatmemory.models import DefaultPolicy

pytestmark = pytest.mark.django_db
FEW = MessageWindow(2)
PAGE = "/policies/"


def test_the_page_sets_and_removes(operator_client):
    form = {"beginning": "shop-", "policy": "message_window:2"}
    assert operator_client.post(PAGE, form).status_code == 302
    page = operator_client.get(PAGE).content.decode()
    assert "shop-" in page
    assert "Message window 2" in page
    assert "by operator" in page
    assert services.default_policy("shop-1") == FEW
    assert operator_client.post("/policies/remove/", {"prefix": "shop-"}).status_code == 302
    assert services.default_policy("shop-1") is None
    for wrong, why in (
        ({"policy": "message_window:0"}, "must be greater than zero"),
        ({"policy": "message_window:2", "beginning": "\x00"}, "Null characters"),
        ({"policy": "message_window:2", "beginning": "x" * 256}, "at most 255"),
    ):
        response = operator_client.post(PAGE, wrong)
        assert response.status_code == 422
        assert why in response.content.decode()
    assert not DefaultPolicy.objects.exists()
