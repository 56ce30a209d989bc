"""Incidents over HTTP: facts that left memory and came up again."""

from __future__ import annotations

import pytest

from tests.api.messages import URL, add

FOUND = {
    "kind": "user_repeated",
    "again": 5,
    "step": 5,
    "forced": False,
    "asked": None,
    "facts": [
        {"fact": "A-1182", "said": 1, "left_step": 4, "cause": "CAPACITY", "limit": 4},
    ],
}


def test_incidents_are_known_up_to_the_newest_step(api, memory_id):
    add(api, "It is A-1182.", "a", "b", "c")
    known = {"known_until": 4, "is_current": True}
    assert api.get(f"{URL}incidents/").json() == {**known, "incidents": []}
    add(api, "A-1182!")
    known["known_until"] = 5
    assert api.get(f"{URL}incidents/").json() == {**known, "incidents": [FOUND]}


@pytest.mark.parametrize(
    ("kind", "found"),
    [("user_repeated", [FOUND]), ("said_again", [FOUND]), ("call_repeated", []), ("used", [])],
)
def test_incidents_can_be_filtered_by_kind(api, memory_id, kind, found):
    add(api, "It is A-1182.", "a", "b", "c", "A-1182!")
    assert api.get(f"{URL}incidents/?kind={kind}").json()["incidents"] == found


def test_another_kind_is_refused(api, memory_id):
    answer = api.get(f"{URL}incidents/?kind=all")
    assert (answer.status_code, answer.data["field"]) == (422, "kind")
