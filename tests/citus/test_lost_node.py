"""While a node is down, only requests for its conversations or for all nodes fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import psycopg
import pytest

from chatmemory import MessageWindow, services
from chatmemory.exceptions import MemoryNotFound
from chatmemory.ledger.verification import verify
from chatmemory.reading import conversations, history
from inspector.rooms.live import following

from ..connecting import connected_to
from ..conversations import create_and_add, numbered
from ..plans.plans import rows_of
from .cluster import URL

if not URL:
    reason = "CITUS_DATABASE_URL names no coordinator of a Citus cluster"
    pytest.skip(reason, allow_module_level=True)

WORKERS = "SELECT nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid LIMIT 2"
NODE_OF = """SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid)
    WHERE shardid = get_shard_id_for_distribution_column('chatmemory_memory', %s)"""
MOVE = "UPDATE pg_dist_node SET nodeport = %s WHERE nodeport = %s"
CLOSED = 1  # a port on which nothing listens
NUMBERS = count()
DRAFT = {"role": "user", "text": "And now?"}
USER = {"type": "USER", "contents": [{"type": "TEXT", "text": "once"}]}


class Ids(NamedTuple):
    """Conversations on a node that is down and on another, and branches of the latter on both."""

    lost: str
    there: str
    lost_branch: str
    near_branch: str


@pytest.fixture
def ids(cluster) -> Iterator[Ids]:
    (lost,), (there,) = rows_of(WORKERS, [])
    found = Ids(*(new_id(port) for port in (lost, there, lost, there)))
    for memory_id in found[:2]:
        create_and_add(memory_id, MessageWindow(3), numbered(2, memory_id))
    for branch in found[2:]:
        services.branch(found.there, branch, [])
    with psycopg.connect(cluster.url, autocommit=True) as admin:
        admin.execute(MOVE, [CLOSED, lost])
        try:
            with connected_to(cluster.url):
                yield found
        finally:
            admin.execute(MOVE, [lost, CLOSED])
    left = {memory.id for memory in conversations.memories(found)}
    services.delete_all(left)


def new_id(port: int) -> str:
    names = (f"c{number}" for number in NUMBERS)
    return next(name for name in names if rows_of(NODE_OF, [name]) == [(port,)])


@pytest.fixture
def page(browser):
    """A client of pages that gets a 503 as a response, like a browser."""
    browser.raise_request_exception = False
    return browser


@pytest.fixture
def api(client_of_api):
    client_of_api.raise_request_exception = False
    return client_of_api


def test_the_site_is_ready_and_names_the_node(page, ids):
    ready = page.get("/readyz")
    assert (ready.status_code, ready.content) == (200, b"ready, degraded: node 127.0.0.1:1\n")


def test_the_site_is_not_ready_without_any_node(page, ids, cluster):
    elsewhere = "UPDATE pg_dist_node SET nodename = %s WHERE groupid > 0"
    with psycopg.connect(cluster.url, autocommit=True) as admin:
        (host,) = admin.execute("SELECT nodename FROM pg_dist_node WHERE groupid = 0").fetchone()
        admin.execute(elsewhere, ["nobody.invalid"])
        try:
            assert page.get("/readyz").status_code == 503
        finally:
            admin.execute(elsewhere, [host])


@pytest.mark.parametrize("path", ["", "messages/", "history/", "steps/"])
def test_a_conversation_can_be_read_unless_its_node_is_down(api, ids, path):
    assert api.get(f"/api/v1/memories/{ids.there}/{path}").status_code == 200
    lost = api.get(f"/api/v1/memories/{ids.lost}/{path}")
    assert (lost.status_code, lost.data["title"]) == (503, "Database down")


@pytest.mark.parametrize("path", ["", "settings/", "export/", "compare/", "live/"])
def test_a_page_can_be_read_unless_its_node_is_down(page, ids, path):
    assert page.get(f"/c/{ids.there}/{path}").status_code == 200
    assert page.get(f"/c/{ids.lost}/{path}").status_code == 503


def test_watchers_of_other_conversations_get_news(ids):
    watched = [ids.lost, following.ALL_CONVERSATIONS, ids.there, "nobody"]
    found = following.newest_of(watched)
    assert found.keys() <= {ids.there, "nobody"}
    assert found[ids.there].step == conversations.memory(ids.there).version


def test_pages_that_list_all_conversations_fail_and_offer_to_open_one(page, api, ids):
    failed = page.get("/")
    assert failed.status_code == api.get("/api/v1/memories/").status_code == 503
    for words in ("A node is down", "127.0.0.1:1 does not answer", "Sign out"):
        assert words in " ".join(failed.content.decode().split())
    assert page.get("/c/", {"id": ids.there}, follow=True).status_code == 200


def test_a_conversation_can_be_changed_unless_its_node_is_down(api, ids):
    body = {"messages": [USER]}
    for memory_id, status in ((ids.there, 201), (ids.lost, 503)):
        url = f"/api/v1/memories/{memory_id}/messages/"
        assert api.post(url, body).status_code == status
        assert api.post(url, body, headers={"Idempotency-Key": memory_id}).status_code == status
    assert verify(ids.there) is None


def test_a_simulation_is_kept(page, ids):
    answer = page.post(f"/c/{ids.there}/simulate/", DRAFT)
    assert answer.status_code == 302
    assert b"And now?" in page.get(answer["Location"]).content
    assert page.post(f"/c/{ids.lost}/simulate/", DRAFT).status_code == 503


def test_a_message_is_redacted_with_the_branch_that_is_named(api, ids):
    url = f"/api/v1/memories/{ids.there}/messages/1/redact/"
    assert api.post(url, {"branches": True}).status_code == 503
    assert api.post(url, {"branches": [ids.lost_branch]}).status_code == 503
    assert history.message(ids.there, 1).redacted is None
    answer = api.post(url, {"branches": [ids.near_branch]}, headers={"Idempotency-Key": "named"})
    assert (answer.status_code, answer.data["copies"]) == (200, None)
    for memory_id in (ids.there, ids.near_branch):
        assert history.message(memory_id, 1).redacted
        assert verify(memory_id) is None


def test_a_page_warns_before_it_redacts(page, ids):
    url = f"/c/{ids.there}/redact/1/"
    assert b"A node of the cluster does not answer" in page.post(url).content
    assert history.message(ids.there, 1).redacted is None
    assert page.post(url, {"confirmed": "1"}).status_code == 302
    assert history.message(ids.there, 1).redacted


def test_a_conversation_is_deleted(api, ids):
    assert api.delete(f"/api/v1/memories/{ids.there}/").status_code == 204
    assert api.delete(f"/api/v1/memories/{ids.lost}/").status_code == 503
    with pytest.raises(MemoryNotFound):
        conversations.memory(ids.there)


def test_a_page_warns_before_it_deletes(page, ids):
    form = {"action": "delete", "id": ids.there}
    assert b"A node of the cluster does not answer" in page.post("/bulk/", form).content
    assert page.post("/bulk/", form | {"confirmed": "1"}).status_code == 302
    assert not conversations.memories([ids.there])
