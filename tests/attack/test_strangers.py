"""Strangers who keep posting to a deployed server, and clients that read slowly (`make attack`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import requests

from ..deployed import Deployed, deploying
from ..inspector.test_admission import slow_socket
from ..inspector.test_body_memory import FORM, KILOBYTE, filled
from ..peaks import MEGABYTE, bounded_growth

pytestmark = pytest.mark.long
SECONDS = 60
PROCESSES = 2  # which count by themselves
FORMS, REFUSED = 300, 100
RATES = {  # as by default, but in an hour, which does not end meanwhile
    "CHATMEMORY_FORM_RATE": f"{FORMS}/hour",
    "CHATMEMORY_STRANGER_RATE": f"{REFUSED}/hour",
}


@pytest.fixture
def deployed(template, tmp_path):
    with deploying(tmp_path, template, CHATMEMORY_METRICS_DIR="", **RATES) as deployed:
        yield deployed


@contextmanager
def bounded_workers(deployed: Deployed) -> Iterator[None]:
    """Fails if the requests in the block take more than 100 MB of any worker."""
    with ExitStack() as bounds:
        for worker in deployed.workers():
            bounds.enter_context(bounded_growth(worker))
        yield


@pytest.fixture
def stranger(deployed) -> requests.Session:
    session = requests.Session()
    session.headers["X-Forwarded-Proto"] = "https"
    session.get(f"{deployed.served.url}/sign-in/").raise_for_status()
    return session


@pytest.mark.parametrize("path", ["/sign-in/", "/theme/", "/display/", "/nowhere/"])
def test_a_stranger_who_keeps_posting_must_wait(deployed, stranger, path):
    url, body = deployed.served.url, filled(b"theme=", b"%41", 64 * KILOBYTE)
    with bounded_workers(deployed):
        statuses = Counter(
            stranger.post(url + path, data=body, headers=FORM, timeout=SECONDS).status_code
            for _ in range(PROCESSES * FORMS + 1)
        )
    assert statuses[429] > 0
    assert 200 not in statuses
    assert deployed.served.api.get(f"{url}/api/v1/memories/").status_code == 200


@pytest.mark.parametrize(
    "path", ["/sign-in/", "/theme/", "/learn/playground/", "/api/v1/memories/"]
)
def test_a_stranger_who_keeps_posting_large_bodies_must_wait(deployed, stranger, path):
    url, body = deployed.served.url, filled(b"theme=", b"%41", 15 * MEGABYTE)
    with bounded_workers(deployed):
        for n in range(PROCESSES * REFUSED + 1):
            sent = body if n < 12 else body[: 3 * MEGABYTE]
            answer = stranger.post(url + path, data=sent, headers=FORM, timeout=SECONDS)
            if answer.status_code == 429:
                break
            assert answer.status_code == 413
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 3600


def test_slow_readers_of_large_windows_block_no_other_request(deployed, stranger):
    served = deployed.served
    served.create("m", limit=100)
    for n in range(10):
        served.say("m", f"{n} " + "some words of a message " * 20_000)
    with bounded_workers(deployed), ExitStack() as opened:
        for path in ("memories/m/messages/", "store/m/", "memories/m/messages/?at=9"):
            opened.enter_context(slow_socket(served, f"/api/v1/{path}"))
        for _ in range(20):
            answer = served.api.get(f"{served.url}/api/v1/memories/m/", timeout=SECONDS)
            assert answer.status_code == 200  # also of the same token
        assert stranger.get(f"{served.url}/learn/", timeout=SECONDS).status_code == 200
