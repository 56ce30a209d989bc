"""A body that begins like an earlier one is read as if nothing were known."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.rooms.calls import repeated
from inspector.rooms.calls.bodies import loaded
from inspector.rooms.calls.repeated import read_body
from inspector.rooms.calls.spelling import STYLES, style_of, written

from ...properties import examples


@pytest.fixture(autouse=True)
def _knows_nothing() -> Iterator[None]:
    repeated._NEWEST.__init__()
    yield
    repeated._NEWEST.__init__()


items = st.sampled_from(
    [
        *({"role": role, "content": f"text {n}"} for role in ("user", "assistant") for n in (1, 2)),
        {"content": "caf\u00e9 \U0001f9a5", "role": "user"},
        *("text", 1, 12, [], {}, None, {"messages": [{"role": "user", "content": "text 1"}] * 5}),
    ]
)
lists = st.lists(items, max_size=9)
besides = st.fixed_dictionaries(
    {}, optional={"model": st.just("m"), "stream": st.booleans(), "metadata": items}
)


@st.composite
def bodies(draw) -> list[bytes]:
    """Bodies of calls whose lists mostly go on."""
    found, sent, before = [], draw(st.lists(items, min_size=5, max_size=9)), draw(besides)
    style = draw(st.sampled_from(STYLES))
    for _ in range(draw(st.integers(2, 6))):
        sent = [*sent[: len(sent) - draw(st.integers(0, 2))], *draw(lists)]
        request = {**before, "messages": sent, **draw(besides)}
        body = written(request, draw(st.sampled_from([style, style, style, *STYLES])))
        if more := draw(st.sampled_from([b"", b"", b"messages", b"other"])):
            body = body[:-1] + b', "%s": [1, 2, 3, 4, 5]}' % more
        found.append(body[: len(body) - draw(st.sampled_from([0, 0, 0, 1, 9]))])
    return found


@examples()
@given(bodies())
def test_each_body_is_read_as_if_it_were_the_first(some):
    for body in some:
        found = read_body(body, "messages")
        expected = loaded(body)
        assert json.dumps(found.request) == json.dumps(expected)
        assert found.style == (style_of(body, expected) if isinstance(expected, dict) else "")


def nested(count: int) -> bytes:
    asked = {"metadata": {"messages": [*range(count)]}, "messages": [*range(5)]}
    return json.dumps(asked).encode()


@pytest.mark.parametrize(
    ("known", "body"),
    [
        (b'{"messages": [5, 4, 3, 2, 1]}', b'{"messages": [5, 4, 3, 2, 12]}'),
        (b'{"messages": [5, 4, 3, 2, 1]}', b'{"messages": [5, 4, 3, 2, 1, ]}'),
        (b'{"messages": [5, 4, 3, 2, 1]}', b'{"messages": [5, 4, 3, 2, 1,0]}'),
        (nested(5), nested(6)),
    ],
)
def test_bodies_that_only_seem_to_go_on(known, body):
    read_body(known, "messages")
    assert read_body(body, "messages").request == loaded(body)


def test_only_what_is_new_is_decoded(monkeypatch):
    asked = [{"role": "user", "content": f"text {n} " * 50} for n in range(60)]
    decoded: list[int] = []
    known = repeated.loaded
    monkeypatch.setattr(repeated, "loaded", lambda data: decoded.append(len(data)) or known(data))
    bodies = [json.dumps({"model": "m", "messages": asked[:n]}).encode() for n in range(40, 60, 2)]
    changed = {**asked[58], "cache_control": {"type": "ephemeral"}}
    bodies.append(json.dumps({"model": "m", "messages": [*asked[:57], changed]}).encode())
    for n, body in enumerate(bodies):
        assert read_body(body, "messages").request == json.loads(body)
        if n == 0:
            decoded.clear()
    assert len(decoded) == 10
    assert max(decoded) < 2_500
