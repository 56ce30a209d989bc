"""Pages of the history."""

from __future__ import annotations

import pytest

from .said import URL, add


def test_the_history_pages_both_ways(api, memory_id):
    add(api, *"abcdefg")
    last = api.get(f"{URL}history/?size=3").data
    assert [row["seq"] for row in last["messages"]] == [5, 6, 7]
    assert last["later"] is None
    middle = api.get(last["earlier"]).data
    assert [row["seq"] for row in middle["messages"]] == [2, 3, 4]
    assert [row["seq"] for row in api.get(middle["earlier"]).data["messages"]] == [1]
    assert [row["seq"] for row in api.get(middle["later"]).data["messages"]] == [5, 6, 7]
    then = api.get(f"{URL}history/?at=2").data
    assert [row["seq"] for row in then["messages"]] == [1, 2]


@pytest.mark.parametrize(
    ("around", "size", "seqs"),
    [
        (4, 1, [4]),
        (4, 2, [4, 5]),
        (4, 3, [3, 4, 5]),
        (4, 4, [3, 4, 5, 6]),
        (4, 5, [2, 3, 4, 5, 6]),
        (1, 3, [1, 2]),
        (7, 3, [5, 6, 7]),
        (9, 3, [5, 6, 7]),
    ],
)
def test_a_page_around_a_message_has_as_much_on_both_sides(api, memory_id, around, size, seqs):
    add(api, *"abcdefg")
    page = api.get(f"{URL}history/?around={around}&size={size}").data
    assert [row["seq"] for row in page["messages"]] == seqs


@pytest.mark.parametrize(
    "query", ["after=2&before=4", "around=2&before=4", "after=1&around=2", "after=0&before=0"]
)
def test_a_page_has_one_edge(api, memory_id, query):
    add(api, *"abcdef")
    answer = api.get(f"{URL}history/?{query}")
    assert (answer.status_code, answer.data["title"]) == (422, "Invalid value")
    assert answer.data["detail"].startswith("before, after and around exclude one another")
