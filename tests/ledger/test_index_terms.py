"""Leaving a term out of the index, and listing it again."""

from __future__ import annotations

import pytest

from chatmemory import SystemMessage, TokenWindow, UserMessage, services
from chatmemory.exceptions import InvalidValue, VersionConflict
from chatmemory.ledger.verification import verify
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message, Step
from chatmemory.reading import windows
from chatmemory.reading.indexes import index_among
from chatmemory.recall.index import CHOSEN, Index

from ..columns import all_columns
from ..conversations import create_and_add

LONG = "and some more words that fill the window " * 3
CITIES = ("Paris", "Rome", "Oslo", "Wien", "Bern", "Graz", "Linz", "Lyon", "Nice", "Pisa")
POLICY = TokenWindow(190, low_water=0.4, index_terms=50)


def say(*texts: str) -> None:
    services.add("m", [UserMessage(f"{each} {LONG}") for each in texts])


def index() -> Index | None:
    found = index_among("m", windows.window("m").seqs)
    return found.index if found else None


def listed() -> list[str]:
    found = index()
    return [row.term for row in found.listed] if found else []


@pytest.fixture(autouse=True)
def conversation(db) -> None:
    create_and_add("m", POLICY, [SystemMessage("Be brief.")])
    say("order: A-1182", "flight: HAT001", *CITIES)


def test_a_term_is_left_out_as_a_step_and_by_later_indexes_too():
    assert set(listed()) == {"A-1182", "HAT001"}
    services.leave_out_term("m", "A-1182", actor="ada")
    step = Step.objects.latest("n")
    assert (step.kind, step.actor, step.note) == ("index", "ada", CHOSEN)
    assert listed() == ["HAT001"]
    say("A-1182 again", *CITIES)
    assert Step.objects.filter(kind="index").count() > 3
    assert listed() == ["HAT001"]
    assert verify("m") is None


def test_the_term_is_listed_again_with_the_weight_that_it_has_by_then():
    before = windows.window("m").rows[1].seq
    old = read_message(Message.objects.get(seq=before))
    services.leave_out_term("m", "A-1182")
    services.list_term("m", "A-1182")
    new = windows.window("m").rows[1]
    assert new.seq > before
    assert read_message(Message.objects.get(seq=new.seq)).single_text() == old.single_text()
    services.leave_out_term("m", "A-1182")
    say("A-1182 again", *CITIES)
    services.list_term("m", "A-1182")
    assert listed()[0] == "A-1182"
    assert verify("m") is None


def test_without_a_term_the_index_leaves():
    services.leave_out_term("m", "A-1182")
    services.leave_out_term("m", "HAT001")
    assert index() is None
    assert verify("m") is None
    say("flight: HAT777", *CITIES)
    assert listed() == ["HAT777"]


def test_nothing_changes_if_it_is_so_already():
    assert services.list_term("m", "A-1182") is None
    services.leave_out_term("m", "A-1182")
    steps = Step.objects.count()
    assert services.leave_out_term("m", "A-1182") is None
    assert Step.objects.count() == steps


def test_a_term_that_the_index_does_not_have_is_refused():
    with pytest.raises(InvalidValue, match="does not list this term"):
        services.leave_out_term("m", "B-7001")
    with pytest.raises(VersionConflict):
        services.leave_out_term("m", "A-1182", expected_version=1)
    services.change("m", policy=TokenWindow(190, low_water=0.4))
    with pytest.raises(InvalidValue, match="makes no index"):
        services.leave_out_term("m", "A-1182")


def test_a_preview_changes_nothing():
    steps = Step.objects.count()
    change = services.preview_term("m", "A-1182", is_listed=False)
    assert change is not None
    assert change.gained < change.lost
    assert (Step.objects.count(), "A-1182" in listed()) == (steps, True)


def test_a_redaction_erases_a_term_that_was_left_out():
    services.leave_out_term("m", "A-1182")
    services.redact("m", 2)
    assert "A-1182" not in all_columns()
    assert verify("m") is None


def test_a_past_window_has_the_index_of_its_time():
    step = Step.objects.latest("n").n
    services.leave_out_term("m", "A-1182")
    past = index_among("m", windows.window("m", step).seqs)
    assert past is not None
    assert "A-1182" in {row.term for row in past.index.listed}
