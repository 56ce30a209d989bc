"""Outages and crowds: clear errors, no partial changes, recovery; nobody waits for others."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import requests
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection
from django.test import Client
from rest_framework.test import APIClient

from chatmemory import MessageWindow
from chatmemory.access.tokens import create_token
from chatmemory.database_errors import outage
from chatmemory.ledger.verification import verify
from chatmemory.models import Message, Stay, Step
from inspector.middleware.admission import WAITING_FOR_ONE
from inspector.views.errors import answer_to

from .connecting import row_locked
from .conversations import create_and_add, users
from .load.cluster import Cluster, binaries
from .serving import served_by, unstarted
from .waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/memories/m/messages/"
TWO = {"messages": [{"role": "user", "content": "two"}], "format": "openai_chat"}
LONG = {"messages": [{"type": "USER", "contents": [{"type": "TEXT", "text": "x" * 200_000}]}]}


@pytest.fixture
def api() -> APIClient:
    create_and_add("m", MessageWindow(2), users(*"abc"))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests')}")
    assert client.get("/api/v1/memories/").status_code == 200  # records the last use of the token
    return client


@contextmanager
def having(setting: str, on: str, off: str):
    with connection.cursor() as cursor:
        cursor.execute(f"{setting} = {on}")
        yield
        cursor.execute(f"{setting} = {off}")


def read_only():
    is_sqlite = connection.vendor == "sqlite"
    setting = "PRAGMA query_only" if is_sqlite else "SET default_transaction_read_only"
    return having(setting, "ON", "OFF")


def assert_untouched() -> None:
    assert verify("m") is None
    assert (Message.objects.count(), Stay.objects.count(), Step.objects.count()) == (3, 3, 3)


def assert_refused(answer, state: str) -> None:
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Retry-After"] == "2"
    assert answer.data["title"] == f"Database {state}"


def test_a_full_disk(api):
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's way of being full")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        (pages,) = cursor.fetchone()
    with having("PRAGMA max_page_count", pages, "1073741823"):
        assert_refused(api.post(URL, LONG), "full")
        assert_untouched()
        assert api.get(URL).status_code == 200
    assert api.post(URL, LONG).status_code == 201


class LostNode(Exception):
    """What the driver reports if the server has lost another server."""

    sqlstate = "08006"


def test_the_page_keeps_the_reader_while_a_node_is_down(rf, operator, operator_client):
    create_and_add("acme/1", MessageWindow(2), [])
    request = rf.get("/")
    request.user = operator
    error = OperationalError("connection to the remote node 10.0.0.7:5432 failed")
    error.__cause__ = LostNode()
    page = answer_to(request, error)
    assert (page.status_code, page["Retry-After"]) == (503, "2")
    told = " ".join(page.content.decode().split())
    assert "A node is down" in told
    assert "Sign out" in told
    assert 'action="/c/"' in told
    assert operator_client.get("/c/?id=+acme/1+")["Location"] == "/c/acme~2F1/"
    assert operator_client.get("/c/?id=").status_code == 404


def test_a_read_only_database(api, operator_client):
    unused = {"Authorization": f"Bearer {create_token('unused')}"}
    with read_only():
        assert Client().get(URL, headers=unused).status_code == 200  # its use is not recorded
        assert_refused(api.post(URL, LONG), "read-only")
        assert_untouched()
        assert api.get(URL).status_code == 200
        operator_client.raise_request_exception = False
        page = operator_client.post("/c/m/add/", {"role": "user", "text": "hello"})
        assert page.status_code == 503
        assert page["Retry-After"] == "2"
        assert "The database is read-only" in page.content.decode()
        assert Client().get("/readyz").content == b"ready, read-only\n"
    assert Client().get("/readyz").content == b"ready\n"
    assert api.post(URL, LONG).status_code == 201


@pytest.mark.own_server(CHATMEMORY_DISK_FREE_MB="999999999")
def test_readyz_tells_of_a_full_disk(served):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's disk may be another machine's")
    ready = requests.get(f"{served.url}/readyz")
    assert (ready.status_code, ready.text) == (200, "ready, disk full: less than 999999999 MB\n")


def test_a_database_that_is_not_migrated(api):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE chatmemory_memory RENAME TO elsewhere")
        try:
            assert_refused(api.get(URL), "not migrated")
            ready = Client().get("/readyz")
            assert ready.status_code == 503
            assert b"not migrated" in ready.content
            assert Client().get("/healthz").status_code == 200
        finally:
            cursor.execute("ALTER TABLE elsewhere RENAME TO chatmemory_memory")
    assert api.get(URL).status_code == 200


@pytest.mark.own_server(CHATMEMORY_LOCK_SECONDS="1")
def test_a_writer_waits_and_then_gets_retry_after(served):
    served.create("busy")
    served.say("busy", "one")
    url = f"{served.url}/api/v1/memories/busy/messages/"
    unused = {"Authorization": f"Bearer {served.manage('create_token', 'unused').strip()}"}
    with row_locked(served.environment["DATABASE_URL"], "busy"):
        answer = served.api.post(url, json=TWO)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "2"
        assert answer.json()["title"] == "Database busy"
        assert served.api.get(url).status_code == 200
        assert requests.get(url, headers=unused).status_code == 200  # its use is not recorded
    assert served.api.post(url, json=TWO).status_code == 201


# Root, but no longer above the permissions of files
AS_OTHERS = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]


def is_open(file: Path, process: int) -> bool:
    """Whether a process has a file open, which it can then write whatever its mode is now."""
    descriptors = Path(f"/proc/{process}/fd").iterdir()
    return str(file) in map(os.path.realpath, descriptors)


def test_a_read_only_database_file(template, tmp_path):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has files of its own")
    file = tmp_path / "served.sqlite3"
    with unstarted(tmp_path, template) as served:
        served.start(*(AS_OTHERS if os.geteuid() == 0 else []))
        served.create("m")
        served.say("m", "one")

        def ask() -> tuple[int, int, str]:
            write = served.api.post(f"{served.url}/api/v1/memories/m/messages/", json=TWO)
            read = served.api.get(f"{served.url}/api/v1/memories/m/")
            ready = served.api.get(f"{served.url}/readyz")
            return write.status_code, read.status_code, ready.text

        def is_closed() -> bool:
            """Whether the thread of derived rows has closed it, and each failed write."""
            return not is_open(file, served.pid)

        file.chmod(0o444)
        until(is_closed)
        assert ask() == (503, 200, "ready, read-only\n")
        for each in tmp_path.glob("served.sqlite3*"):  # including the new write-ahead log
            each.chmod(0o644)
        until(is_closed)
        assert ask() == (201, 200, "ready\n")
        assert served.history("m") == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("statement", ["SELEC 1", "SELECT nothing()"])
def test_an_error_in_a_statement_is_not_an_outage(statement):
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as raised:
        cursor.execute(statement)
    assert outage(raised.value) is None


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no nodes")
@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("server closed the connection unexpectedly", "down"),
        ("SSL SYSCALL error: EOF detected", "down"),
        ("failure on connection marked as essential: 10.0.0.7:5432", "down"),
        ("cache lookup failed for relation 1", None),
    ],
)
def test_citus_tells_in_words_that_a_node_ended(message, state):
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as raised:
        cursor.execute(f"DO $$ BEGIN RAISE '{message}' USING ERRCODE = 'XX000'; END $$")
    found = outage(raised.value)
    assert (found and found.state) == state


def test_a_database_that_is_stopped_and_comes_back(warm_processes, tmp_path):
    cluster_of_its_own = binaries()
    if cluster_of_its_own is None:
        pytest.skip("no initdb: PostgreSQL is not installed here")
    cluster = Cluster(cluster_of_its_own)
    cluster.start()
    try:
        with served_by(cluster.url, tmp_path) as served:
            served.create("m")
            served.say("m", "one")
            reader = served.session()
            cluster.pause()
            url = f"{served.url}/api/v1/memories/m/messages/"
            with ThreadPoolExecutor() as threads:  # each waits for a connection for a while
                asked = [
                    threads.submit(served.api.get, url),
                    threads.submit(served.api.post, url, json={"messages": []}),
                    threads.submit(reader.get, f"{served.url}/c/m/"),
                    threads.submit(reader.get, f"{served.url}/c/m/live/"),
                    threads.submit(reader.get, f"{served.url}/readyz"),
                ]
            answers = [each.result() for each in asked]
            assert [answer.status_code for answer in answers] == [503] * 5
            assert [answer.headers.get("Retry-After") for answer in answers] == ["2"] * 5
            assert answers[0].json()["title"] == "Database down"
            assert "The database is down" in answers[2].text
            assert requests.get(f"{served.url}/healthz").status_code == 200
            cluster.start()
            assert requests.get(f"{served.url}/readyz").text == "ready\n"
            served.say("m", "two")
            assert served.history("m") == [(1, "one"), (2, "two")]
    finally:
        cluster.stop()


# Many clients at once: few connections, and nobody waits for a conversation of others.


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
    assert "16 other changes of this conversation are already waiting" in problem.json()["detail"]
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
    assert open_ <= settings.CONNECTIONS + 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pool")
def test_a_request_does_not_wait_for_connections_of_background_threads():
    pool = connection.pool
    with ExitStack() as taken:
        for _ in range(settings.CONNECTIONS + 1):  # requests, or the keeper in place of one
            taken.enter_context(pool.connection(timeout=settings.CONNECT_SECONDS))
