"""The server, or its PostgreSQL, is killed under load: nothing acknowledged is missing, nothing is
half written, and a client that sends again with its idempotency key gets the first answer.

`make crash` kills the server 50 times and PostgreSQL 10 times; the suite, once each.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from ..serving import served_by
from .clients import IDS, Load, check
from .cluster import Cluster, binaries

SERVER_KILLS = int(os.environ.get("CRASH_SERVER", "1"))
DATABASE_KILLS = int(os.environ.get("CRASH_DATABASE", "1"))


@pytest.mark.long
@pytest.mark.own_server
def test_a_killed_server(served):
    for memory_id in IDS:
        served.create(memory_id, limit=10)
    chance = random.Random(7)
    with Load(served) as load:
        for _ in range(SERVER_KILLS):
            load.wait_for(chance.randint(1, 40))
            served.kill()
            load.wait_for_repeat()
            load.up.clear()
            assert "verified: all match their replay" in served.manage("verify_memories", *IDS)
            served.start()
            load.up.set()
        load.wait_for(20)
    assert load.summaries
    check(served, load.acknowledged, IDS)


@pytest.fixture
def cluster():
    bin = binaries()
    if bin is None:
        pytest.skip("no initdb: this kills a PostgreSQL of its own")
    cluster = Cluster(bin)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.mark.long
def test_a_killed_postgresql(cluster, warm_processes, tmp_path):
    with served_by(cluster.url, tmp_path) as served:
        for memory_id in IDS:
            served.create(memory_id, limit=10)
        chance = random.Random(7)
        with Load(served) as load:
            for _ in range(DATABASE_KILLS):
                load.wait_for(chance.randint(1, 40))
                load.up.clear()
                cluster.kill()
                cluster.start()
                assert "verified: all match their replay" in served.manage("verify_memories", *IDS)
                load.up.set()
            load.wait_for(20)
        assert load.summaries
        check(served, load.acknowledged, IDS)


@pytest.mark.own_server
def test_a_response_from_before_the_crash_is_repeated(served):
    """No message is stored twice, acknowledged or not."""
    served.create("again")
    url = f"{served.url}/api/v1/memories/again/messages/"
    body = {"messages": [{"role": "user", "content": "once"}], "format": "openai_chat"}
    key = {"Idempotency-Key": "a"}
    first = served.api.post(url, json=body, headers=key)
    served.kill()
    served.start()
    second = served.api.post(url, json=body, headers=key)
    assert json.loads(second.text) == json.loads(first.text)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert served.history("again") == [(1, "once")]
