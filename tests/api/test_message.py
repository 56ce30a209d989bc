"""One message, its stays and why it left."""

from __future__ import annotations

from .said import URL, add


def test_a_message_has_its_stays_and_the_reason_it_left(api, memory_id):
    add(api, "a", "b", "c", "d")
    gone = api.get(f"{URL}messages/1/").data
    assert gone["in_memory"] is False
    assert gone["stays"] == [{"entered_step": 1, "left_step": 4, "reason": "CAPACITY", "tokens": 5}]
    assert gone["why"]["summary"] == (
        "There was no room. When #4 arrived, memory needed 4 of 3 messages, "
        "and #1 was the oldest message that could leave."
    )
    assert [line["amount"] for line in gone["why"]["receipt"]] == [3, 1, 4, -1, 3]
    assert api.get(f"{URL}messages/4/").data["why"] is None
    assert api.get(f"{URL}messages/9/").status_code == 404
