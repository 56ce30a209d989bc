"""Muting a cause of the overview."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow
from inspector.overview.causes import counted_headlines

from ...conversations import create_and_add, keep, users

SAID = users("My order is A-1182.", "well", "well", "As I said, A-1182!")


def with_incidents(count: int) -> None:
    for n in range(count):
        create_and_add(f"m{n}", MessageWindow(2), SAID)
    keep()


def test_a_cause_is_muted_for_everybody_until_its_number_grows_by_half(operator_client, db):
    with_incidents(2)
    assert [cause.name for cause in counted_headlines(0).causes] == ["user_repeated"]
    form = {"flag": "user_repeated"}
    assert operator_client.post("/mute/", form).status_code == 302
    page = " ".join(operator_client.get("/").text.split())
    assert "Nothing needs attention" in page
    assert "Muted by operator at 2 conversations:" in page
    create_and_add("third", MessageWindow(2), SAID)
    keep()
    (line,) = counted_headlines(0).causes
    assert (line.name, line.count) == ("user_repeated", 3)
    operator_client.post("/mute/", form)
    assert not counted_headlines(0).causes
    operator_client.post("/mute/", {**form, "undo": "1"})
    assert counted_headlines(0).causes


@pytest.mark.django_db
def test_only_known_causes_can_be_muted(operator_client):
    assert operator_client.post("/mute/", {"flag": "burnt"}).status_code == 409
