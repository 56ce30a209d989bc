from __future__ import annotations

import pytest

from chatmemory import UserMessage, services
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.services import protocol


def say(memory_id: str, *words: str) -> None:
    services.add(memory_id, [UserMessage(word) for word in words])


def test_an_empty_overview_shows_the_first_steps(operator_client):
    page = operator_client.get("/").content.decode()
    assert "No conversations yet" in page
    assert "create_token" in page
    assert 'href="/import/"' in page


def test_the_examples_can_be_added_by_a_button(operator_client):
    assert operator_client.get("/demo/").status_code == 405
    operator_client.post("/demo/", follow=True)
    page = operator_client.post("/demo/", follow=True).content.decode()
    assert "order-7741" in page
    assert "lisbon-guide" in page


def test_it_shows_fill_counts_and_what_left(operator_client, memory_id):
    say(memory_id, "a", "b", "c", "the fourth")
    page = operator_client.get("/").content.decode()
    assert 'aria-valuenow="3"' in page
    assert "the fourth" in page
    assert "left the window" in page
    assert f"/c/{memory_id}/?at=4&amp;msg=1" in page


def test_headline_numbers_are_counted_at_most_every_half_minute(operator_client, memory_id):
    first = operator_client.get("/").context["headlines"]
    say(memory_id, *"abcdef")
    again = operator_client.get("/")
    assert again.context["headlines"] == first
    assert f"{first.at:%H:%M:%S}" in again.content.decode()


def test_a_client_that_decides_has_no_meter(operator_client, db):
    protocol.update_messages("bare", [UserMessage("a")])
    page = operator_client.get("/").content.decode()
    assert "Client decides" in page
    assert 'role="meter"' not in page


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("?q=parcel", "alpha", "beta"),
        ("?q=bet", "beta", "alpha"),
        ("?policy=token_window", "beta", "alpha"),
        ("?active=1&sort=said", "alpha", "nobody"),
    ],
)
def test_it_filters(operator_client, db, query, shown, hidden):
    services.create("alpha", MessageWindow(3))
    services.create("beta", TokenWindow(100))
    say("alpha", "where is my parcel?")
    page = operator_client.get(f"/{query}").content.decode()
    assert f"/c/{shown}/" in page
    assert f'href="/c/{hidden}/"' not in page


def test_an_empty_result_links_to_all_conversations(operator_client, memory_id):
    page = operator_client.get("/?q=zzz").content.decode()
    assert "No conversation matches" in page
    assert "Clear filters" in page


@pytest.mark.parametrize("sort", ["activity", "said", "forgotten"])
def test_pages_are_stable_both_ways(operator_client, db, sort):
    for number in range(60):
        services.create(f"m{number:02}", MessageWindow(3))
    url, seen = f"/?sort={sort}", []
    while url:
        context = operator_client.get(url).context
        seen.append([row.memory.id for row in context["rows"]])
        url = context["older"] and f"/{context['older']}"
    everyone = [memory_id for page in seen for memory_id in page]
    assert len(everyone) == len(set(everyone)) == 60
    back = operator_client.get(f"/{context['newer']}").context
    assert [row.memory.id for row in back["rows"]] == seen[-2]


def test_an_invalid_cursor_shows_the_first_page(operator_client, memory_id):
    assert operator_client.get("/?older=broken").status_code == 200


def test_htmx_gets_the_table_and_a_restore_the_page(operator_client, memory_id):
    fragment = operator_client.get("/", headers={"HX-Request": "true"})
    assert fragment.content.strip().startswith(b'<div class="over-main"')
    assert "HX-Request" in fragment["Vary"]
    restore = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert b"<!DOCTYPE html>" in operator_client.get("/", headers=restore).content


def test_it_takes_a_bounded_number_of_queries(operator_client, db, django_assert_max_num_queries):
    for number in range(40):
        services.create(f"m{number}", MessageWindow(2))
        say(f"m{number}", "a", "b", "c")
    with django_assert_max_num_queries(16):
        operator_client.get("/")
