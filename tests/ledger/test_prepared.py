"""A long list is compared with the window before the lock, and only written under it."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from django.db import connection

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


@pytest.mark.skipif(connection.vendor != "sqlite", reason="on PostgreSQL a read is a transaction")
def test_a_long_list_is_compared_before_the_lock():
    create_and_add("m", MessageWindow(2 * MANY), users("a", "b"))
    under_lock = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and connection.in_atomic_block:
            under_lock.add(frame.f_code.co_filename.rpartition("/")[2])

    sys.setprofile(called)
    try:
        services.set_messages("m", LIST)
        protocol.update_messages("m", LIST[1:])
        protocol.update_messages("new", LIST)
    finally:
        sys.setprofile(None)
    assert "sql.py" in under_lock
    assert "client_list.py" not in under_lock
    assert texts("m") == [message.text for message in LIST[1:]]
    assert texts("new") == [message.text for message in LIST]
    assert not verify("m")
    assert not verify("new")


def test_what_was_prepared_is_made_again_if_the_conversation_has_changed():
    create_and_add("m", MessageWindow(2 * MANY), users("a", "b"))
    change = services.prepare_list("m", LIST)
    services.add("m", users("c"))
    stale = protocol.prepare_update("m", LIST[1:])
    result = change.write()
    assert (result.step, len(result.evicted)) == (4, 3)
    with pytest.raises(VersionConflict):
        stale.write(expected_version=3)
    stale.write(expected_version=4)
    assert texts("m") == [message.text for message in LIST[1:]]
    assert not verify("m")


def test_what_was_prepared_for_an_unknown_id_knows_who_had_it_meanwhile():
    first, second, third = (protocol.prepare_update("m", LIST[n:]) for n in range(3))
    assert first.write().step == 1
    assert second.write().step == 2
    services.delete("m")
    assert third.write().step == 1
    assert texts("m") == [message.text for message in LIST[2:]]
    assert Memory.objects.get(id="m").previous_head
    assert not verify("m")
