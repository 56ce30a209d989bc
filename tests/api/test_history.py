"""The history and the ledger over HTTP."""

from __future__ import annotations

import pytest

from .messages import URL, add


def seqs(page) -> list[int]:
    return [row["seq"] for row in page["messages"]]


def test_the_history_pages_both_ways(api, memory_id):
    add(api, *"abcdefg")
    last = api.get(f"{URL}history/?size=3").data
    assert seqs(last) == [5, 6, 7]
    assert last["later"] is None
    middle = api.get(last["earlier"]).data
    assert seqs(middle) == [2, 3, 4]
    assert seqs(api.get(middle["earlier"]).data) == [1]
    assert seqs(api.get(middle["later"]).data) == [5, 6, 7]
    assert seqs(api.get(f"{URL}history/?at=2").data) == [1, 2]


def test_a_page_around_a_message_has_as_much_on_both_sides(api, memory_id):
    add(api, *"abcdefg")
    for around, size, expected in [
        (4, 1, [4]),
        (4, 2, [4, 5]),
        (4, 3, [3, 4, 5]),
        (4, 4, [3, 4, 5, 6]),
        (4, 5, [2, 3, 4, 5, 6]),
        (1, 3, [1, 2]),
        (7, 3, [5, 6, 7]),
        (9, 3, [5, 6, 7]),
    ]:
        page = api.get(f"{URL}history/?around={around}&size={size}").data
        assert seqs(page) == expected, (around, size)


@pytest.mark.parametrize(
    "query", ["after=2&before=4", "around=2&before=4", "after=1&around=2", "after=0&before=0"]
)
def test_a_page_has_one_edge(api, memory_id, query):
    answer = api.get(f"{URL}history/?{query}")
    assert (answer.status_code, answer.data["title"]) == (422, "Invalid value")
    assert answer.data["detail"].startswith("give at most one of before, after and around")


def test_it_lists_and_shows_steps(api, memory_id):
    add(api, "a", "b", "c", "d")
    page = api.get(f"{URL}steps/?size=3").data
    assert [step["n"] for step in page["steps"]] == [1, 2, 3]
    assert [step["n"] for step in api.get(page["later"]).data["steps"]] == [4]
    step = api.get(f"{URL}steps/4/").data
    assert step["summary"] == "User message #4 arrived. 1 message left memory: #1 was the oldest."
    assert step["arrived"] == [4]
    assert step["actor"] == "token:tests"


@pytest.mark.parametrize(
    ("words", "path", "why"),
    [
        ("", "steps/0/", "has no step 0, because nothing has changed it yet"),
        ("", "steps/1/", "has no step 1, because nothing has changed it yet"),
        ("a", "steps/2/", "has no step 2, only step 1"),
        ("ab", "steps/0/", "has no step 0, only steps 1 to 2"),
        ("ab", "steps/3/", "has no step 3, only steps 1 to 2"),
        ("", "messages/?at=1", "has no step 1, only step 0"),
        ("ab", "messages/?at=3", "has no step 3, only steps 0 to 2"),
    ],
)
def test_a_missing_step_names_the_existing_ones(api, memory_id, words, path, why):
    add(api, *words)
    answer = api.get(f"{URL}{path}")
    assert (answer.status_code, answer.data["title"]) == (404, "Step not found")
    assert answer.data["detail"] == f"the conversation '{memory_id}' {why}"
