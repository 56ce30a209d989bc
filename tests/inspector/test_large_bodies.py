"""Bodies that are accepted take bounded memory, whatever their messages are made of."""

from __future__ import annotations

import pytest
import requests

from ..peaks import most, peak
from .test_bodies import prepared_import

JSON = {"Content-Type": "application/json"}
EMOJI = "\N{SLOTH}".encode()
MESSAGES = 10_000
LONGEST = 490_000


def text_of(size: int, words: bytes) -> bytes:
    """Words and one emoji, for which Python keeps four bytes per character."""
    return words * ((size - 100) // len(words)) + EMOJI


def system(text: bytes) -> bytes:
    return b'[{"type":"SYSTEM","text":"' + text + b'"}]'


def user(part: bytes, count: int) -> bytes:
    return b'{"type":"USER","contents":[' + b",".join([part] * count) + b"]}"


def several(message: bytes, count: int) -> bytes:
    return b"[" + b",".join([message] * count) + b"]"


def called(arguments: bytes) -> bytes:
    """A call, whose text is not that of the message."""
    request = b'{"name":"f","arguments":"' + arguments + b'"}'
    return b'[{"type":"AI","toolExecutionRequests":[' + request + b"]}]"


def attributes(count: int, value: bytes) -> bytes:
    named = b",".join(b'"%d":%b' % (n, value) for n in range(count))
    return b'[{"type":"CUSTOM","attributes":{' + named + b"}}]"


PART = b'{"text":"a","type":"TEXT"}'
LISTS = {
    "one emoji": several(system(text_of(LONGEST, b"a b "))[1:-1], 7),
    "one emoji at the end of a word": several(system(text_of(LONGEST, b"a"))[1:-1], 7),
    "one emoji in a call": several(called(text_of(LONGEST, b"a b "))[1:-1], 7),
    "escaped controls and an emoji": several(system(text_of(LONGEST, rb"\u001f"))[1:-1], 7),
    "backslashes and a control": several((system(text_of(LONGEST, rb"\\") + rb"\u001f"))[1:-1], 7),
    "an emoji in each message": several(system(text_of(1_600, b"a b "))[1:-1], 5_000),
    "very short messages": several(b'{"type":   "AI"}', MESSAGES),
    "different messages": several(b'{"type":"AI","text":"%d"}', MESSAGES) % tuple(range(MESSAGES)),
    "messages of one part": several(user(PART, 1), MESSAGES),
    "messages of many parts": several(user(PART, 10), 6_500),
    "one message of many parts": several(user(PART, 74_000), 1),
    "messages of many attributes": several(attributes(49_000, b"1")[1:-1], 2),
    "an attribute with an emoji": several(
        attributes(1, b'"' + text_of(LONGEST, b"a b ") + b'"')[1:-1], 7
    ),
}


REFUSED = {
    "more attributes than a message may have": attributes(400_000, b"1"),
    "longer attributes than a message may have": attributes(190_000, b'"nearly a word"'),
    "more attributes than all messages may have": several(attributes(49_000, b"1")[1:-1], 8),
}


@pytest.mark.own_server
@pytest.mark.parametrize("shape", REFUSED)
def test_a_window_that_is_refused(served, shape):
    served.api.get(f"{served.url}/api/v1/store/large/").raise_for_status()
    before, body = peak(served), REFUSED[shape]
    url = f"{served.url}/api/v1/store/large/"
    refused = served.api.put(url, data=body, headers=JSON)
    assert refused.status_code == 400
    assert "properties" in refused.json()["detail"]
    assert peak(served) - before <= most(body)


def grows(served, method: str, path: str, body: bytes) -> None:
    """Send a body, and compare what it takes at most with the memory that it may take."""
    before = peak(served)
    answer = served.api.request(method, f"{served.url}/api/v1/{path}", data=body, headers=JSON)
    answer.raise_for_status()
    assert peak(served) - before <= most(body)


@pytest.mark.own_server
@pytest.mark.parametrize("shape", LISTS)
def test_a_window_that_a_client_stores(served, shape):
    served.api.get(f"{served.url}/api/v1/store/large/").raise_for_status()
    grows(served, "PUT", "store/large/", LISTS[shape])


@pytest.mark.own_server
@pytest.mark.parametrize("shape", LISTS)
def test_a_window_that_is_set(served, shape):
    served.create("large", limit=MESSAGES)
    grows(served, "PUT", "memories/large/messages/", b'{"messages":' + LISTS[shape] + b"}")


ADDED = {
    "one emoji": several(system(text_of(LONGEST, b"a b "))[1:-1], 4),
    "one message of many parts": several(user(PART, 74_000), 1),
}


@pytest.mark.own_server
@pytest.mark.parametrize("shape", ADDED)
def test_messages_that_are_added(served, shape):
    served.create("large", limit=MESSAGES)
    grows(served, "POST", "memories/large/messages/", b'{"messages":' + ADDED[shape] + b"}")


SIMULATED = ["very short messages", "different messages", "messages of one part"]


@pytest.mark.own_server
@pytest.mark.parametrize("shape", SIMULATED)
def test_messages_that_are_simulated(served, shape):
    served.create("large", limit=MESSAGES)
    grows(served, "POST", "memories/large/simulate/", b'{"messages":' + LISTS[shape] + b"}")


@pytest.mark.own_server
def test_a_window_that_is_stored_once(served, monkeypatch):
    served.api.get(f"{served.url}/api/v1/store/large/").raise_for_status()
    monkeypatch.setitem(served.api.headers, "Idempotency-Key", "once")
    grows(served, "PUT", "store/large/", LISTS["one emoji"])


FILES = {
    "one emoji": LISTS["one emoji"],
    "one emoji in the first of two lines": LISTS["one emoji"] + b'\n[{"type":"AI"}]',
    "one message of many parts": LISTS["one message of many parts"],
}


@pytest.mark.own_server
@pytest.mark.parametrize("shape", FILES)
def test_a_file_that_is_imported(served, shape):
    asked = prepared_import(served, "large.json", FILES[shape])
    before = peak(served)
    with requests.Session() as session:
        answer = session.send(asked)
    assert "imported" in answer.text
    assert peak(served) - before <= most(FILES[shape])
