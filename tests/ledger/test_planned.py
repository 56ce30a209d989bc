"""A long list is compared with the window before the lock, and again if that has changed."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, services
from chatmemory.exceptions import VersionConflict
from chatmemory.ledger import protocol
from chatmemory.ledger.transaction import MANY
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory

from ..conversations import create_and_add, numbered, users

pytestmark = pytest.mark.django_db(transaction=True)
LIST = numbered(MANY + 2)


def texts(memory_id: str) -> list[str]:
    return [message.text for message in protocol.get_messages(memory_id)]


def test_a_plan_is_made_again_if_the_conversation_has_changed():
    create_and_add("m", MessageWindow(2 * MANY), users("a", "b"))
    change = services.plan_list("m", LIST)
    services.add("m", users("c"))
    at_three, at_any = (
        protocol.plan_update("m", LIST[1:], expected_version=version) for version in (3, None)
    )
    result = change.write()
    assert (result.step, len(result.evicted)) == (4, 3)
    with pytest.raises(VersionConflict):
        at_three.write()
    at_any.write()
    assert texts("m") == [message.text for message in LIST[1:]]
    assert not verify("m")


def test_what_was_planned_for_an_unknown_id_knows_who_had_it_meanwhile():
    first, second, third = (protocol.plan_update("m", LIST[n:]) for n in range(3))
    assert first.write().step == 1
    assert second.write().step == 2
    services.delete("m")
    assert third.write().step == 1
    assert texts("m") == [message.text for message in LIST[2:]]
    assert Memory.objects.get(id="m").previous_head
    assert not verify("m")
