"""The ledger over HTTP."""

from __future__ import annotations

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
