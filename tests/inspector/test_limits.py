"""A window over its limit says so everywhere, with one number."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import MessageWindow, SystemMessage, TokenWindow, UserMessage, queries, services
from chatmemory.queries.overview import windows_over_limit
from chatmemory.services import protocol

from .markup import said


def users(count: int) -> list[UserMessage]:
    return [UserMessage(f"message {n}") for n in range(count)]


@pytest.fixture
def lowered(db) -> str:
    """Thirteen messages in memory, under a limit that became six."""
    services.create("lowered", MessageWindow(20))
    services.add("lowered", users(13))
    services.change("lowered", policy=MessageWindow(6))
    return "lowered"


@pytest.fixture
def crowded(db) -> str:
    """A system message that is larger than the limit."""
    services.create("crowded", TokenWindow(30))
    services.add("crowded", [SystemMessage("word " * 60), UserMessage("a small question")])
    return "crowded"


def conversation(client, memory_id: str, query: str = ""):
    return client.get(f"/c/{memory_id}/{query}").context["page"]


def test_a_lowered_limit_is_told_by_one_number(operator_client, lowered):
    page = conversation(operator_client, lowered)
    assert page.over_limit == "7 messages over the limit will leave at the next add"
    assert (page.gauge.load, page.gauge.limit, page.gauge.over, page.kept.load) == (6, 6, 0, 6)
    assert page.state.samples.part[-1].after == page.window.stored
    assert (page.hidden.load, page.hidden.tokens, page.forgotten.load) == (7, 49, 0)
    html = operator_client.get("/c/lowered/")
    assert "6 of 13 messages 6 / 6 msg 42 tok" in said(html, "memory-head")
    assert "Over the limit 7 msg · 49 tok" in said(html, "tape-read")
    assert "7 more messages are over the limit and will leave" in said(html, "over-limit")
    assert len(queries.window(lowered).over_limit) == 7
    (result,) = services.add(lowered, users(1))
    assert len(result.evicted) == 8
    page = conversation(operator_client, lowered)
    assert (page.over_limit, page.gauge.load, page.gauge.over) == ("", 6, 0)


def test_before_the_limit_was_lowered_nothing_is_over_it(operator_client, lowered):
    page = conversation(operator_client, lowered, "?at=13")
    assert (page.over_limit, page.gauge.over) == ("", 0)


def test_the_number_of_a_page_of_conversations_is_that_of_the_window(lowered, crowded):
    services.create("within", MessageWindow(3))
    rows = queries.memories(["within", lowered, crowded])
    windows = windows_over_limit(rows)
    hidden = {name: [row.seq for row in window.over_limit] for name, window in windows.items()}
    assert hidden == {lowered: [*range(1, 8)], crowded: []}


def test_a_search_of_all_conversations_does_not_call_in_memory_what_a_limit_hides(
    operator_client, lowered
):
    services.create("kept", MessageWindow(20))
    services.add("kept", users(2))
    rows = {row.memory.id: row for row in operator_client.get("/?q=message+1").context["rows"]}
    assert (rows["kept"].hit.is_in, rows["kept"].hit.state) == (True, "in memory")
    (hidden,) = operator_client.get("/?q=message+3").context["rows"]
    assert (hidden.hit.is_in, hidden.hit.state) == (False, "leaves at the next add")
    tag = conversation(operator_client, lowered, "?find=message+3").history_pane.rows[3].tag
    assert tag == hidden.hit.state
    assert rows[lowered].hit.mention.seq == 13


def test_a_system_message_over_the_limit_is_named(operator_client, crowded):
    page = conversation(operator_client, crowded)
    assert page.over_limit == (
        "the system message alone is larger than the limit: nothing else can stay"
    )
    (system,) = page.memory_pane.system
    assert "is-over" in system.css
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
def test_what_cannot_leave_is_named(operator_client, db, messages, words):
    services.create("kept", TokenWindow(9, oversized="keep"))
    services.add("kept", messages)
    assert conversation(operator_client, "kept").over_limit == words


def test_pins_alone_over_the_limit_are_named(operator_client, db):
    services.create("pinned", MessageWindow(2))
    services.add("pinned", users(2))
    for seq in (1, 2):
        services.pin("pinned", seq)
    services.change("pinned", policy=MessageWindow(1))
    page = conversation(operator_client, "pinned")
    assert page.over_limit == "what is pinned alone is larger than the limit"


def test_one_message_over_the_limit_is_one_message(operator_client, db):
    services.create("one", MessageWindow(1, oversized="keep"))
    services.add("one", [SystemMessage("Be brief."), UserMessage("hello")])
    caption = conversation(operator_client, "one", "?at=2").caption
    assert caption.summary.endswith("Memory is 1 message over the limit.")


def test_the_room_is_that_beside_what_the_model_sees(operator_client, db):
    services.create("roomy", TokenWindow(1000))
    services.add("roomy", users(13))
    services.change("roomy", policy=TokenWindow(48))
    page, window = conversation(operator_client, "roomy"), queries.window("roomy")
    assert 0 < page.memory_pane.room == 48 - window.load
    assert (page.gauge.load, page.kept.load, page.hidden.tokens) == (window.load, window.load, None)
    assert page.said.load == page.kept.load + page.hidden.load + page.forgotten.load
    first = window.seqs[0]
    more = page.memory_pane.room + 1
    why = said(operator_client.get(f"/c/roomy/?msg={first}"), "why")
    assert f"It leaves when {more} more tokens arrive." in why


def test_a_comparison_of_steps_counts_what_the_model_saw(operator_client, lowered):
    services.add(lowered, users(1))
    why = said(operator_client.get("/c/lowered/?with=14"), "why")
    assert "Memory held 6 messages then and holds 6 messages at step 15; 5 messages stayed." in why


def test_a_comparison_of_steps_has_the_unit_of_each(operator_client, db):
    services.create("two", MessageWindow(10))
    services.add("two", users(3))
    services.change("two", policy=TokenWindow(1000))
    load = queries.window("two").load
    why = said(operator_client.get("/c/two/?with=3"), "why")
    assert f"Memory held 3 messages then and holds {load} tokens at step 4; 3 mess" in why
    why = said(operator_client.get("/c/two/?at=2&with=4"), "why")
    assert f"Memory held {load} tokens then and holds 2 messages at step 2; 2 mess" in why


def test_the_red_end_of_the_meter_is_what_is_over(operator_client, crowded):
    gauge = conversation(operator_client, crowded).gauge
    assert (gauge.load, gauge.fill, gauge.over) == (68, 44.1, 55.9)


def test_a_message_window_says_messages_and_tokens(operator_client, lowered):
    services.add(lowered, users(1))
    page = conversation(operator_client, lowered)
    assert (page.gauge.unit, page.gauge.tokens) == ("msg", 42)
    assert (page.said.load, page.said.tokens) == (14, 98)
    assert (page.forgotten.load, page.forgotten.tokens) == (8, 56)
    assert (page.memory_pane.just_evicted.load, page.memory_pane.just_evicted.amount) == (-8, -56)
    line = page.panel.receipt[-1]
    assert (line.amount, line.unit, line.tokens) == (6, "msg", 42)


def test_what_was_forgotten_and_what_is_in_memory_make_what_was_said(operator_client, db):
    services.create("tokens", TokenWindow(40))
    services.add("tokens", users(9))
    page = conversation(operator_client, "tokens")
    assert page.said.load == page.forgotten.load + page.kept.load
    assert page.said.tokens is None


def test_why_and_memory_mark_the_same_message_under_a_lowered_limit(operator_client, lowered):
    page = conversation(operator_client, lowered)
    assert [row.seq for row in page.memory_pane.messages if row.soon] == [8]
    assert page.memory_pane.next_to_leave == (8,)
    why = said(operator_client.get("/c/lowered/"), "why")
    assert (
        "Free: 0 msg. 7 messages over the limit will leave at the next add. Leaves next: #8."
    ) in why
    assert "leaves next" in said(operator_client.get("/c/lowered/"), "kept-8")
    assert "It leaves at the next add." in said(operator_client.get("/c/lowered/?msg=8"), "why")


@pytest.mark.parametrize(("limit", "words"), [(6, "first to leave"), (5, "leaves next")])
def test_the_mark_tells_whether_there_is_room_for_another_message(
    operator_client, db, limit, words
):
    services.create("c", MessageWindow(limit))
    services.add("c", users(5))
    assert words in said(operator_client.get("/c/c/"), "kept-1")
    assert ("is-due" in conversation(operator_client, "c").memory_pane.messages[0].css) == (
        limit == 5
    )


@pytest.mark.parametrize("limit", [30, 3, 1])
def test_no_bar_is_wider_than_its_column(operator_client, crowded, limit):
    services.change(crowded, policy=TokenWindow(limit))
    pane = conversation(operator_client, crowded).memory_pane
    assert all(row.past + row.this <= pane.bar_width for row in pane.system)


@pytest.fixture
def refusing(db) -> str:
    """Two pinned messages, under a limit that became as many."""
    services.create("refusing", MessageWindow(20))
    services.add("refusing", users(6))
    for seq in (2, 3):
        services.pin("refusing", seq)
    services.change("refusing", policy=MessageWindow(2))
    return "refusing"


NO_ADD = "eside what is pinned no message fits: unpin one, or raise the limit"


def test_where_pins_leave_no_room_nothing_is_said_to_leave(operator_client, refusing):
    html = operator_client.get("/c/refusing/?find=message+0")
    assert conversation(operator_client, refusing).over_limit == (
        f"4 messages over the limit are hidden; b{NO_ADD}"
    )
    assert said(html, "over-limit") == (
        f"4 more messages are over the limit. The model no longer sees them. B{NO_ADD}."
    )
    why = said(operator_client.get("/c/refusing/"), "why")
    assert f"Free: 0 msg. 4 messages over the limit are hidden; b{NO_ADD}." in why
    why = said(operator_client.get("/c/refusing/?msg=1"), "why")
    assert f"The model no longer sees it. B{NO_ADD}. A higher limit brings it back." in why
    assert "Only over the limit: #1. The model no longer sees it." in said(html, "why")
    assert "over the limit" in said(html, "said-1")
    (row,) = operator_client.get("/?q=message+0").context["rows"]
    assert row.over_limit == "4 messages over the limit; no room beside pins"
    assert row.hit.state == "over the limit"
    for page in (html.content.decode(), why, said(html, "why")):
        assert "next add" not in page


def test_where_the_policy_rejects_every_message_nothing_is_said_to_leave(operator_client, db):
    services.create("c", MessageWindow(9, oversized="reject"))
    services.add("c", [SystemMessage("Be brief."), *users(3)])
    services.change("c", policy=MessageWindow(1, oversized="reject"))
    html = operator_client.get("/c/c/?find=message+0")
    no_add = "o message fits, and the policy rejects what does not fit: raise the limit"
    assert said(html, "over-limit") == (
        f"3 more messages are over the limit. The model no longer sees them. N{no_add}."
    )
    why = said(operator_client.get("/c/c/?msg=2"), "why")
    assert f"The model no longer sees it. N{no_add}. A higher limit brings it back." in why
    (row,) = operator_client.get("/?q=message+0").context["rows"]
    assert row.over_limit == "3 messages over the limit; no message fits"
    assert row.hit.state == "over the limit"
    for page in (html.content.decode(), why, said(html, "why")):
        assert "next add" not in page


def test_a_system_message_beside_pins_that_fill_the_limit(operator_client, db):
    services.create("c", MessageWindow(9))
    services.add("c", [SystemMessage("Be brief."), *users(5)])
    for seq in (2, 3):
        services.pin("c", seq)
    told = []
    for limit in (4, 3):
        services.change("c", policy=MessageWindow(limit))
        told.append(operator_client.get("/").context["rows"][0].over_limit)
    assert told == [
        "2 messages over the limit will leave at the next add",
        "3 messages over the limit; no room beside pins",
    ]


def test_the_overview_flags_windows_over_the_limit(operator_client, lowered, crowded):
    services.create("within", MessageWindow(3))
    context = operator_client.get("/?flagged=over_limit").context
    told = {row.memory.id: (row.over_limit, row.gauge.over > 0) for row in context["rows"]}
    assert told == {
        lowered: ("7 messages over the limit will leave at the next add", True),
        crowded: ("over the limit", True),
    }
    assert context["headlines"].stats.over_limit == 2


def test_the_overview_counts_in_memory_what_the_model_sees(operator_client, lowered):
    (row,) = operator_client.get("/").context["rows"]
    assert (row.in_memory, row.left) == ("6 of 13", 0)
    assert '<td class="num c-num mem">6 of 13</td>' in operator_client.get("/").text
    services.add(lowered, users(1))
    (row,) = operator_client.get("/").context["rows"]
    assert (row.in_memory, row.left) == ("6", 8)


def test_the_feed_names_the_cause_that_history_names(operator_client, crowded):
    (leaving,) = operator_client.get("/").context["feed"]
    tag = conversation(operator_client, crowded).history_pane.rows[1].tag
    assert leaving.reason == "system too big"
    assert tag.endswith(leaving.reason)


def test_messages_that_were_never_said_are_not_subtracted_from_what_was_said(operator_client, db):
    words = users(3)
    protocol.update_messages("client", words)
    protocol.update_messages("client", [words[0], UserMessage("a summary"), *words[1:]])
    (row,) = operator_client.get("/").context["rows"]
    assert (row.memory.said_count, row.memory.window.count, row.left) == (3, 4, 0)
    page = conversation(operator_client, "client")
    assert (page.said.load, page.forgotten.load, page.injected_count) == (21, 0, 1)
    protocol.update_messages("client", [UserMessage("a summary"), words[2]])
    page = conversation(operator_client, "client")
    assert (page.said.load, page.forgotten.load, page.injected_count) == (21, 14, 1)
    (row,) = operator_client.get("/").context["rows"]
    assert (row.memory.said_count, row.memory.window.count, row.left) == (3, 2, 2)


def test_conversations_over_the_limit_take_no_more_queries(operator_client, db):
    def asked(conversations: range) -> int:
        for n in conversations:
            services.create(f"c{n}", MessageWindow(9))
            services.add(f"c{n}", users(5))
            services.change(f"c{n}", policy=MessageWindow(2))
            protocol.update_messages(f"client{n}", users(2))
            protocol.update_messages(f"client{n}", [UserMessage("a summary"), *users(2)])
        cache.clear()
        with CaptureQueriesContext(connection) as made:
            operator_client.get("/")
        return len(made)

    assert asked(range(2)) == asked(range(2, 10))
