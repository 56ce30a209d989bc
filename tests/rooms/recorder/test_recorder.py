"""The recorder between a program and its provider: what it passes on, records and refuses."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

import inspector.rooms.recorder as recorder_room
from inspector.rooms.calls.belonging import continued_by
from inspector.rooms.calls.call import DropReason, NewCall, SentRequest, Source
from inspector.rooms.calls.models import DroppedCalls, ModelCall
from inspector.rooms.calls.reads import one_call
from inspector.rooms.recorder import spool as files
from inspector.rooms.recorder.proxy.files import SpoolFile, Unwritten
from inspector.rooms.recorder.proxy.handover import ANSWERING, HandOver
from inspector.rooms.recorder.proxy.headers import RequestHead, narrowed
from inspector.rooms.recorder.proxy.secrets import Cleaner, secrets
from inspector.rooms.recorder.storing import Storing
from tests.rooms.calls.exchanges import SEVERAL, exchanges

from ...connecting import connected_to
from .upstream import ANSWER, CHAT, answer_json, chunk, ended, recorder, store_all

REQUEST = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Grüße"}], "new": [1.0, {}]}
KEY = "sk-secret-0123456789"


def test_a_request_and_its_answer_pass_unchanged(upstream, client):
    def answer(handler, got):
        answer_json(handler, ANSWER, 418, X_Request_Id="req_1", Keep_Alive="timeout=5")

    upstream.answer = answer
    body = json.dumps(REQUEST).encode()
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "X-Own": "1",
        "X-Chatmemory-Conversation": "desk",
        "Connection": "X-Hop, Content-Length",
        "X-Hop": "1",
        "Accept-Encoding": "br, dcb, gzip;q=0.5, zstd",
    }
    found = client.post(f"{CHAT}?a=%20b&c", content=body, headers=headers)
    (got,) = upstream.got
    assert (got.path, got.body) == (f"{CHAT}?a=%20b&c", body)
    assert got.header("authorization") == f"Bearer {KEY}"
    assert got.header("x-own") == "1"
    assert got.header("x-chatmemory-conversation") is None
    assert got.header("x-hop") is None
    assert got.header("accept-encoding") == "br, gzip;q=0.5, zstd"
    assert got.header("host") == upstream.url.removeprefix("http://")
    assert found.status_code == 418
    assert found.json() == ANSWER
    assert found.headers["X-Request-Id"] == "req_1"
    assert "Keep-Alive" not in found.headers


def test_a_call_is_recorded_with_its_bytes(db, client, folder):
    body = json.dumps(REQUEST, ensure_ascii=False, separators=(",", ":")).encode()
    client.post(CHAT, content=body, headers={"X-Chatmemory-Conversation": "desk"})
    (call,) = store_all(folder)
    found = one_call("desk", call.n)
    assert found.body == body
    assert found.request == REQUEST
    assert found.response == ANSWER
    assert call.usage == (9, 4, None, 2, None)
    assert (call.finish, call.error, call.is_exact) == ("stop", "", True)
    assert 0 < call.duration < 5


def test_what_passes_unrecorded_is_counted_by_its_name(db, client, folder):
    client.get("/v1/models")
    client.post("/v1/messages/count_tokens", json=REQUEST)
    client.post("/v1/threads/thread_8f2/messages", json=REQUEST)
    client.post("/v1/files", files={"file": b"words"})
    client.post("/v1beta/models/gemini-2.5-pro:countTokens?key=1", json=REQUEST)
    for _ in range(3):
        client.post(CHAT, files={"file": b"words"})
    assert store_all(folder) == []
    rows = DroppedCalls.objects.filter(why=DropReason.PASSED)
    assert dict(rows.values_list("sender", "count")) == {
        "POST /v1/messages/count_tokens": 1,
        "POST /v1/threads/…/messages": 1,
        "POST /v1/files": 1,
        "POST /v1beta/models/…:countTokens": 1,
        f"POST {CHAT}": 3,
    }


def test_no_secret_is_kept(upstream, client, folder, caplog):
    """Also not where a provider echoes it, in pieces or packed."""

    def answer(handler, got):
        echoed = {"error": {"message": f"no such key: {got.header('authorization')}"}}
        answer_json(handler, echoed, 401, Set_Cookie="session=abcdefghij", Content_Encoding="gzip")

    upstream.answer = answer
    headers = {"Authorization": f"Bearer {KEY}", "Cookie": "id=0123456789"}
    found = client.post(CHAT, json=REQUEST | {"user": KEY}, headers=headers)
    assert KEY in found.text
    client.post(CHAT, json=REQUEST, headers={"X-Api-Key": KEY, "Api-Key": KEY})
    kept = b"".join(path.read_bytes() for path in ended(folder))
    assert b"no such key" in kept
    assert b"[removed]" in kept
    for secret in (KEY, "0123456789", "abcdefghij"):
        assert secret.encode() not in kept
        assert secret not in caplog.text


def test_a_secret_in_pieces_is_found():
    cleaner = Cleaner(secrets([b"sk-secret"]))
    pieces = [b"a sk-", b"sec", b"ret b sk", b"-x"]
    whole = b"".join([*(cleaner.clean(each) for each in pieces), cleaner.clean(b"", is_last=True)])
    assert whole == b"a [removed] b sk-x"
    assert cleaner.removed == 1


def test_each_chunk_of_a_stream_is_passed_on_at_once(db, upstream, client, folder):
    arrived = threading.Event()
    events = [
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hal"}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
        {"id": "c", "choices": [], "usage": ANSWER["usage"]},
    ]

    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for each in events:
            arrived.clear()
            chunk(handler, f"data: {json.dumps(each)}\n\n".encode())
            assert arrived.wait(5)
        chunk(handler, b"data: [DONE]\n\n")
        chunk(handler, b"")

    upstream.answer = answer
    with client.stream("POST", CHAT, json=REQUEST | {"stream": True}) as found:
        for _ in found.iter_raw():
            arrived.set()
    (call,) = store_all(folder)
    response = one_call(call.memory_id, call.n).response
    assert response["choices"][0]["message"]["content"] == "Hallo"
    assert call.usage.input == 9
    assert call.finish == "stop"


def test_a_client_that_leaves_ends_the_request_and_the_part_is_stored(db, upstream, client, folder):
    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        piece = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
        while True:
            chunk(handler, f"data: {json.dumps(piece)}\n\n".encode())

    upstream.answer = answer
    with client.stream("POST", CHAT, json=REQUEST) as found:
        next(found.iter_raw())
    assert upstream.left.wait(5)
    (call,) = store_all(folder)
    assert call.finish == "cancelled"
    assert "left" in call.error
    content = one_call(call.memory_id, call.n).response["choices"][0]["message"]["content"]
    assert content.startswith("word ")


def test_a_hostile_answer_stops_no_other_call(db, upstream, client, folder):
    """JSON that is too deep, numbers that JSON does not have, and what nobody expected."""
    events = [
        b"[" * 100_000,
        b'{"id": NaN}',
        b'{"choices": [{"index": 0, "delta": {"content": 1}}]}',
    ]

    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for each in (*events, b"[DONE]"):
            chunk(handler, b"data: " + each + b"\n\n")
        chunk(handler, b"")

    upstream.answer = answer
    client.post(CHAT, json=REQUEST)
    frames = [(b"H", b'{"path": null}'), (b"Q", json.dumps(REQUEST).encode())]
    (folder / "0-1-1.call").write_bytes(in_frames(frames))
    (call,) = store_all(folder)
    assert json.loads(call.response)["whole"]["choices"]
    assert [each.name for each in (folder / "refused").iterdir()] == ["0-1-1.call"]


def in_frames(frames: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(kind + len(each).to_bytes(4, "big") + each for kind, each in frames)


def test_each_retry_is_a_call_with_its_error(db, upstream, client, folder):
    def answer(handler, got):
        if len(upstream.got) < 3:
            answer_json(handler, {"error": {"message": "Overloaded"}}, 529)
        else:
            answer_json(handler, ANSWER)

    upstream.answer = answer
    assert [client.post(CHAT, json=REQUEST).status_code for _ in range(3)] == [529, 529, 200]
    calls = store_all(folder)
    assert [each.error for each in calls] == ["529: Overloaded", "529: Overloaded", ""]
    assert len({each.memory_id for each in calls}) == 1


def test_an_upstream_that_cannot_be_reached_is_an_error(db, folder):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with recorder(folder, f"http://127.0.0.1:{port}") as url:
        found = httpx.post(f"{url}{CHAT}", json=REQUEST)
    assert found.status_code == 502
    assert found.json()["error"]["type"] == "recorder_error"
    (call,) = store_all(folder)
    assert call.finish == "failed"


def test_only_a_host_of_this_machine_is_answered(client, upstream):
    for host in ("evil.example", "evil.example:8788", "127.0.0.1.evil.example", ""):
        found = client.post(CHAT, json=REQUEST, headers={"Host": host})
        assert found.status_code == 403
    for host in ("localhost:8788", "127.0.0.1", "[::1]:8788"):
        assert client.post(CHAT, json=REQUEST, headers={"Host": host}).status_code == 200
    assert len(upstream.got) == 3


def raw(site: str, data: bytes) -> bytes:
    """What comes back until the connection ends."""
    host, _, port = site.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_client_chooses_no_upstream_and_no_framing(upstream, site, client):
    """Nor does a page of another site, which a browser shows. The next call is answered."""
    end = b"Connection: close\r\n\r\n"
    for line in (b"CONNECT evil:443", b"POST http://evil/v1/messages", b"POST evil/v1/messages"):
        assert b" 400 " in raw(site, line + b" HTTP/1.1\r\nHost: localhost\r\n" + end)[:16]
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example:80"):
        assert client.post(CHAT, json=REQUEST, headers={"Origin": origin}).status_code == 403
    assert upstream.got == []
    own = {"Origin": "http://localhost:3000"}
    assert client.post(CHAT, json=REQUEST, headers=own).status_code == 200
    both = b"Host: localhost\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n"
    answer = raw(site, b"POST /v1/files HTTP/1.1\r\n" + both + end + b"2\r\n{}\r\n0\r\n\r\n")
    assert b" 400 " in answer[:16]
    assert len(upstream.got) == 1


def test_an_upstream_that_changes_the_protocol_blocks_no_other_call(upstream, client):
    upstream.answer = lambda handler, got: (handler.send_response(101), handler.end_headers())
    assert client.post(CHAT, json=REQUEST, headers={"Upgrade": "h2c"}).status_code == 502
    upstream.answer = lambda handler, got: answer_json(handler, ANSWER)
    assert client.post(CHAT, json=REQUEST).status_code == 200


def test_a_websocket_is_refused_with_a_reason(client):
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    found = client.get("/v1/realtime", headers=headers)
    assert found.status_code == 501
    assert "WebSocket" in found.json()["error"]["message"]


def test_calls_wait_for_their_database_and_the_log_says_once_why(
    db, client, folder, tmp_path, caplog
):
    client.post(CHAT, json=REQUEST)
    ended(folder)
    storing = Storing(folder)
    with connected_to(f"sqlite:///{tmp_path / 'empty.sqlite3'}"):
        assert not any(storing.store_waiting() for _ in range(2))
    (why,) = caplog.messages
    assert "not migrated" in why
    assert storing.store_waiting()
    assert ModelCall.objects.count() == 1


def test_a_spool_that_cannot_be_written_fails_no_call(client, folder):
    folder.rmdir()
    assert client.post(CHAT, json=REQUEST).json() == ANSWER


def test_a_chunked_body_and_a_connection_that_is_used_again(upstream, client):
    def pieces():
        yield b'{"model": "gpt-4o",'
        yield b' "messages": []}'

    for _ in range(3):
        client.post(CHAT, content=pieces(), headers={"Content-Type": "application/json"})
    assert {got.body for got in upstream.got} == {b'{"model": "gpt-4o", "messages": []}'}


def test_a_stale_connection_is_replaced(upstream, client):
    """The provider closes each connection after its answer without announcing it."""

    def answer(handler, got):
        answer_json(handler, ANSWER)
        handler.close_connection = True

    upstream.answer = answer
    assert [client.post(CHAT, json=REQUEST).status_code for _ in range(3)] == [200] * 3


def test_a_connection_that_is_closed_during_a_body_is_replaced(folder):
    """What had come of the body is sent again, and the rest follows."""
    closed = threading.Event()
    bodies = []

    def pieces():
        yield b'{"model": "gpt-4o",'
        assert closed.wait(10)
        yield from (b" " for _ in range(100))
        yield b'"messages": []}'

    def serve() -> None:
        first, _ = provider.accept()
        received(first)
        first.sendall(answer)
        first.recv(1)
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.close()
        closed.set()
        second, _ = provider.accept()
        bodies.append(received(second))
        second.sendall(answer)
        second.close()

    def received(connection: socket.socket) -> bytes:
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += connection.recv(1000)
        return data.partition(b"\r\n\r\n")[2]

    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with socket.create_server(("127.0.0.1", 0)) as provider:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with (
            recorder(folder, f"http://127.0.0.1:{provider.getsockname()[1]}") as url,
            httpx.Client(base_url=url, timeout=10) as client,
        ):
            answers = [client.post(CHAT, content=each) for each in (iter([b"{}"]), pieces())]
        thread.join(10)
    assert [each.status_code for each in answers] == [200, 200]
    assert b"gpt-4o" in bodies[0]
    assert b"messages" in bodies[0]


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (b"dcb", b"identity"),
        (b"gzip, dcb", b"gzip"),
        (b"*", b"gzip"),
        (b"deflate;q=1", b"deflate;q=1"),
    ],
)
def test_packings_that_cannot_be_read_are_not_asked_for(given, passed):
    assert narrowed(given) == passed


def test_the_header_of_anthropic_decides_and_never_the_client():
    evil = (b"Host", b"evil")
    ours = RequestHead(b"POST", b"/v1/messages", (evil, (b"Anthropic-Version", b"1")))
    assert ours.provider.host == "api.anthropic.com"
    absolute = RequestHead(b"POST", b"http://evil/v1/responses", (evil,))
    assert absolute.provider.host == "api.openai.com"


@pytest.mark.parametrize("room", [0, 2**15])
def test_calls_that_a_killed_proxy_left_are_read(tmp_path, room):
    """A proxy has made room for its next calls by zeros."""
    head = b'{"path": "/v1/messages", "at": 1, "headers": {}, "provider": "h", "conversation": "c"}'
    body = json.dumps(REQUEST).encode()
    frames = [(b"H", head), (b"Q", body), (b"A", b'{"status": 200, "headers": {}}'), (b"B", b"da")]
    path = tmp_path / "1-1-1.part"
    path.write_bytes(in_frames(frames) + b"B\x00\x00\x00\xffcut" + bytes(room))
    assert files.waiting(tmp_path) == [path]
    call = files.call_of(files.exchange_of(*files.read(path)))
    assert call.sent.request == REQUEST
    assert (call.received.finish, call.received.response) == ("cut", None)
    assert files.exchange_of(*files.read(path)).answer_body == b"da"


@pytest.mark.parametrize("room", [0, 2**15])
def test_a_file_that_was_opened_for_the_next_call_is_left_alone(tmp_path, room):
    """It is not locked yet for a moment. Hours later, its proxy has died."""
    path = tmp_path / "1-1-1.part"
    path.write_bytes(bytes(room))
    assert files.waiting(tmp_path) == []
    assert path.exists()
    os.utime(path, (1, 1))
    assert files.waiting(tmp_path) == []
    assert not path.exists()


def test_the_room_that_a_call_does_not_need_is_cut_off(tmp_path):
    file = SpoolFile(tmp_path, Unwritten())
    file.make_room()
    file.begin(b"{}")
    file.add(b"Q", b"body")
    file.flush()
    file.end(b"{}")
    file.close()
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == in_frames([(b"H", b"{}"), (b"Q", b"body"), (b"E", b"{}")])


def test_a_proxy_that_has_been_replaced_is_not_asked_again(tmp_path):
    listening = socket.create_server(("127.0.0.1", 0))
    parent, child = os.pipe()
    path = tmp_path / "heir"
    hand_over = HandOver(listening, parent, path)
    os.close(child)
    hand_over.attend(parent)  # its parent has died
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        hand_over.attend(hand_over.files[0])
        _, numbers, _, _ = socket.recv_fds(asking, 1, 1)
        os.close(numbers[0])
        asking.sendall(ANSWERING)
        hand_over.attend(hand_over.files[1])
    assert hand_over.is_done
    hand_over.end()
    listening.close()
    os.close(parent)
    with socket.socket(socket.AF_UNIX) as asking, pytest.raises(ConnectionRefusedError):
        asking.connect(str(path))


def response_of(id: str, *output: dict) -> dict:
    return {"id": id, "object": "response", "status": "completed", "output": [*output]}


def test_a_request_that_names_the_response_before_goes_on_with_it(db, upstream, client, folder):
    """OpenAI has stored the earlier messages; each request has its own instructions and new
    messages.
    """
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "NK204"}
    words = {"type": "output_text", "text": "NK204 flies."}
    said = {"type": "message", "role": "assistant", "content": [words]}
    answers = [response_of("resp_1", call), response_of("resp_2", said), response_of("resp_3")]
    requests = [
        {"model": "m", "instructions": "Be brief.", "input": "A flight?"},
        {"model": "m", "instructions": "Be kind.", "input": [result]},
        {"model": "m", "input": "Which desk?"},
        {"model": "m", "input": "Hello?", "previous_response_id": "resp_of_somebody"},
    ]
    requests[1]["previous_response_id"], requests[2]["previous_response_id"] = "resp_1", "resp_2"
    upstream.answer = lambda handler, got: answer_json(handler, answers[len(upstream.got) - 1])
    answers.append(response_of("resp_4"))
    for request in requests:
        client.post("/v1/responses", json=request)
        store_all(folder)
    calls = list(ModelCall.objects.order_by("at"))
    assert len({each.memory_id for each in calls[:3]}) == 1
    assert calls[3].memory_id != calls[0].memory_id
    rebuilt = [one_call(each.memory_id, each.n) for each in calls]
    assert [each.request for each in rebuilt] == requests
    assert [[row.text for row in each.rows] for each in rebuilt[:3]] == [
        ["Be brief.", "A flight?"],
        ["Be kind.", "A flight?", "find({})", "NK204"],
        ["A flight?", "find({})", "NK204", "NK204 flies.", "Which desk?"],
    ]
    assert rebuilt[1].rows[-1].message.tool_name == "find"
    assert [each.is_broken for each in calls[:3]] == [False, True, True]
    # Another token's response of the same id is none of this one's
    assert continued_by(GIVEN, "other/") is None
    assert continued_by(GIVEN, "") is not None


GIVEN = NewCall(
    key="k",
    source=Source.RECORDER,
    format="openai_responses",
    sent=SentRequest({"model": "m", "input": "And?", "previous_response_id": "resp_2"}),
    at=datetime(2026, 11, 26, tzinfo=UTC),
)
ONE_IN = 9  # of the exchanges, where not all are wanted


@pytest.mark.parametrize("part", [ONE_IN, pytest.param(1, marks=pytest.mark.long)])
def test_real_exchanges_are_rebuilt_byte_for_byte(db, upstream, client, folder, data_file, part):
    rows = list(exchanges(data_file("provider_exchanges.json")))
    runs = [*dict.fromkeys(row["cassette"] for row in rows)][::part]
    wanted = [row for row in rows if row["cassette"] in runs]
    ids = defaultdict(set)

    def answer(handler, got):
        answer_json(handler, row["answer"], row["status"])

    upstream.answer = answer
    for row in wanted:
        body = json.dumps(row["request"], ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        client.post(row["path"], content=body, headers=headers)
        assert len(ended(folder)) == 1
        assert Storing(folder, prefix=f"{runs.index(row['cassette'])}/").store_waiting()
        call = ModelCall.objects.order_by("-at").first()
        found = one_call(call.memory_id, call.n)
        assert found.body == body
        assert found.response == (row["answer"] if row["status"] == 200 else None)
        assert bool(call.error) == (row["status"] != 200)
        ids[row["cassette"]].add(call.memory_id)
    assert ModelCall.objects.count() == len(wanted)
    assert all(len(found) == 1 for name, found in ids.items() if SEVERAL not in name)


def test_the_proxy_imports_nothing_that_takes_long():
    """So that it is back soon after a crash, and runs from any folder."""
    code = "import sys, proxy.server; print(*{name.partition('.')[0] for name in sys.modules})"
    folder = Path(recorder_room.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"chatmemory", "inspector", "django", "asyncio"}.isdisjoint(done.stdout.split())
