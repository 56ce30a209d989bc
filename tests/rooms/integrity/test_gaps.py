"""What was recorded while the room was not installed, and after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from chatmemory import MessageWindow, services
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Message, Step
from chatmemory.reading.steps import step_samples

from ...conversations import create_and_add, users

pytestmark = pytest.mark.django_db
ROOM = "inspector.rooms.integrity"


@pytest.fixture
def without_the_room(settings):
    """Remove the room, and give what installs it again."""
    installed = settings.INSTALLED_APPS
    needing = (ROOM, "inspector.rooms.transfer")
    settings.INSTALLED_APPS = [name for name in installed if name not in needing]
    return lambda: setattr(settings, "INSTALLED_APPS", installed)


def test_without_the_room_changes_are_recorded_and_verified(without_the_room):
    create_and_add("m", MessageWindow(2), users("one", "two", "three"))
    services.change("m", labels={"team": "red"})
    services.redact("m", 1, actor="ada")
    assert {bytes(step.digest) for step in Step.objects.all()} == {b""}
    assert {row.salt for row in Message.objects.all()} == {None}
    assert bytes(Memory.objects.get().head) == b""
    assert verify("m") is None
    with pytest.raises(CommandError, match="this installation cannot compare digests"):
        call_command("verify_memories", heads=Path(__file__))


def test_steps_that_were_recorded_without_it_are_named(without_the_room):
    create_and_add("m", MessageWindow(2), users("one", "two"))
    without_the_room()
    services.add("m", users("three"))
    assert str(verify("m")) == (
        "'m': a step from 1 to 2: has no digest, because the room integrity was not installed when "
        "the step was recorded"
    )
    assert bytes(Step.objects.get(n=3).digest)


def test_a_conversation_that_was_created_without_it_goes_on_with_digests(without_the_room):
    services.create("m", MessageWindow(2), {"team": "red"})
    without_the_room()
    assert verify("m").what == (
        "has no digest, because the room integrity was not installed when the conversation was "
        "created"
    )
    services.add("m", users("one"))
    assert verify("m") is None
    Message.objects.update(text="two")
    assert "#1" in verify("m").row


def test_a_conversation_that_was_made_anew_has_a_timeline_of_its_own(without_the_room):
    """What is read of a timeline is kept in this process."""
    seen = []
    for limit in (2, 3):
        create_and_add("m", MessageWindow(limit), users("one"))
        (sample,) = step_samples(Memory.objects.get(), at=1).part
        seen.append(sample.policy)
        services.delete("m")
    assert seen == [MessageWindow(2), MessageWindow(3)]
