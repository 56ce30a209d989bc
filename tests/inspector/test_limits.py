"""A window over its limit says so everywhere, with one number."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import (
    MessageWindow,
    SystemMessage,
    TokenWindow,
    TurnWindow,
    UserMessage,
    services,
)
from chatmemory.ledger import protocol
from chatmemory.reading import windows as windows_reads
from chatmemory.reading.conversations import memories
from chatmemory.reading.overview import windows_over_limit

from ..conversations import create_and_add, numbered
from .markup import said


@pytest.fixture
def lowered(db) -> str:
    """Thirteen messages in memory, under a limit that became six."""
    create_and_add("lowered", MessageWindow(20), numbered(13))
    services.change("lowered", policy=MessageWindow(6))
    return "lowered"


@pytest.fixture
def crowded(db) -> str:
    """A system message that is larger than the limit."""
    create_and_add(
        "crowded", TokenWindow(30), [SystemMessage("word " * 60), UserMessage("a small question")]
    )
    return "crowded"


def conversation(client, memory_id: str, query: str = ""):
    return client.get(f"/c/{memory_id}/{query}").context["page"]


def test_a_lowered_limit_shows_one_number(operator_client, lowered):
    page = conversation(operator_client, lowered)
    assert page.over_limit == "7 messages over the limit will leave at the next add"
    assert (page.gauge.load, page.gauge.limit, page.gauge.over, page.kept.load) == (6, 6, 0, 6)
    assert page.state.step.samples.part[-1].after[:2] == page.window.stored[:2]
    assert (page.hidden.load, page.hidden.tokens, page.forgotten.load) == (7, 49, 0)
    html = operator_client.get("/c/lowered/")
    assert "6 of 13 messages 6 / 6 msg 42 tok" in said(html, "memory-head")
    assert "Over the limit 7 msg · 49 tok" in said(html, "tape-read")
    assert "7 more messages are over the limit and will leave" in said(html, "over-limit")
    titles = set(re.findall(r'title="(#\d+ User[^"]*)"', html.text))
    assert sum(title.endswith(", over the limit") for title in titles) == 7
    assert not [title for title in titles if "left memory" in title], "none has left yet"
    assert len(windows_reads.window(lowered).over_limit) == 7
    (result,) = services.add(lowered, numbered(1))
    assert len(result.evicted) == 8
    page = conversation(operator_client, lowered)
    assert (page.over_limit, page.gauge.load, page.gauge.over) == ("", 6, 0)
    assert (page.gauge.unit, page.gauge.tokens) == ("msg", 42)
    assert (page.history.load, page.history.tokens) == (14, 98)
    assert (page.forgotten.load, page.forgotten.tokens) == (8, 56)
    assert (page.memory_pane.just_evicted.load, page.memory_pane.just_evicted.amount) == (-8, -56)
    page = conversation(operator_client, lowered, "?at=13")
    assert (page.over_limit, page.gauge.over) == ("", 0)


def test_the_number_of_a_page_of_conversations_is_that_of_the_window(lowered, crowded):
    services.create("within", MessageWindow(3))
    rows = memories(["within", lowered, crowded])
    windows = windows_over_limit(rows)
    hidden = {name: tuple(row.seq for row in each.over_limit) for name, each in windows.items()}
    assert hidden == {lowered: tuple(range(1, 8)), crowded: ()}


def test_a_system_message_over_the_limit_is_named(operator_client, crowded):
    page = conversation(operator_client, crowded)
    assert page.over_limit == (
        "the system message alone is larger than the limit: nothing else can stay"
    )
    (system,) = page.memory_pane.top
    assert "is-over" in system.css
    assert system.past + system.this <= page.memory_pane.bar_width
    assert (page.gauge.load, page.gauge.fill, page.gauge.over) == (68, 44.1, 55.9)
    (leaving,) = operator_client.get("/").context["feed"]
    assert leaving.reason == "system message larger than the limit"
    assert page.history_pane.rows[1].tag.endswith(leaving.reason)
    html = operator_client.get("/c/crowded/").content.decode()
    assert "g-over" in html
    assert "over the limit" in html


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([UserMessage("one " * 9)], "the newest message alone is larger than the limit"),
        (
            [SystemMessage("Be brief."), UserMessage("hello")],
            "the system message and the newest message together are larger than the limit",
        ),
    ],
)
def test_messages_that_cannot_leave_are_named(operator_client, db, messages, words):
    create_and_add("kept", TokenWindow(9, oversized="keep"), messages)
    page = conversation(operator_client, "kept")
    assert page.over_limit == words
    pane = page.memory_pane
    rows = [*pane.top, *pane.messages]
    assert all(row.past + row.this <= pane.bar_width for row in rows), "no bar leaves its column"


def test_pins_that_cannot_leave_are_named(operator_client, db):
    create_and_add("pinned", MessageWindow(2), numbered(2))
    for seq in (1, 2):
        services.pin("pinned", seq)
    services.change("pinned", policy=MessageWindow(1))
    words = "the pinned messages alone are larger than the limit"
    assert conversation(operator_client, "pinned").over_limit == words


def test_the_room_is_that_beside_what_the_model_sees(operator_client, db):
    create_and_add("roomy", TokenWindow(1000), numbered(13))
    services.change("roomy", policy=TokenWindow(48))
    page, window = conversation(operator_client, "roomy"), windows_reads.window("roomy")
    assert 0 < page.memory_pane.room == 48 - window.load
    assert (page.gauge.load, page.kept.load, page.hidden.tokens) == (window.load, window.load, None)
    assert page.history.load == page.kept.load + page.hidden.load + page.forgotten.load
    first = window.seqs[0]
    more = page.memory_pane.room + 1
    why = said(operator_client.get(f"/c/roomy/?msg={first}"), "why")
    assert f"It leaves memory after {more} more tokens." in why


def test_a_comparison_of_steps_has_the_unit_of_each(operator_client, db):
    create_and_add("two", MessageWindow(10), numbered(3))
    services.change("two", policy=TokenWindow(1000))
    load = windows_reads.window("two").load
    why = said(operator_client.get("/c/two/?with=3"), "why")
    assert f"Memory held 3 messages at step 3 and holds {load} tokens at step 4; 3 mess" in why
    why = said(operator_client.get("/c/two/?at=2&with=4"), "why")
    assert f"Memory held {load} tokens at step 4 and holds 2 messages at step 2; 2 mess" in why


@pytest.mark.parametrize(("limit", "words"), [(6, "first to leave"), (5, "leaves next")])
def test_the_mark_tells_whether_there_is_room_for_another_message(
    operator_client, db, limit, words
):
    create_and_add("c", MessageWindow(limit), numbered(5))
    assert words in said(operator_client.get("/c/c/"), "kept-1")
    assert ("is-due" in conversation(operator_client, "c").memory_pane.messages[0].css) == (
        limit == 5
    )


@pytest.mark.parametrize(
    ("policy", "pins", "limit", "no_add", "briefly"),
    [
        (
            MessageWindow(9),
            (5, 6),
            3,
            "no message fits beside the pinned messages: unpin a message or raise the limit",
            "no room beside pinned messages",
        ),
        (
            TurnWindow(9),
            (5, 6),
            2,
            "no turn can begin beside the pinned turns: unpin a turn or raise the limit",
            "no room beside pinned turns",
        ),
        (
            MessageWindow(9, oversized="reject"),
            (),
            1,
            "no message fits, and the policy rejects what does not fit: raise the limit",
            "no message fits",
        ),
    ],
)
def test_where_no_message_fits_nothing_is_said_to_leave(
    operator_client, db, policy, pins, limit, no_add, briefly
):
    create_and_add("c", policy, [SystemMessage("Be brief."), *numbered(3 + len(pins))])
    for seq in pins:
        services.pin("c", seq)
    services.change("c", policy=replace(policy, limit=limit))
    sentence = no_add[0].upper() + no_add[1:]
    html = operator_client.get("/c/c/?find=message+0")
    live = said(operator_client.get("/c/c/?open=sums"), "why")
    why = said(operator_client.get("/c/c/?msg=2"), "why")
    hidden = f"3 messages over the limit are hidden; {no_add}"
    assert conversation(operator_client, "c").over_limit == hidden
    assert f"Free in memory: 0 {policy.short_unit}. {hidden}." in live
    assert said(html, "over-limit") == (
        f"3 more messages are over the limit. The model no longer sees them. {sentence}."
    )
    assert (
        f"The model no longer sees the message. {sentence}. A higher limit brings the message back."
        in why
    )
    assert "Only over the limit: #2. The model no longer sees it." in said(html, "why")
    assert "over the limit" in said(html, "said-2")
    (row,) = operator_client.get("/?q=message+0").context["rows"]
    assert row.over_limit == f"3 messages over the limit; {briefly}"
    assert row.hit.state == "over the limit"
    for page in (html.content.decode(), live, why):
        assert "next add" not in page


def test_the_overview_flags_windows_over_the_limit(operator_client, lowered, crowded):
    services.create("within", MessageWindow(3))
    context = operator_client.get("/?flagged=over_limit").context
    told = {row.memory.id: (row.over_limit, row.gauge.over > 0) for row in context["rows"]}
    assert told == {
        lowered: ("7 messages over the limit will leave at the next add", True),
        crowded: ("over the limit", True),
    }
    assert context["headlines"].counted.stats.flagged["over_limit"] == 2


def test_conversations_over_the_limit_take_no_more_queries(operator_client, db):
    def query_count(conversations: range) -> int:
        for n in conversations:
            create_and_add(f"c{n}", MessageWindow(9), numbered(5))
            services.change(f"c{n}", policy=MessageWindow(2))
            protocol.update_messages(f"client{n}", numbered(2))
            protocol.update_messages(f"client{n}", [UserMessage("a summary"), *numbered(2)])
        cache.clear()
        with CaptureQueriesContext(connection) as made:
            operator_client.get("/")
        return len(made)

    assert query_count(range(2)) == query_count(range(2, 10))
