"""The page of default policies."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, TokenWindow, services
from chatmemory.models import DefaultPolicy

from ...inspector.markup import tree

pytestmark = pytest.mark.django_db
FEW = MessageWindow(2)
PAGE = "/policies/"
FIELDS = {"beginning": "shop-", "kind": "token_window", "limit": "4000", "estimator": "gpt-4o"}


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


def test_a_policy_is_chosen_by_fields(operator_client):
    options = {
        "options_of": "token_window",
        "option_low_water": "0.6",
        "option_clear_tool_results": "3",
        "option_snap_to_user": "on",
        "option_free_system": "on",
    }
    assert operator_client.post(PAGE, FIELDS | options).status_code == 302
    expected = TokenWindow(
        4000, low_water="0.6", clear_tool_results=3, snap_to_user=True, free_system=True
    )
    assert services.default_policy("shop-1") == expected
    assert operator_client.post(PAGE, FIELDS).status_code == 302, "its options were not shown"
    assert services.default_policy("shop-1") == TokenWindow(4000)


def test_the_options_of_another_kind_are_shown_without_a_script(operator_client):
    """The button sends the form; nothing is set, and what was typed stays."""
    page = operator_client.get(PAGE)
    assert "option_clear_tool_results" in names_of_fields(page)
    chosen = FIELDS | {"kind": "message_window", "options_of": "token_window", "show": "1"}
    page = operator_client.post(PAGE, chosen)
    assert page.status_code == 200
    assert "option_clear_tool_results" not in names_of_fields(page)
    assert {"option_snap_to_user", "option_low_water"} < names_of_fields(page)
    assert ("Limit in messages" in page.text, 'value="shop-"' in page.text) == (True, True)
    assert operator_client.post(PAGE, {"kind": "turn_window", "show": "1"}).status_code == 200
    assert not DefaultPolicy.objects.exists()


def names_of_fields(page) -> set[str]:
    fields = (each for kind in ("input", "select") for each in tree(page.text).iter(kind))
    return {each.get("name", "") for each in fields}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"limit": ""}, "Give the policy a limit."),
        ({"estimator": "no-such-model"}, "no-such-model"),
        ({"kind": "nothing"}, "nothing is not one of the available choices"),
        ({"options_of": "token_window", "option_low_water": "7"}, "low_water"),
    ],
)
def test_mistakes_in_fields_are_named(operator_client, wrong, why):
    page = operator_client.post(PAGE, FIELDS | wrong)
    assert page.status_code == 422
    assert why in page.text
    assert not DefaultPolicy.objects.exists()
