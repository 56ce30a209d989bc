"""A change with an Idempotency-Key holds the writer hardly longer than without (`make attack`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import thread_time
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from benchmarks.holds import holds
from chatmemory import MessageWindow, UserMessage, services
from chatmemory.access.tokens import create_token
from chatmemory.messages.codec import message_to_dict
from chatmemory.reading import conversations, windows

MESSAGES, MOST = 10_000, 1.2
NEW, ROUNDS = 2, 8  # the first rounds store texts that the later ones find again
ANY = 0.004  # seconds for the row of a key, which are more than a fifth of a hold that takes 3 ms
WORDS = "some words of a message of the usual length, which are counted and stored, "

pytestmark = pytest.mark.long


def user_messages(count: int, first: str = "") -> list[UserMessage]:
    return [UserMessage(f"{first}{n}: {WORDS}") for n in range(count)]


LISTS = [[message_to_dict(each) for each in user_messages(MESSAGES, first)] for first in ("a", "b")]


def refill(memory_id: str) -> None:
    if not conversations.memory(memory_id).window.count:
        services.set_messages(memory_id, user_messages(MESSAGES))


@dataclass
class Call:
    """A request that is made again and again; `body` gets the number of the round."""

    method: str
    name: str
    path: str
    body: Callable[[int], object] = lambda n: None
    before: Callable[[str], object] = refill


def create_again(memory_id: str) -> None:
    services.create(memory_id, MessageWindow(MESSAGES))
    services.set_messages(memory_id, user_messages(MESSAGES))


def unpin_first(memory_id: str) -> None:
    services.unpin(memory_id, first(memory_id))


def pin_first(memory_id: str) -> None:
    services.pin(memory_id, first(memory_id))


def first(memory_id: str) -> int:
    return windows.outline(memory_id).rows[0].seq


def policy(n: int) -> dict:
    """One that counts the window otherwise than the one before."""
    estimator = ("gpt-4", "gpt-4o")[n % 2]
    return {"kind": "message_window", "max_messages": MESSAGES, "estimator": estimator}


CALLS = [
    Call("post", "memories", "memories/", lambda n: {"id": uuid4().hex, "policy": None}),
    Call("patch", "memory", "memories/{id}/", lambda n: {"policy": policy(n)}),
    Call("post", "messages", "memories/{id}/messages/", lambda n: {"messages": LISTS[0][:1000]}),
    Call("put", "messages", "memories/{id}/messages/", lambda n: {"messages": LISTS[n % 2]}),
    Call("put", "store", "store/{id}/", lambda n: LISTS[n % 2]),
    Call("post", "pin", "memories/{id}/messages/{seq}/pin/", before=unpin_first),
    Call("delete", "pin", "memories/{id}/messages/{seq}/pin/", before=pin_first),
    Call("delete", "messages", "memories/{id}/messages/"),
    Call("delete", "store", "store/{id}/"),
    Call("post", "redact", "memories/{id}/messages/{seq}/redact/", lambda n: {}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_a_key_makes_no_hold_longer(committing, call):
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests', role='admin')}")
    for memory_id in ("with", "without"):
        create_again(memory_id)
        pin_first(memory_id)
    held: dict[str, list[float]] = {"with": [], "without": []}
    for n in range(NEW + ROUNDS):
        for memory_id, seconds in sorted(held.items(), reverse=bool(n % 2)):
            call.before(memory_id)
            path = call.path.format(id=memory_id, seq=first(memory_id))
            headers = {"Idempotency-Key": uuid4().hex} if memory_id == "with" else {}
            with holds(thread_time) as made:  # other programs have no part in it
                ask = getattr(api, call.method)
                answer = ask(f"/api/v1/{path}", call.body(n), format="json", headers=headers)
            assert answer.status_code in (200, 201, 204), answer.content[:500]
            seconds.append(max(made))
    # What other programs do to the caches of the CPU adds to a time and never takes from it.
    with_key, without = (min(seconds[NEW:]) for seconds in held.values())
    assert with_key <= MOST * without + ANY, held
