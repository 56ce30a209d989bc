"""Bodies in every encoding that clients and providers agree on; others are named."""

from __future__ import annotations

import gzip
import json
import zlib

import brotli
import pytest

from inspector.rooms.calls.call import DropReason
from inspector.rooms.calls.models import DroppedCalls
from inspector.rooms.calls.reads import one_call
from inspector.rooms.recorder.proxy.decoding import AT_ONCE, Body, zstd

from .upstream import ANSWER, CHAT, store_all

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Grüße " * 300}]}


def members(data: bytes) -> bytes:
    middle = len(data) // 2
    return gzip.compress(data[:middle]) + gzip.compress(b"") + gzip.compress(data[middle:])


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def frames(data: bytes) -> bytes:
    middle = len(data) // 2
    return zstd.compress(data[:middle]) + zstd.compress(data[middle:])


ENCODED = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "gzip of members": ("gzip", members),
    "gzip with zeros behind it": ("gzip", lambda data: gzip.compress(data) + bytes(64)),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd.compress),
    "zstd of frames": ("zstd", frames),
    "two": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    "identity": ("identity", bytes),
}


def answers(data: bytes, encoding: str):
    """Answer with these bytes, in pieces of 100 bytes."""

    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        for start in range(0, len(data), 100):
            handler.wfile.write(data[start : start + 100])
            handler.wfile.flush()

    return answer


@pytest.mark.parametrize("kind", ENCODED)
def test_an_answer_and_a_request_in_each_encoding(db, upstream, client, folder, kind):
    encoding, encode = ENCODED[kind]
    answer, body = json.dumps(ANSWER).encode(), json.dumps(REQUEST, separators=(",", ":")).encode()
    sent, sent_back, headers = encode(body), encode(answer), {"Content-Encoding": encoding}
    upstream.answer = answers(sent_back, encoding)
    with client.stream("POST", CHAT, content=sent, headers=headers) as found:
        assert b"".join(found.iter_raw()) == sent_back
    assert upstream.got[0].body == sent
    (call,) = store_all(folder)
    rebuilt = one_call(call.memory_id, call.n)
    assert (rebuilt.request, rebuilt.body, rebuilt.response) == (REQUEST, body, ANSWER)
    assert (call.error, call.is_exact, call.finish) == ("", True, "stop")


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_zeros_behind_a_member_may_come_in_any_piece(size):
    data = gzip.compress(b"words") + bytes(9) + gzip.compress(b" more") + bytes(5)
    body = Body("gzip")
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert b"".join(each for piece in pieces for each in body.pieces(piece)) == b"words more"
    body.end()
    assert body.undecodable == ""


BROKEN = {
    "unknown": ("dcb", b"\x36words", "dcb"),
    "not gzip": ("gzip", b"words, and no gzip", "gzip"),
    "not br": ("br", b"\xff\xff words", "br"),
    "not zstd": ("zstd", b"words, and no zstd", "zstd"),
    "cut gzip": ("gzip", gzip.compress(json.dumps(ANSWER).encode())[:-20], "gzip"),
    "cut br": ("br", brotli.compress(json.dumps(ANSWER).encode())[:-20], "br"),
    "cut zstd": ("zstd", zstd.compress(json.dumps(ANSWER).encode())[:-20], "zstd"),
    "cut deflate": ("deflate", zlib.compress(json.dumps(ANSWER).encode())[:-20], "deflate"),
    "one unknown of two": ("br, compress", b"words", "compress"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_answer_that_cannot_be_decoded_is_an_error_of_its_call(
    db, upstream, client, folder, kind
):
    encoding, data, named = BROKEN[kind]
    upstream.answer = answers(data, encoding)
    with client.stream("POST", CHAT, json=REQUEST) as found:
        assert b"".join(found.iter_raw()) == data
    (call,) = store_all(folder)
    assert call.error == f"the answer has an encoding that cannot be decoded: {named}"
    assert one_call(call.memory_id, call.n).request == REQUEST


@pytest.mark.parametrize("kind", BROKEN)
def test_a_request_that_cannot_be_decoded_is_counted_by_its_encoding(
    db, upstream, client, folder, kind
):
    encoding, data, named = BROKEN[kind]
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    assert client.post(CHAT, content=data, headers=headers).json() == ANSWER
    assert store_all(folder) == []
    (row,) = DroppedCalls.objects.all()
    assert (row.why, row.sender, row.count) == (DropReason.ENCODING, named, 1)


def test_a_call_without_a_readable_answer_says_so(db, upstream, client, folder):
    for data in (b"", b"<html>"):
        upstream.answer = answers(data, "identity")
        client.post(CHAT, json=REQUEST)
    calls = store_all(folder)
    assert [each.error for each in calls] == ["the answer is empty", "the answer cannot be read"]


@pytest.mark.parametrize("kind", ["gzip", "deflate", "raw deflate", "br", "zstd", "two"])
def test_a_bomb_is_decoded_in_small_pieces(kind):
    encoding, encode = ENCODED[kind]
    data = encode(bytes(64 * 2**20))
    sizes = [len(piece) for piece in Body(encoding).pieces(data)]
    assert max(sizes) <= 2 * AT_ONCE
    assert sum(sizes) == 64 * 2**20
