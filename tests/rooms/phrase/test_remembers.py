"""Whether memory has a phrase, over HTTP."""

from __future__ import annotations

import pytest

from tests.api.messages import URL, add


@pytest.mark.parametrize(
    ("query", "state", "messages"),
    [
        ("phrase=a-1182", "not_in_memory", []),
        ("phrase=a-1182&at=2", "in_memory", [1]),
        ("phrase=c", "in_memory", [4]),
        ("phrase=never", "not_in_memory", []),
    ],
)
def test_it_has_three_states(api, memory_id, query, state, messages):
    add(api, "It is A-1182.", "a", "b", "c")
    found = api.get(f"{URL}remembers/?{query}").json()
    assert (found["state"], found["messages"]) == (state, messages)
    assert found["in_memory"] is (state != "not_in_memory")


def test_it_says_in_words_what_drove_it_out(api, memory_id):
    add(api, "It is A-1182.", "a", "b", "c")
    found = api.get(f"{URL}remembers/?phrase=A-1182").json()
    assert found["answer"].startswith("No, forgotten at this step, when #4 arrived.")


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [("", 422, "phrase"), ("phrase=" + "x" * 1_001, 422, "phrase"), ("phrase=a&at=99", 404, None)],
)
def test_mistakes(api, memory_id, query, status, field):
    answer = api.get(f"{URL}remembers/?{query}")
    assert (answer.status_code, answer.data.get("field")) == (status, field)
