"""A response with the parts that differ makes the page that a request for all of it gives."""

from __future__ import annotations

import random
from copy import deepcopy
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage, queries, services
from inspector import demo
from inspector.parts import changes, held_parts, markup_of, parts_in

from . import markup

HTMX = {"HX-Request": "true"}
ROWS = st.lists(st.tuples(st.integers(1, 12), st.sampled_from("ab")), unique_by=lambda row: row[0])


def drawn(head: str, rows: list[tuple[int, str]]) -> str:
    """A page with a part and a list of parts, as templates mark them."""
    items = "".join(f'<part><li id="rows-{n}">{text}</li></part>' for n, text in rows)
    return (
        f'<part><main id="main"><part><h1 id="head">{head}</h1></part>'
        f'<ol id="rows"><parts rows>{items}</parts></ol></main></part>'
    )


def swapped(before: str, after: str) -> Element:
    """A page after the response to its request for another."""
    page = markup.tree(markup_of(parts_in(before)))
    told = held_parts(markup.held(page))
    markup.swap(page, "".join(changes(parts_in(after), told)))
    return page


@given(st.sampled_from("xy"), ROWS, st.sampled_from("xy"), ROWS)
def test_swaps_make_the_other_page(head, rows, other_head, other_rows):
    after = drawn(other_head, other_rows)
    page = swapped(drawn(head, rows), after)
    assert tostring(page) == tostring(markup.tree(markup_of(parts_in(after))))


def test_what_is_held_is_not_sent():
    page = markup.tree(markup_of(parts_in(drawn("x", [(1, "a"), (2, "a")]))))
    now = parts_in(drawn("x", [(1, "a"), (2, "b"), (3, "a")]))
    sent = "".join(changes(now, held_parts(markup.held(page))))
    assert "rows-2" in sent
    assert "rows-3" in sent
    assert 'id="rows-1"' not in sent
    assert "head" not in sent


@pytest.mark.parametrize("header", ["", "main", "main:abcdef x", "main:abc'ef", "MAIN:abcdef"])
def test_a_malformed_header_holds_nothing(header):
    assert held_parts(header) == {}


def test_a_part_needs_an_id():
    with pytest.raises(ValueError, match="has an id"):
        markup_of(parts_in("<part><li>no id</li></part>"))


@pytest.fixture
def conversations(db) -> list[str]:
    """Conversations with calls, evictions, a lowered limit, and more messages than a pane shows."""
    demo.load()
    said = [(UserMessage, AiMessage)[n % 2](f"{n}: where is my parcel?") for n in range(330)]
    services.import_conversation("wide", said, TokenWindow(3_000))
    services.create("lowered", MessageWindow(20))
    services.add("lowered", said[:40])
    services.change("lowered", policy=MessageWindow(6))
    services.add("lowered", said[40:44])
    return ["order-7741", "classroom", "wide", "lowered"]


def walk(memory_id: str, chance: random.Random, length: int) -> list[str]:
    """Addresses that a reader may go to: steps near and far, with what is shown there."""
    memory = queries.memory(memory_id)
    at, addresses = memory.last_step, []
    for _ in range(length):
        at = max(0, min(memory.last_step, at + chance.choice((-1, -1, 1, 0, -10, -150, 120))))
        query: dict[str, object] = {"at": at} if chance.random() < 0.9 else {}
        if chance.random() < 0.4:
            query["msg"] = chance.randint(1, memory.last_step // 2)
        if chance.random() < 0.3:
            query["find"] = chance.choice(("parcel", "A-1182", "1", "nothing like it"))
        if chance.random() < 0.2:
            query["with"] = chance.randint(0, memory.last_step)
        if chance.random() < 0.1:
            query[chance.choice(("before", "after"))] = chance.randint(1, 40)
        addresses.append(f"/c/{memory_id}/?{urlencode(query)}")
    return addresses


def comparable(page: Element) -> str:
    """A page without the secret that differs in each response, and the digest with it."""
    page = deepcopy(page)
    for each in page.iter():
        if each.get("name") == "csrfmiddlewaretoken":
            each.set("value", "")
        if each.get("id") in ("place-fields", "why"):
            each.set("data-part", "")
    return tostring(page, encoding="unicode")


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_of_steps_and_searches_leaves_no_trace(operator_client, conversations, seed):
    chance = random.Random(seed)
    page = None
    for address in walk(conversations[seed], chance, 16):
        whole = operator_client.get(address, headers=HTMX).content.decode()
        if page is None:
            page = markup.tree(whole)
            continue
        response = operator_client.get(address, headers=HTMX | {"Held-Parts": markup.held(page)})
        assert response.get("HX-Reswap") == "none", address
        markup.swap(page, response.content.decode())
        assert comparable(page) == comparable(markup.tree(whole)), address


def test_another_conversation_replaces_the_page(operator_client, conversations):
    page = markup.tree(operator_client.get("/c/classroom/", headers=HTMX).content.decode())
    headers = HTMX | {"Held-Parts": markup.held(page)}
    response = operator_client.get("/c/order-7741/", headers=headers)
    assert "HX-Reswap" not in response
    assert markup.roots(response) == [("title", None), ("main", "main")]


def test_a_redacted_message_is_sent_again(operator_client, conversations):
    address = "/c/order-7741/?at=43"
    page = markup.tree(operator_client.get(address, headers=HTMX).content.decode())
    headers = HTMX | {"Held-Parts": markup.held(page)}
    services.redact("order-7741", 40)
    sent = operator_client.get(address, headers=headers).content.decode()
    assert 'id="said-40"' in sent
    assert 'id="said-39"' not in sent


def test_a_reader_without_the_page_gets_all_of_it(operator_client, conversations):
    for headers in (
        {},
        {"Held-Parts": "main:abcdef"},
        HTMX,
        HTMX | {"Held-Parts": "said-1:abcdef"},
    ):
        html = operator_client.get("/c/classroom/?at=3", headers=headers).content.decode()
        assert '<main id="main"' in html
        assert "<part" not in html
    assert "Held-Parts" in operator_client.get("/c/classroom/")["Vary"]
