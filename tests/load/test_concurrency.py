"""Several processes write at once; the history has every acknowledged message once, in order.

Policy changes, clears and sets are strewn in. In `make load`, eight processes write 500 messages
each, to one conversation and to 50, over REST and in process; in the suite, three write a few over
REST to one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .clients import check

WRITERS = int(os.environ.get("LOAD_WRITERS", "3"))
EACH = int(os.environ.get("LOAD_ADDS", "20"))
MANY = int(os.environ.get("LOAD_CONVERSATIONS", "10"))
WORKER = Path(__file__).with_name("worker.py")


def write_at_once(served, ids: list[str], over_rest: bool) -> list[tuple[str, str, int]]:
    """The messages that were acknowledged to all writers: conversation, text, seq."""
    address = [served.url, served.token] if over_rest else []
    shared = [str(EACH), ",".join(ids), *address]
    writers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(number), *shared],
            env=served.environment | {"PYTHONPATH": str(WORKER.parents[2])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    acknowledged = []
    for writer in writers:
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        acknowledged += [tuple(json.loads(line)) for line in out.splitlines()]
    return acknowledged


@pytest.mark.parametrize(
    ("conversations", "over_rest"),
    [
        pytest.param(1, True, id="one over REST"),
        pytest.param(MANY, True, id="many over REST", marks=pytest.mark.long),
        pytest.param(1, False, id="one in process", marks=pytest.mark.long),
        pytest.param(MANY, False, id="many in process", marks=pytest.mark.long),
    ],
)
def test_no_message_is_lost_or_doubled_and_the_ledger_is_consistent(
    served, conversations, over_rest
):
    ids = [
        f"{'rest' if over_rest else 'local'}-{n}-of-{conversations}" for n in range(conversations)
    ]
    for memory_id in ids:
        served.create(memory_id, limit=20)
    acknowledged = write_at_once(served, ids, over_rest)
    assert len(acknowledged) == WRITERS * EACH
    check(served, acknowledged, ids)
