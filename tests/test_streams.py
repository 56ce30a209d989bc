"""Windows are sent whole, and exports while they are read; none ends early as if it were whole."""

from __future__ import annotations

import asyncio
import json
import zlib

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.middleware.gzip import GZipMiddleware
from django.test import AsyncClient, AsyncRequestFactory, RequestFactory
from django.test.utils import CaptureQueriesContext

from chatmemory import (
    AiMessage,
    MessageWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.exceptions import MemoryNotFound
from chatmemory.formats import render_messages
from chatmemory.reading.history import WholeHistory
from chatmemory.streaming import json_list, streamed

from .conversations import create_and_add

SAID = [
    UserMessage("where is it?"),
    AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),), "let me look"),
    ToolExecutionResultMessage("1", "find", "shipped"),
    AiMessage("on its way"),
]
STORE, WINDOW = "/api/v1/store/long/", "/api/v1/memories/long/messages/"
HISTORY, KEPT = "/c/long/export/?download=1", "/c/long/export/?download=1&what=window"


@pytest.fixture
def long(db, monkeypatch) -> str:
    """A conversation of forty messages, read three at a time and sent in short chunks."""
    monkeypatch.setattr(WholeHistory, "READ_AT_ONCE", 3)
    monkeypatch.setattr("chatmemory.streaming.CHUNK", 100)
    create_and_add("long", MessageWindow(39), SAID * 10)
    return "long"


def text_of(response) -> bytes:
    return b"".join(response)


@pytest.mark.parametrize("url", [STORE, WINDOW])
def test_a_window_is_complete_before_any_of_it_is_sent(api, long, url):
    with CaptureQueriesContext(connection) as captured:
        answer = api.get(url)
        begun = len(captured)
        content = text_of(answer)
    assert not answer.streaming
    assert (answer["Content-Type"], answer["Content-Length"]) == (
        "application/json",
        str(len(content)),
    )
    assert len(captured) == begun
    if url == STORE:
        assert json.loads(content) == render_messages((SAID * 10)[1:], "langchain4j").value


@pytest.mark.parametrize("format", ["langchain4j", "openai_chat", "sharegpt"])
def test_an_export_is_sent_in_parts(operator_client, long, format):
    content = text_of(operator_client.get(f"{HISTORY}&format={format}"))
    assert json.loads(content) == render_messages(SAID * 10, format).value
    kept = text_of(operator_client.get(f"{KEPT}&format={format}&at=20"))
    assert json.loads(kept) == render_messages(SAID * 5, format).value
    answer = operator_client.post("/bulk/", {"action": "export", "id": ["long"]})
    (line,) = text_of(answer).splitlines()
    assert len(json.loads(line)["messages"]) == 40


@pytest.mark.parametrize("url", [STORE, WINDOW, HISTORY, KEPT])
def test_messages_added_meanwhile_are_not_sent(operator_client, long, url):
    before = text_of(operator_client.get(url))
    answer = operator_client.get(url)
    services.change("long", policy=MessageWindow(2))
    services.add("long", SAID)
    assert text_of(answer) == before


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_deletion_meanwhile_breaks_off(operator_client, long, is_made_anew):
    answer = operator_client.get(HISTORY)
    services.delete("long")
    if is_made_anew:
        create_and_add("long", MessageWindow(50), SAID * 10)
    with pytest.raises(MemoryNotFound, match="was deleted during this request"):
        text_of(answer)


def test_the_page_of_an_export_looks_at_a_part(operator_client, long, monkeypatch):
    monkeypatch.setattr("inspector.rooms.transfer.views.PREVIEWED", 4)
    page = operator_client.get("/c/long/export/?format=openai_chat")
    assert page.context["lost"] == [("thinking", 1)]
    assert "of the first 4 messages" in page.content.decode()
    assert "40 messages" in page.content.decode()


# Under ASGI, Django would collect an iterator that is not asynchronous before it sends any of it.


def drawing(drawn: list[int]):
    for n in range(1_000):
        drawn.append(n)
        yield n


