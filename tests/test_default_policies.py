"""Default policies: what a conversation gets that is created without a policy."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from chatmemory import (
    InvalidValue,
    MessageWindow,
    MessageWindowChatMemory,
    PolicyUnavailable,
    TokenWindow,
    UnstorableText,
    UserMessage,
    queries,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.models import DefaultPolicy
from chatmemory.stores.database import DjangoChatMemoryStore

from .conversations import numbered

pytestmark = [pytest.mark.django_db, pytest.mark.database]

ONE, FEW = MessageWindow(1), MessageWindow(2)
PAGE = "/policies/"


@pytest.fixture
def configured(settings):
    settings.CHATMEMORY = {"DEFAULT_POLICIES": {"shop-": "message_window:1", "": "token_window:99"}}


def test_the_longest_prefix_applies(configured):
    services.set_default_policy("shop-vip-", FEW)
    found = {id: services.create(id).policy for id in ("shop-vip-1", "shop-7", "shop", "other")}
    assert found == {
        "shop-vip-1": FEW,
        "shop-7": ONE,
        "shop": TokenWindow(99),
        "other": TokenWindow(99),
    }
    assert services.create("shop-1", FEW).policy == FEW
    assert services.create("shop-2", None).policy is None


def test_without_a_default_policy_one_is_needed():
    services.set_default_policy("shop-", FEW)
    with pytest.raises(InvalidValue, match="no default policy has a prefix of 'other': give a pol"):
        services.create("other")


def test_conversations_keep_their_policies():
    services.create("null", None)
    services.set_default_policy("", FEW)
    services.create("m")
    services.set_default_policy("", ONE)
    DjangoChatMemoryStore().update_messages("null", numbered(5))
    assert (queries.memory("m").policy, queries.memory("null").policy) == (FEW, None)
    MessageWindowChatMemory("brought", 4, store=DjangoChatMemoryStore()).add(*numbered(6))
    assert queries.memory("brought").policy == MessageWindow(4)


def test_the_page_goes_before_the_settings(configured):
    services.set_default_policy("shop-", FEW, actor="ann")
    assert services.create("shop-7").policy == FEW
    listed = {
        (each.prefix, each.set_by, each.is_overridden) for each in services.default_policies()
    }
    assert listed == {("", "", False), ("shop-", "", True), ("shop-", "ann", False)}
    services.remove_default_policy("shop-")
    services.remove_default_policy("shop-")
    with pytest.raises(UnstorableText):
        services.remove_default_policy("\0")
    assert services.create("shop-8").policy == ONE


def test_a_default_whose_kind_is_gone_is_refused_and_measures_nothing():
    services.set_default_policy("", FEW)
    DefaultPolicy.objects.update(policy_kind="gone")
    with pytest.raises(PolicyUnavailable, match="'gone'"):
        services.create("m")
    DjangoChatMemoryStore().update_messages("n", numbered(3))
    assert queries.memory("n").policy is None


# The API and the command line


def test_the_api_uses_default_policies(api, configured):
    given = {"id": "shop-1"}
    assert api.post(reverse("chatmemory:memories"), given).data["policy"]["max_messages"] == 1
    given = {"id": "shop-2", "policy": None}
    assert api.post(reverse("chatmemory:memories"), given).data["policy"] is None


def test_imports_use_default_policies(tmp_path, configured):
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "hello"}]))
    for prefix in ("shop-", "other-"):
        call_command("import_transcripts", str(file), "--prefix", prefix)
    call_command(
        "import_transcripts", str(file), "--prefix", "own-", "--policy", "message_window:5"
    )
    policies = {row.id: row.policy for row in queries.memory_page(queries.MemoryFilter()).rows}
    assert sorted(policy.limit for policy in policies.values()) == [1, 5, 99]


# The bare protocol


def test_a_client_that_decides_is_measured_and_never_trimmed():
    services.set_default_policy("", FEW)
    store = DjangoChatMemoryStore()
    store.update_messages("m", numbered(5))
    assert store.get_messages("m") == numbered(5)
    memory = queries.memory("m")
    assert (memory.policy.limit, memory.load, memory.policy.meters_only) == (2, 5, True)
    assert len(queries.window("m").rows) == 5
    store.update_messages("m", numbered(6))
    services.add("m", [UserMessage("one more")])
    assert len(queries.window("m").rows) == 7
    assert verify("m") is None


# The page


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
