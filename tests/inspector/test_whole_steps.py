"""A step is sent whole: it is small, and the script can tell its elements apart."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest

from chatmemory import AiMessage, UserMessage, services
from chatmemory.reading import conversations
from inspector import demo

from ..long_conversations import long_conversation
from .markup import tree

HTMX = {"HX-Request": "true"}
MOST_BYTES = 20_000
STATES = ["", "?at=43", "?at=43&msg=26", "?find=A-1182", "?at=50&with=40", "?msg=26&find=A-1182"]
PAGES = ["/", "/lab/", "/lessons/", "/import/", "/policies/", "/tokens/", "/c/order-7741/compare/"]


def fragment(client, path: str) -> bytes:
    response = client.get(path, headers=HTMX)
    assert response.status_code == 200, path
    return response.content


def simulation(memory_id: str) -> str:
    key = services.keep_trial(memory_id, [UserMessage("one"), AiMessage("two")])
    return f"/c/{memory_id}/?trial={key}&draft=1&edit=2"


def repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_a_step_of_the_demo_is_small(operator_client, db):
    demo.load()
    for step in range(0, conversations.memory("order-7741").last_step + 1, 6):
        sent = fragment(operator_client, f"/c/order-7741/?at={step}&msg=3")
        assert len(gzip.compress(sent)) < MOST_BYTES, step


@pytest.mark.parametrize("kept", [20, 70])
def test_a_step_of_ten_thousand_messages_is_small(operator_client, db, kept):
    long_conversation("long", 10_000, kept)
    for step in (50, 5_000, 5_001, 10_000):
        sent = fragment(operator_client, f"/c/long/?at={step}")
        assert len(gzip.compress(sent)) < MOST_BYTES, step


def test_ids_and_the_names_of_elements_beside_each_other_are_unique(operator_client, db):
    demo.load()
    steps = [f"/c/order-7741/{state}" for state in STATES]
    for path in [*PAGES, *steps, simulation("order-7741")]:
        page = tree(operator_client.get(path, follow=True).content.decode())
        ids = [each.get("id") for each in page.iter() if each.get("id")]
        assert "main" in ids, path
        assert repeated(ids) == [], path
        for parent in page.iter():
            names = [each.get("id") or each.get("data-id") for each in parent]
            assert repeated([name for name in names if name]) == [], path
