"""Many clients at once: few connections, and nobody waits for a conversation of others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import requests
from django.conf import settings
from django.db import connection

from inspector.middleware.admission import WAITING_FOR_ONE

from .connecting import row_locked

TWO = {"messages": [{"role": "user", "content": "two"}], "format": "openai_chat"}
SECONDS = 30


@pytest.mark.own_server(CHATMEMORY_LOCK_SECONDS=str(SECONDS))
def test_a_conversation_that_many_write_stops_no_other(served):
    for memory_id in ("hot", "other"):
        served.create(memory_id)
    memories = f"{served.url}/api/v1/memories"
    refused, headers = threading.Semaphore(0), dict(served.api.headers)

    def write(_: int) -> requests.Response:
        answer = requests.post(f"{memories}/hot/messages/", json=TWO, headers=headers)
        if answer.status_code == 503:
            refused.release()
        return answer

    writers = WAITING_FOR_ONE + 3
    with ThreadPoolExecutor(writers) as threads:
        with row_locked(served.environment["DATABASE_URL"], "hot"):
            answers = [threads.submit(write, n) for n in range(writers)]
            for _ in range(2):
                assert refused.acquire(timeout=SECONDS / 2), (
                    "nobody was refused while others waited"
                )
            for memory_id in ("hot", "other"):
                read = served.api.get(f"{memories}/{memory_id}/", timeout=SECONDS / 2)
                assert read.status_code == 200
            if connection.vendor == "postgresql":
                served.say("other", "one")
        statuses = sorted(answer.result().status_code for answer in answers)
    assert statuses == [201] * (WAITING_FOR_ONE + 1) + [503] * 2
    (problem, _) = (answer.result() for answer in answers if answer.result().status_code == 503)
    assert problem.headers["Retry-After"] == "2"
    assert problem.json()["title"] == "Database busy"
    assert "16 other changes of this conversation are waiting" in problem.json()["detail"]
    assert len(served.history("hot")) == WAITING_FOR_ONE + 1


@pytest.mark.own_server(CHATMEMORY_LOCK_SECONDS=str(SECONDS))
def test_whatever_waits_for_a_conversation_leaves_places_to_others(served):
    for memory_id in ("hot", "other"):
        served.create(memory_id)
    pages = served.session()
    pages.get(f"{served.url}/")
    form = {"csrfmiddlewaretoken": pages.cookies["csrftoken"], "id": "hot"}
    asked = {
        "/c/hot/simulate/": {"text": "What if?"},
        "/bulk/": {"action": "label", "label_as_text": "team:a"},
        "/lab/?kind=message_window": {},
    }
    with ThreadPoolExecutor(3 * len(asked)) as threads:
        with row_locked(served.environment["DATABASE_URL"], "hot"):
            waiting = [
                threads.submit(pages.post, f"{served.url}{path}", form | fields)
                for path, fields in asked.items()
                for _ in range(3)
            ]
            for _ in range(5):
                read = served.api.get(f"{served.url}/api/v1/memories/other/", timeout=SECONDS / 2)
                assert read.status_code == 200
            if connection.vendor == "postgresql":
                served.say("other", "one")
                taken = {"id": "hot", "policy": None}
                made = served.api.post(f"{served.url}/api/v1/memories/", json=taken, timeout=5)
                assert made.status_code == 409
        answers = [each.result() for each in waiting]
    assert {each.status_code for each in answers} == {200}


def test_a_crowd_shares_a_few_connections(served):
    if connection.vendor != "postgresql":
        pytest.skip("a connection to SQLite is an open file")
    served.create("crowd")
    url, headers = f"{served.url}/api/v1/memories/crowd/", dict(served.api.headers)
    with ThreadPoolExecutor(12) as threads:
        statuses = set(
            threads.map(lambda _: requests.get(url, headers=headers).status_code, range(60))
        )
    assert statuses == {200}
    with psycopg.connect(served.environment["DATABASE_URL"]) as asking:
        (open_,) = asking.execute(
            "SELECT COUNT(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert open_ <= settings.CONNECTIONS + 1  # one for live streams
