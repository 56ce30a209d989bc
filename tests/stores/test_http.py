"""The store over HTTP against a real server, through a line that loses responses."""

from __future__ import annotations

import json
import re
import socket
import threading
import zlib
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest

from chatmemory import InvalidValue, MessageWindowChatMemory, UnstorableText, UserMessage
from chatmemory.messages.codec import messages_from_json
from chatmemory.messages.quotes import NOTICE, Query
from chatmemory.stores.http import HttpChatMemoryStore, HttpStoreError
from chatmemory.tools import search_history

PAGE = b"<html>Sign in to the network</html>"


def whole_request(client: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        body += client.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def line_to(port: int, lost: int):
    """The port of a line to a server, which cuts the first connections after their request."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def carry() -> None:
            for number in range(lost + 1):
                client, _ = listening.accept()
                with client, socket.create_connection(("127.0.0.1", port)) as server:
                    server.sendall(whole_request(client))
                    response = server.recv(65_536)
                    if number == lost:
                        client.sendall(response)

        carrying = threading.Thread(target=carry)
        carrying.start()
        yield listening.getsockname()[1]
        carrying.join()


@pytest.fixture
def memory_id() -> str:
    return uuid4().hex


@pytest.fixture
def store_at():
    """Makes stores that are closed at the end: `store_at(url, token, …)`."""
    with ExitStack() as opened:
        yield lambda *given, **options: opened.enter_context(
            HttpChatMemoryStore(*given, pause=0, **options)
        )


@pytest.fixture
def store(store_at, served) -> HttpChatMemoryStore:
    return store_at(served.url, served.token)


def test_a_long_window_is_read_whole(store, served, memory_id):
    said = [UserMessage(f"{n} " + "x" * 50_000) for n in range(4)]
    store.update_messages(memory_id, said)
    assert store.get_messages(memory_id) == said
    url = f"{served.url}/api/v1/store/{memory_id}/"
    with served.api.get(url, headers={"Accept-Encoding": "gzip"}, stream=True) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        packed, reader = answer.raw.read(decode_content=False), zlib.decompressobj(31)
    assert messages_from_json(reader.decompress(packed).decode()) == said
    assert (reader.eof, reader.unused_data) == (True, b"")


def test_the_server_searches_the_history_for_the_model(store, store_at, served, memory_id):
    memory = MessageWindowChatMemory(memory_id, 2, store)
    tool = search_history(memory)
    assert json.loads(tool("A-1182"))["hits"] == []  # the server does not know it yet
    memory.add(*(UserMessage(each) for each in ("It is A-1182.", "b", "A-1182 again", "d")))
    answer = json.loads(tool("a-1182", limit=1))
    (hit,) = answer["hits"]
    assert (hit["number"], hit["in_memory"], hit["quote"]) == (1, False, "It is A-1182.")
    assert (answer["notice"], answer["has_more"]) == (NOTICE, True)
    query = Query.of("A-1182")
    assert len(store.search_history(memory_id, query).hits) == 2
    lost = store_at("http://127.0.0.1:9", served.token, attempts=1)
    refused = search_history(MessageWindowChatMemory(memory_id, 2, lost))("A-1182")
    assert "The search was refused" in json.loads(refused)["notice"]


@pytest.mark.parametrize("body", [PAGE, b"[]", b"null", b'{"hits": [{"number": 1}]}', b'{"hits"'])
def test_an_answer_that_is_no_search_is_refused(store_at, body):
    query = Query.of("A-1182")
    with (
        answering(http("200 OK", body)) as url,
        pytest.raises(HttpStoreError, match="no response of a chatmemory server"),
    ):
        store_at(url, "token", attempts=1).search_history("a", query)


def test_text_that_cannot_be_sent_is_refused(store, memory_id):
    with pytest.raises(UnstorableText, match="a message cannot contain NUL or lone surrogates"):
        store.update_messages(memory_id, [UserMessage("half of a face: \ud83d")])
    assert store.get_messages(memory_id) == []


def test_a_request_whose_response_was_lost_is_carried_out_once(store, store_at, served, memory_id):
    store.update_messages(memory_id, [UserMessage("one")])
    with line_to(served.port, lost=2) as port:
        behind_it = store_at(f"http://127.0.0.1:{port}", served.token)
        behind_it.update_messages(memory_id, [UserMessage("one"), UserMessage("two")])
    assert served.history(memory_id) == [(1, "one"), (2, "two")]
    steps = served.api.get(f"{served.url}/api/v1/memories/{memory_id}/steps/").json()["steps"]
    assert [step["n"] for step in steps] == [1, 2]


def test_a_server_that_never_answers(store_at):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(HttpStoreError, match=f"GET {url}/api/v1/store/a/: no response") as lost:
        store_at(url, "token", attempts=2).get_messages("a")
    assert lost.value.status is None


def test_the_answer_of_the_server_is_in_the_error(store, store_at, served, memory_id):
    with pytest.raises(HttpStoreError, match="401 Unauthorized: ") as refused:
        store_at(served.url, "wrong").get_messages(memory_id)
    assert refused.value.status == 401
    with pytest.raises(HttpStoreError, match="422 Unstorable text: "):
        store.update_messages(memory_id, [UserMessage("a\0b")])
    with pytest.raises(HttpStoreError, match=r"404 .*check the base URL"):
        store_at(f"{served.url}/elsewhere", served.token).get_messages(memory_id)
    with pytest.raises(InvalidValue, match="at least one character"):
        store.get_messages("")


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8101", "", "ftp://host", "https://:80", "http://host:99999", "http://[::1"),
        *(
            "https://host?a=b",
            "https://host#a",
            "http://xn--a",
            "http://\ud800",
            None,
            b"https://a",
        ),
    ],
)
def test_an_invalid_base_url_is_refused_at_once(store_at, url):
    with pytest.raises(InvalidValue, match="is no base URL: write one such as https://host"):
        store_at(url, "token")


@pytest.mark.parametrize("token", ["secret\n", "secrét", "", None, b"secret"])
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(store_at, token):
    with pytest.raises(InvalidValue, match="the token must be visible ASCII") as refused:
        store_at("https://host", token)
    assert "sec" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://[::1]:80", "HTTPS://host/behind/a/path", "https://münchen.example:443"]
)
def test_any_base_url_of_a_server_is_taken(store_at, url):
    store_at(url, "token")


def test_the_server_infers_why_a_message_left(store_at, served, memory_id):
    store = store_at(f"{served.url}//", served.token)  # a base URL may end with slashes
    MessageWindowChatMemory(memory_id, 1, store).add(UserMessage("one"), UserMessage("two"))
    path = f"{served.url}/api/v1/memories/{memory_id}/messages/1/"
    (stay,) = served.api.get(path).json()["stays"]
    assert (stay["left_step"], stay["reason"]) == (2, "CAPACITY")


@contextmanager
def answering(*answers: bytes):
    """The URL of a server that gives these answers, one to each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def answer() -> None:
            for each in answers:
                client, _ = listening.accept()
                with client:
                    received = b""
                    while b"\r\n\r\n" not in received:
                        received += client.recv(65_536)
                    client.sendall(each)

        giving = threading.Thread(target=answer)
        giving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        giving.join()


def http(status: str, body: bytes = b"", kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("503 Unavailable", PAGE),
        ("429 Too Many Requests", b'{"type":'),
        *(("200 OK", body) for body in (PAGE, b" null ", b'{"a":1}', b"[null]")),
    ],
)
def test_an_answer_that_is_not_the_stores_is_requested_again(store_at, status, body):
    with answering(http(status, body), http("200 OK", b"[]")) as url:
        assert store_at(url, "token", attempts=2).get_messages("a") == []
    with answering(http(status, body)) as url, pytest.raises(HttpStoreError) as refused:
        store_at(url, "token", attempts=1).get_messages("a")
    assert refused.value.may_pass
    assert refused.value.status == int(status[:3])


def test_a_page_of_a_proxy_does_not_count_as_stored(store_at):
    page = http("200 OK", PAGE, "text/html")
    with answering(page, http("204 No Content")) as url:
        store_at(url, "token", attempts=2).update_messages("a", [])
    with answering(page) as url, pytest.raises(HttpStoreError, match="expected the status 204"):
        store_at(url, "token", attempts=1).update_messages("a", [])


@pytest.mark.parametrize("seconds", ["9" * 400, "61"])
def test_a_server_that_says_to_wait_for_ages_is_asked_again_after_a_minute(
    store_at, seconds, monkeypatch
):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    refused = http("503 Unavailable", more=f"Retry-After: {seconds}\r\n")
    with answering(refused, http("200 OK", b"[]")) as url:
        assert store_at(url, "token", attempts=2).get_messages("a") == []
    assert slept == [60]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://ada:s3cret@host",
            "https://s3cret@host/a",
            "ada:s3cret@host",
            "https://:s3cret@",
        ),
    ],
)
def test_credentials_in_a_base_url_are_refused_without_showing_them(store_at, url):
    with pytest.raises(InvalidValue, match="without a name and a password in it") as refused:
        store_at(url, "token")
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
