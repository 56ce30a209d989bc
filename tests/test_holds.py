"""Nothing is counted while the lock of a writer is held, and no change that came first is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from chatmemory import MessageWindow, UserMessage, queries, services
from chatmemory.core.estimators import ESTIMATORS
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import protocol

from .a_program import LettersEstimator
from .connecting import connected
from .conversations import create_and_add, numbered, users

WATCHED = MessageWindow(9, estimator="watched")


CHANGES = {
    "a policy": lambda: services.change("other", policy=WATCHED),
    "a policy and messages": lambda: services.change_and_add("other", numbered(2), policy=WATCHED),
    "messages": lambda: services.add("m", numbered(2, "new")),
    "a list": lambda: services.set_messages("m", numbered(2, "new")),
    "a client's list": lambda: protocol.update_messages("m", numbered(2, "new")),
    "a client's first list": lambda: protocol.update_messages("first", numbered(2)),
    "a branch": lambda: services.branch("m", "branch", numbered(2)),
    "a branch under a policy": lambda: services.branch("other", "b", numbered(2), policy=WATCHED),
    "a branch of watched ones": lambda: services.branch("m", "b", [], policy=MessageWindow(9)),
    "an import": lambda: services.import_conversation("imported", numbered(2), WATCHED),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_messages_are_counted_before_the_conversation_is_locked(counted_in_transactions, change):
    services.set_default_policy("first", WATCHED)
    services.create("m", WATCHED)
    services.create("other", MessageWindow(9))
    for memory_id in ("m", "other"):
        services.add(memory_id, numbered(12))
        protocol.update_messages(memory_id, [UserMessage("summary"), *numbered(12)[-5:]])
    counted_in_transactions.clear()
    change()
    assert set(counted_in_transactions) == {False}
    for memory_id in Memory.objects.values_list("pk", flat=True):
        assert verify(memory_id) is None


@pytest.mark.django_db(transaction=True)
def test_a_client_whose_estimator_is_gone_has_its_window_counted_before_the_lock(
    counted_in_transactions, settings
):
    ESTIMATORS.register("gone", lambda name: LettersEstimator())
    create_and_add("m", MessageWindow(9, estimator="gone"), numbered(5))
    ESTIMATORS.unregister("gone")
    settings.CHATMEMORY = {"ESTIMATOR": "watched"}
    protocol.update_messages("m", numbered(6))
    assert (queries.memory("m").policy, set(counted_in_transactions)) == (None, {False})
    assert verify("m") is None


class Meanwhile:
    """Does something in another connection, when conversations or stays are first read."""

    def __init__(self, act: Callable[[], object], table: str = "chatmemory_memory") -> None:
        self._act: Callable[[], object] | None = act
        self._table = table

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if self._act and f"FROM {self._table}" in sql.replace('"', ""):
            act, self._act = self._act, None
            with connected(connection.settings_dict["NAME"]):
                act()
        return result


def texts(memory_id: str) -> list[str]:
    return [message.single_text() for message in protocol.get_messages(memory_id)]


def test_a_window_that_changed_after_it_was_counted_is_counted_again(committing):
    create_and_add("m", MessageWindow(3), numbered(3))
    add_another = Meanwhile(lambda: services.add("m", numbered(1, "other")), "chatmemory_stay")
    ESTIMATORS.register("letters", lambda name: LettersEstimator())
    with connection.execute_wrapper(add_another):
        services.change("m", policy=MessageWindow(3, estimator="letters"))
    assert [entry.tokens for entry in protocol.get_window("m")] == [9, 9, 7]
    assert verify("m") is None
    ESTIMATORS.unregister("letters")


def test_a_list_replaces_what_another_changed_before_the_lock(committing):
    create_and_add("m", MessageWindow(3), numbered(3))
    with connection.execute_wrapper(Meanwhile(lambda: services.pin("m", 2))):
        services.set_messages("m", users("message 1", "new"))
    assert texts("m") == ["message 1", "new"]
    assert [entry.pinned for entry in protocol.get_window("m")] == [True, False]
    assert verify("m") is None


def test_a_list_for_an_id_that_another_creates_meanwhile_is_the_second(committing):
    def create() -> None:
        protocol.update_messages("m", numbered(2))

    with connection.execute_wrapper(Meanwhile(create)):
        protocol.update_messages("m", [*numbered(2), UserMessage("third")])
    assert queries.memory("m").last_step == 2
    assert texts("m") == ["message 0", "message 1", "third"]
    assert verify("m") is None


class DeletedMeanwhile:
    """Creates a conversation before an insert, and deletes it before it is locked."""

    is_done = False

    def __call__(self, execute, sql, params, many, context):
        if self.is_done or not sql.startswith("INSERT INTO chatmemory_memory"):
            return execute(sql, params, many, context)
        self.is_done = True
        services.create("m", MessageWindow(2))
        result = execute(sql, params, many, context)
        Memory.objects.filter(pk="m").delete()
        return result


def test_an_id_that_is_deleted_while_it_is_created_is_stored(db):
    with connection.execute_wrapper(meanwhile := DeletedMeanwhile()):
        services.create("m", MessageWindow(5))
    assert meanwhile.is_done
    assert queries.memory("m").policy == MessageWindow(5)
    Memory.objects.all().delete()
    with connection.execute_wrapper(meanwhile := DeletedMeanwhile()):
        protocol.update_messages("m", numbered(2))
    assert meanwhile.is_done
    assert texts("m") == ["message 0", "message 1"]
