"""Pages are compressed for browsers that can read them so; events are not."""

from __future__ import annotations

import gzip

from inspector import demo

GZIP = {"Accept-Encoding": "gzip"}


def test_a_page_is_compressed_for_who_asks(operator_client, db):
    demo.load()
    plain = operator_client.get("/")
    packed = operator_client.get("/", headers=GZIP)
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) < len(plain.content) / 3
    assert b"order-7741" in gzip.decompress(packed.content)


def test_the_same_page_has_another_size_each_time(operator_client, db):
    """A guess of what stands beside a secret cannot be measured by the size of the response."""
    demo.load()
    pages = [operator_client.get("/", headers=GZIP).content for _ in range(12)]
    assert len({len(page) for page in pages}) > 1


def test_an_event_is_not_compressed(operator_client, memory_id):
    response = operator_client.get(f"/c/{memory_id}/live/", headers=GZIP)
    assert "Content-Encoding" not in response
    assert b"event: step" in response.content
