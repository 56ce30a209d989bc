"""The ledger over HTTP."""

from __future__ import annotations

import pytest

from .said import URL, add


def test_it_lists_and_shows_steps(api, memory_id):
    add(api, "a", "b", "c", "d")
    page = api.get(f"{URL}steps/?size=3").data
    assert [step["n"] for step in page["steps"]] == [1, 2, 3]
    assert [step["n"] for step in api.get(page["later"]).data["steps"]] == [4]
    step = api.get(f"{URL}steps/4/").data
    assert step["summary"] == "User message #4 arrived. 1 message left: #1 was the oldest."
    assert step["arrived"] == [4]
    assert step["actor"] == "token:tests"
    assert api.get(f"{URL}steps/5/").status_code == 404


@pytest.mark.parametrize(
    ("words", "path", "why"),
    [
        ("", "steps/0/", "has no step 0: nothing has changed it yet"),
        ("", "steps/1/", "has no step 1: nothing has changed it yet"),
        ("a", "steps/2/", "has no step 2, only step 1"),
        ("ab", "steps/0/", "has no step 0, only steps 1 to 2"),
        ("ab", "steps/3/", "has no step 3, only steps 1 to 2"),
        ("", "messages/?at=1", "has no step 1, only step 0"),
        ("ab", "messages/?at=3", "has no step 3, only steps 0 to 2"),
    ],
)
def test_a_missing_step_tells_which_there_are(api, memory_id, words, path, why):
    add(api, *words)
    answer = api.get(f"{URL}{path}")
    assert (answer.status_code, answer.data["title"]) == (404, "Step not found")
    assert answer.data["detail"] == f"'{memory_id}' {why}"
