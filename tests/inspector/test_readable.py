"""Texts as people read them, and what fills the limit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    Audio,
    AudioContent,
    Image,
    ImageContent,
    MessageWindow,
    SystemMessage,
    TextContent,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.reading import windows
from chatmemory.reading.budget import Budget, budget_of, shares
from inspector import demo
from inspector.conversation.rich import fields_of, from_markdown

from ..conversations import create_and_add

HOSTILE = [
    "<script>alert(1)</script> **a**",
    "[a](javascript:alert(1)) *b*",
    "![x](https://example.org/a.png) *b*",
    '<img src=x onerror="alert(1)"> *b*',
    "[a](data:text/html,<script>alert(1)</script>) *b*",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_of_a_stranger_is_harmless(text):
    html = str(from_markdown(text))
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
    assert "<em>" in html or "<strong>" in html


def test_markdown_is_rendered_and_plain_text_is_not():
    html = str(from_markdown("# Plan\n\n- first\n- **second** [docs](https://example.org)"))
    assert "<li>" in html
    assert "<p><b>Plan</b></p>" in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert from_markdown("2 * 3 is 6. It is - as I said - fine.") is None
    assert from_markdown("plain words") is None


def test_a_flat_result_is_read_as_names_and_values():
    text = '{"id": "QK7T2M", "paid": true, "bags": {"carry_on": 1}, "stops": ["BOS", "DEN"]}'
    assert fields_of(text) == [
        *(("id", "QK7T2M"), ("paid", "yes"), ("bags", "carry_on 1"), ("stops", "BOS, DEN"))
    ]


@pytest.mark.parametrize("text", ['{"a": {"b": {"c": 1}}}', "[1]", "{}", "no JSON", '{"a": [[1]]}'])
def test_any_other_result_is_not(text):
    assert fields_of(text) is None


@pytest.fixture
def airline(db):
    create_and_add(
        "m",
        TokenWindow(200),
        [
            SystemMessage("You help with bookings. " * 24),
            UserMessage("My booking is QK7T2M."),
            AiMessage(None, [ToolExecutionRequest("1", "find", "{}")]),
            ToolExecutionResultMessage("1", "find", '{"id": "QK7T2M"}'),
            AiMessage("It is **booked**."),
        ],
    )


def test_the_parts_of_the_limit_add_up(airline):
    budget = budget_of(windows.window("m"))
    load = windows.window("m").load
    assert budget.used == load
    assert budget.used + budget.free == 200
    parts = (budget.system, budget.results, budget.user, budget.ai, budget.calls)
    assert all(parts)
    assert sum(parts) + budget.overhead == load


def test_a_system_message_that_takes_most_of_the_limit_is_a_finding(airline, operator_client):
    budget = budget_of(windows.window("m"))
    page = operator_client.get("/c/m/").text
    percent = budget.system_percent
    told = f"The system message takes {percent} % of the limit: {budget.remaining} tokens remain"
    assert told in page
    services.change("m", policy=TokenWindow(200 + budget.system + budget.overhead))
    assert "The system message takes" not in operator_client.get("/c/m/").text


def test_images_and_audio_are_a_part_of_their_own(airline, operator_client, api):
    picture = ImageContent(Image(base64_data="aGk=", mime_type="image/png"))
    sound = AudioContent(Audio(base64_data="aGk=", mime_type="audio/wav"))
    services.change("m", policy=TokenWindow(5_000))
    added = services.add(
        "m",
        [
            UserMessage([TextContent("Is it this one?"), picture]),
            ToolExecutionResultMessage("1", "hear", contents=[sound]),
            UserMessage([TextContent('A text: "type":"IMAGE"'), TextContent("and another")]),
        ],
    )
    budget = api.get("/api/v1/memories/m/messages/").json()["budget"]
    assert budget["media"] == sum(each.gained for each in added[:2]) > 0
    assert budget["used"] == windows.window("m").load
    assert "Media <b>" in operator_client.get("/c/m/").text
    assert "Media <b>" not in operator_client.get("/c/m/?at=5").text


def test_shares_under_a_limit_in_messages_are_of_the_tokens_in_memory(db):
    create_and_add("m", MessageWindow(3), [SystemMessage("Be kind."), UserMessage("hi")])
    budget = budget_of(windows.window("m"))
    assert (budget.limit, budget.free, budget.overhead) == (None, 0, 0)
    assert sum(shares(budget.parts)) == 100


@given(st.integers(0, 9), st.integers(1, 400))
def test_shares_never_exceed_the_whole(system, limit):
    budget = Budget(system=system * 50, user=20, limit=limit)
    assert sum(shares(budget.parts)) == 100
    assert budget.free >= 0
    assert budget.used + budget.free == budget.whole


@given(st.lists(st.integers(0, 5_000), max_size=8))
def test_shares_add_up_to_a_hundred_and_none_is_a_whole_percent_off(parts):
    found = shares(parts)
    assert sum(found) == (100 if any(parts) else 0)
    for part, share in zip(parts, found, strict=True):
        assert abs(100 * part - share * sum(parts)) < max(1, sum(parts))


def test_shares_on_the_page_add_up(db, operator_client):
    """10.0, 16.0, 73.1, 0.4 and 0.5 % are each rounded down to 99 together."""
    demo.load()
    for at in (3, 43, 58):
        words = operator_client.get(f"/c/order-7741/?at={at}").text
        key = words.partition('<div class="budget__key">')[2].partition("</div>")[0]
        found = re.findall(r"(\d+) %", key.replace("<1 %", "").replace("&lt;1 %", ""))
        assert sum(map(int, found)) == 100, (at, found)


def test_a_system_message_over_the_limit_is_compared_with_it_in_tokens(db, operator_client):
    create_and_add("m", TokenWindow(400), [SystemMessage("Be kind. " * 100), UserMessage("hi")])
    services.change("m", policy=TokenWindow(200))
    size = budget_of(windows.window("m")).system
    told = f"The system message needs {size} tokens, the limit is 200: no token remains"
    assert size > 200
    assert told in operator_client.get("/c/m/").text


def test_what_colours_a_terminal_is_not_shown(db, operator_client):
    create_and_add(
        "m", MessageWindow(3), [UserMessage("\x1b[31mred\x1b[0m and \x1b]0;title\x07plain")]
    )
    for address in ("/c/m/", "/c/m/?msg=1", "/c/m/?find=plain"):
        page = operator_client.get(address).text
        assert "\x1b" not in page.split("Raw message")[0]
    assert "red and plain" in operator_client.get("/c/m/").text


def test_a_step_that_there_is_not_leads_back_to_its_conversation(db, operator_client):
    create_and_add("m", MessageWindow(3), [UserMessage("hi")])
    for address in ("/c/m/?at=9", "/c/m/?msg=9"):
        page = operator_client.get(address)
        assert page.status_code == 404
        assert '<a class="btn" href="/c/m/">Open m</a>' in page.text
    assert "Open nobody" not in operator_client.get("/c/nobody/?at=9").text
