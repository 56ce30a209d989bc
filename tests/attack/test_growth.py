"""Bodies that are allowed and are of a shape that once took minutes: whoever sends them, another
tenant goes on writing (`make attack`).
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from string import ascii_lowercase, digits
from time import perf_counter, sleep

import pytest
import requests

from chatmemory.messages.codec import message_to_dict
from inspector.middleware.admission import ANSWERS_OF_CALLER

from ..deployed import deploying
from ..growth.shapes import calls, one_call
from ..peaks import GROWTH_MAX, bounded_growth
from ..test_outages import TWO

pytestmark = pytest.mark.long
SECONDS = 60
ATTACKED_FOR = 6.0  # seconds
WORST = 20.0  # seconds for which an add waits for a lock, before it is refused


@pytest.fixture(scope="module")
def served(template, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grown")
    with deploying(folder, template) as deployed:
        yield deployed.served


@pytest.fixture
def deployed(template, tmp_path):
    with deploying(tmp_path, template) as deployed:
        yield deployed


@dataclass
class Tenant:
    """A client of one conversation after the other."""

    served: object
    id: str

    def ask(self, method: str, path: str = "", **body) -> requests.Response:
        """What is refused measures nothing."""
        url = f"{self.served.url}/api/v1/{path.format(id=self.id)}"
        headers = dict(self.served.api.headers)
        answer = requests.request(method, url, headers=headers, timeout=SECONDS, **body)
        assert answer.ok, answer.text[:500]
        return answer

    def create(self, **policy) -> None:
        kind = "token_window" if "max_tokens" in policy else "message_window"
        body = {"id": self.id, "policy": {"kind": kind, **policy}}
        self.ask("POST", "memories/", json=body)

    def put(self, messages) -> requests.Response:
        listed = [message_to_dict(each) for each in messages]
        return self.ask("PUT", "memories/{id}/messages/", json={"messages": listed})

    def say(self, *texts: str) -> None:
        said = [{"role": "user", "content": text} for text in texts]
        body = {"messages": said, "format": "openai_chat"}
        self.ask("POST", "memories/{id}/messages/", json=body)

    def compact(self, summary: str, **options) -> requests.Response:
        return self.ask("POST", "memories/{id}/compact/", json={"summary": summary, **options})


def order_numbers(count: int) -> str:
    return " ".join(f"A-{n:06}" for n in range(count))


def terms_without_room(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_tokens=4_000)
    summary = "word " * 3_990

    def again() -> None:
        tenant.ask("DELETE", "memories/{id}/messages/")
        tenant.say(order_numbers(500), "x")
        tenant.compact(summary, keep_last=0, append_terms=1_000)

    return again


def terms_and_a_long_summary(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_tokens=1_000_000)
    summary = "A-9" * 130_000  # 390,007 tokens

    def again() -> None:
        tenant.say(order_numbers(20_000), "x")
        tenant.compact(summary, keep_last=0, append_terms=1_000)

    return again


def results_of_one_call(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_messages=9_999)
    return lambda: (tenant.put(one_call(9_990)), tenant.compact("They.", keep_last=0))


def results_of_one_call_in_the_store(tenant: Tenant) -> Callable[[], object]:
    listed = [message_to_dict(each) for each in one_call(9_990)]
    return lambda: (
        tenant.ask("PUT", "store/{id}/", json=listed),
        tenant.ask("PUT", "store/{id}/", json=listed[:1]),
    )


def calls_without_results(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_messages=9_999)
    tenant.put(calls(4_000))
    return lambda: tenant.ask("GET", "memories/{id}/messages/?repair=anthropic")


def incidents_of_a_low_mark(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_messages=10, low_water=0.5)
    for _ in range(10):
        tenant.say(*(f"It is A-{n:03}." for n in range(20)))

    def again() -> None:
        tenant.say("It is A-001.")
        tenant.ask("GET", "memories/{id}/incidents/")

    return again


def terms_that_came_back(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_messages=9_999)
    tenant.say(order_numbers(4_000), "x")
    tenant.compact("They talked.", keep_last=0)
    tenant.ask(
        "POST",
        "memories/{id}/messages/",
        json={
            "messages": [{"role": "assistant", "content": order_numbers(4_000)}],
            "format": "openai_chat",
        },
    )

    def again() -> None:
        tenant.say("Thank you.")
        tenant.ask("GET", "memories/{id}/incidents/")

    return again


def base64_with_slashes(tenant: Tenant) -> Callable[[], object]:
    tenant.create(max_messages=9_999)
    long = "".join(random.Random(1).choices(ascii_lowercase + digits + "/", k=400_000))
    tenant.say(long, "x")
    tenant.compact("They talked.", keep_last=0)

    def again() -> None:
        tenant.say("Thank you.")
        tenant.ask("GET", "memories/{id}/incidents/")

    return again


BODIES = [
    terms_without_room,
    terms_and_a_long_summary,
    results_of_one_call,
    results_of_one_call_in_the_store,
    calls_without_results,
    incidents_of_a_low_mark,
    terms_that_came_back,
    base64_with_slashes,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_another_tenant_goes_on_writing(served, body, record_property):
    attacker, other = Tenant(served, body.__name__), Tenant(served, f"beside-{body.__name__}")
    attack = body(attacker)
    other.create(max_messages=20)
    is_over, rounds = threading.Event(), []

    def keep_attacking() -> None:
        while not is_over.is_set():
            attack()
            rounds.append(1)

    with ThreadPoolExecutor(1) as thread:
        attacking = thread.submit(keep_attacking)
        waits, until = [], perf_counter() + ATTACKED_FOR
        while not attacking.done() and (perf_counter() < until or not rounds):
            began = perf_counter()
            other.ask("POST", "memories/{id}/messages/", json=TWO)
            waits.append(perf_counter() - began)
            sleep(0.01)
        is_over.set()
        attacking.result()
    worst = max(waits)
    record_property("worst add", f"{worst:.2f} s of {len(waits)}, {len(rounds)} rounds")
    assert worst < WORST


def test_sixty_unread_reads_of_a_large_window_leave_memory_and_others_alone(deployed):
    """Before there were turns, 36 of them were held, 1.1 GB, and another viewer was refused."""
    served = deployed.served
    served.create("large", limit=100)
    for n in range(31):
        served.say("large", f"{n} " + "word " * 99_999)
    other = served.manage("create_token", "another", "--role", "viewer").strip()
    asked_by = dict(served.api.headers) | {"Authorization": f"Bearer {other}"}
    head = f"GET /api/v1/memories/large/messages/ HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    head += f"Authorization: Bearer {served.token}\r\nX-Forwarded-Proto: https\r\n\r\n"
    with ExitStack() as opened:
        for worker in deployed.workers():
            opened.enter_context(bounded_growth(worker, ANSWERS_OF_CALLER * GROWTH_MAX))
        for _ in range(60):
            reader = opened.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", served.port))
            reader.sendall(head.encode())
        waits = []
        for _ in range(20):
            began = perf_counter()
            url = f"{served.url}/api/v1/memories/large/history/"
            answer = requests.get(url, headers=asked_by, timeout=SECONDS)
            waits.append(perf_counter() - began)
            assert answer.status_code == 200, answer.text[:200]
            sleep(0.1)
        assert max(waits) < WORST, waits