@pytest.mark.parametrize("factory", [RequestFactory, AsyncRequestFactory])
def test_an_answer_is_made_while_it_is_sent(db, monkeypatch, factory):
    monkeypatch.setattr("chatmemory.streaming.CHUNK", 10)
    drawn: list[int] = []
    answer = streamed(factory().get("/"), json_list(drawing(drawn)), "application/json")

    async def first_and_all() -> tuple[int, bytes]:
        parts = aiter(answer)
        first = await anext(parts)
        return len(drawn), first + b"".join([part async for part in parts])

    if factory is AsyncRequestFactory:
        reached, content = asyncio.run(first_and_all())
    else:
        parts = iter(answer)
        content, reached = next(parts), len(drawn)
        content += b"".join(parts)
    assert reached < 30
    assert json.loads(content) == list(range(1_000))


def unpacked(content: bytes) -> bytes:
    """What clients read of a gzip stream: they stop at its end."""
    reader = zlib.decompressobj(31)
    read = reader.decompress(content)
    assert (reader.eof, reader.unused_data) == (True, b"")
    return read


async def all_of(answer) -> bytes:
    return b"".join([part async for part in answer])


@pytest.mark.parametrize("factory", [RequestFactory, AsyncRequestFactory])
def test_a_long_answer_is_compressed_as_one_stream(db, monkeypatch, factory):
    monkeypatch.setattr("chatmemory.streaming.CHUNK", 10)
    values = [f"ä{n}" for n in range(1_000)]

    def stream_answer(request):
        return streamed(request, json_list(values), "application/json")

    answer = GZipMiddleware(stream_answer)(
        factory().get("/", headers={"Accept-Encoding": "gzip, br"})
    )
    is_async = factory is AsyncRequestFactory
    content = asyncio.run(all_of(answer)) if is_async else b"".join(answer)
    assert (answer["Content-Encoding"], answer["Vary"]) == ("gzip", "Accept-Encoding")
    assert json.loads(unpacked(content)) == values
    assert len(content) < 5_000


def test_a_compressed_answer_that_breaks_off_has_no_end(monkeypatch):
    def failing():
        yield from ("a", "b", "c")
        raise MemoryNotFound("gone")

    monkeypatch.setattr("chatmemory.streaming.CHUNK", 9)
    with pytest.raises(MemoryNotFound):  # in the first chunk, it can still be answered
        streamed(RequestFactory().get("/"), failing(), "text/plain")
    monkeypatch.setattr("chatmemory.streaming.CHUNK", 1)
    request = RequestFactory().get("/", headers={"Accept-Encoding": "gzip"})
    parts = iter(streamed(request, failing(), "text/plain"))
    reader = zlib.decompressobj(31)
    reader.decompress(next(parts))
    with pytest.raises(MemoryNotFound):
        reader.decompress(b"".join(parts))
    assert not reader.eof


@pytest.mark.parametrize("url", [STORE, WINDOW, HISTORY, KEPT])
def test_clients_read_all_of_a_long_compressed_answer(operator_client, long, url, monkeypatch):
    monkeypatch.setattr("chatmemory.streaming.close_old_connections", lambda: None)  # the test's
    client = AsyncClient()
    client.cookies = operator_client.cookies
    plain = text_of(operator_client.get(url))

    @async_to_sync
    async def packed() -> bytes:
        answer = await client.get(url, headers={"Accept-Encoding": "gzip"})
        return await all_of(answer) if answer.streaming else answer.content

    assert unpacked(packed()) == plain


def test_the_version_of_a_long_compressed_window_is_a_weak_tag(api, long):
    assert api.get(WINDOW)["ETag"] == '"40"'
    assert api.get(WINDOW, headers={"Accept-Encoding": "gzip"})["ETag"] == 'W/"40"'


def test_no_part_of_an_answer_keeps_a_connection(monkeypatch):
    monkeypatch.setattr("chatmemory.streaming.CHUNK", 1)
    closed: list[None] = []
    monkeypatch.setattr("chatmemory.streaming.close_old_connections", lambda: closed.append(None))
    answer = streamed(AsyncRequestFactory().get("/"), "abc", "text/plain")

    async def closed_before_each() -> list[int]:
        return [len(closed) async for _ in answer]

    assert asyncio.run(closed_before_each()) == [1, 2, 3]
