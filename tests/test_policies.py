"""Default policies, and the same cost of a policy in every place."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from chatmemory import (
    AiMessage,
    InvalidValue,
    MessageWindow,
    MessageWindowChatMemory,
    PolicyUnavailable,
    TokenWindow,
    UnstorableText,
    UserMessage,
    policy_from_text,
    recall,
    recall_curve,
    services,
)
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.models import DefaultPolicy
from chatmemory.reading import conversations, windows
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import memory_page
from chatmemory.reading.simulation import simulate
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.written_policies import measured
from inspector.rooms.lab import adoption
from inspector.rooms.simulation.comparison import comparison
from inspector.rooms.transfer.imports import import_all

from .conversations import numbered

pytestmark = [pytest.mark.django_db, pytest.mark.database]

ONE, FEW = MessageWindow(1), MessageWindow(2)


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
    assert (conversations.memory("m").policy, conversations.memory("null").policy) == (FEW, None)
    MessageWindowChatMemory("brought", 4, store=DjangoChatMemoryStore()).add(*numbered(6))
    assert conversations.memory("brought").policy == MessageWindow(4)


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
    assert conversations.memory("n").policy is None


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
    policies = {row.id: row.policy for row in memory_page(MemoryFilter()).rows}
    assert sorted(policy.limit for policy in policies.values()) == [1, 5, 99]


# The bare protocol


def test_a_client_that_decides_is_measured_and_never_trimmed():
    services.set_default_policy("", FEW)
    store = DjangoChatMemoryStore()
    store.update_messages("m", numbered(5))
    assert store.get_messages("m") == numbered(5)
    memory = conversations.memory("m")
    assert (memory.policy.limit, memory.load, memory.policy.meters_only) == (2, 5, True)
    assert len(windows.window("m").rows) == 5
    store.update_messages("m", numbered(6))
    services.add("m", [UserMessage("one more")])
    assert len(windows.window("m").rows) == 7
    assert verify("m") is None


# A policy made in Python costs what its estimator says, wherever it is given.


ORDER = UserMessage("My order is A-1182.")
EXACT = count_tokens(estimator_for("o3-mini"), ORDER) + 2
GIVEN = TokenWindow(EXACT, estimator="o3-mini")
WRITTEN = policy_from_text(f"token_window:{EXACT},estimator=o3-mini")


READING = Reading("langchain4j", (Transcript("m", (ORDER,)),), ())


def adopted() -> None:
    services.create("m", MessageWindow(5))
    assert services.adopt_policy(MemoryFilter(), GIVEN) == 1
    assert services.adopt_policy(MemoryFilter(), GIVEN) == 0


WAYS = {
    "created": [lambda: services.create("m", GIVEN)],
    "changed": [
        lambda: services.create("m", MessageWindow(5)),
        lambda: services.change("m", policy=GIVEN),
    ],
    "adopted": [adopted],
    "created by default": [
        lambda: services.set_default_policy("", GIVEN),
        lambda: services.create("m"),
    ],
}
WITH_THE_ORDER = {
    "changed with an add": [
        lambda: services.create("m", MessageWindow(5)),
        lambda: services.change_and_add("m", [ORDER], policy=GIVEN),
    ],
    "branched": [
        lambda: services.create("source", MessageWindow(5)),
        lambda: services.branch("source", "m", [ORDER], policy=GIVEN),
    ],
    "imported": [lambda: services.import_conversation("m", [ORDER], GIVEN)],
    "imported from a file": [lambda: list(import_all(READING, GIVEN))],
}


@pytest.mark.parametrize("way", WAYS | WITH_THE_ORDER)
def test_what_fits_exactly_stays(db, way):
    for do in (WAYS | WITH_THE_ORDER)[way]:
        do()
    if way in WAYS:
        services.add("m", [ORDER])
    assert windows.window("m").messages == [ORDER]
    assert conversations.memory("m").policy == WRITTEN
    assert verify("m") is None


def test_the_same_policy_again_is_no_step(db):
    services.create("m", WRITTEN)
    services.change("m", policy=GIVEN)
    assert conversations.memory("m").last_step == 0
    assert adoption.adopting(MemoryFilter(), GIVEN).differing == 0


def test_a_long_import_goes_on_under_it(db):
    rejecting = TokenWindow(EXACT, estimator="o3-mini", oversized="reject")
    services.import_conversation("m", [ORDER] * 501, rejecting)
    assert conversations.memory("m").said_count == 501
    assert conversations.memory("m").policy == measured(rejecting)


def test_a_tried_policy_costs_the_same(db):
    services.create("m", MessageWindow(5))
    simulation = simulate("m", [ORDER], GIVEN)
    assert (simulation.policy, simulation.totals.count) == (WRITTEN, 1)
    (compared,) = comparison("m", [GIVEN]).policies
    assert compared.policy == WRITTEN


def test_recall_takes_policies_of_both_kinds():
    conversation = [ORDER, AiMessage("I am looking for order A-1182.")]
    for limit in range(EXACT - 1, 3 * EXACT):
        given = TokenWindow(limit, estimator="o3-mini")
        written = policy_from_text(f"token_window:{limit},estimator=o3-mini")
        assert recall(conversation, [given]) == recall(conversation, [written])
    assert recall_curve(conversation, GIVEN).points == recall_curve(conversation, WRITTEN).points
