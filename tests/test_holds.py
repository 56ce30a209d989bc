"""The lock of a writer is held while rows are written, not while they are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from chatmemory import MessageWindow, TokenWindow, UserMessage, database, queries, services
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services import locking, protocol, slices

from .connecting import connected
from .counting_calls import CountedCalls

FEW, MANY = 60, 120


def said(count: int, word: str = "message") -> list[UserMessage]:
    return [UserMessage(f"{word} {n}") for n in range(count)]


@pytest.fixture
def under_lock(monkeypatch) -> list[int]:
    """The calls in each transaction; they decide nothing of more than ten messages."""
    counts: list[int] = []
    calls, depth = CountedCalls(), 0

    class Counted(database._Transaction):
        def __enter__(self) -> None:
            nonlocal depth
            super().__enter__()
            depth += 1
            if depth == 1:
                calls.count = 0
                calls.__enter__()

        def __exit__(self, *error: object) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                calls.__exit__()
                counts.append(calls.count)
            super().__exit__(*error)

    monkeypatch.setattr(database, "_Transaction", Counted)
    monkeypatch.setattr(locking, "DECIDED_UNDER_LOCK", 10)
    monkeypatch.setattr(slices, "SLICE", 10)
    return counts


def put_anew(memory_id: str, count: int) -> None:
    protocol.update_messages(f"{memory_id} anew", said(count))


def put_over(memory_id: str, count: int) -> None:
    protocol.update_messages(memory_id, said(count, "other"))


def set_half(memory_id: str, count: int) -> None:
    half = count // 2
    services.set_messages(memory_id, said(count)[half:] + said(half, "other"))


def clear(memory_id: str, count: int) -> None:
    services.clear_messages(memory_id)


def add_under_a_lower_limit(memory_id: str, count: int) -> None:
    services.add(memory_id, said(1))


def pin(memory_id: str, count: int) -> None:
    services.pin(memory_id, count - 5)


def count_anew(memory_id: str, count: int) -> None:
    services.change(memory_id, policy=TokenWindow(9 * count, estimator="gpt-3.5-turbo"))


def branch(memory_id: str, count: int) -> None:
    services.branch(memory_id, f"{memory_id} branch", said(1))


def branch_with_all_that_can_differ(memory_id: str, count: int) -> None:
    services.pin(memory_id, 2)
    other = TokenWindow(9 * count, estimator="gpt-3.5-turbo")
    services.branch(memory_id, f"{memory_id} branch", said(1), policy=other)


def simulate_and_apply(memory_id: str, count: int) -> None:
    policy = TokenWindow(50, estimator="gpt-3.5-turbo")
    services.change_and_add(memory_id, said(1), policy=policy)


BRANCHES = [branch, branch_with_all_that_can_differ, simulate_and_apply]
CHANGES = [*BRANCHES, put_anew, put_over, set_half, clear, add_under_a_lower_limit, pin, count_anew]


@pytest.mark.parametrize("change", CHANGES)
def test_no_function_is_called_for_each_message_under_the_lock(db, under_lock, change):
    if connection.vendor != "sqlite":
        pytest.skip("the lock of PostgreSQL is that of one conversation")
    counts = []
    for number, count in enumerate((FEW, FEW, MANY)):  # the first one fills caches
        memory_id = f"m{number}"
        services.create(memory_id, MessageWindow(count))
        services.set_messages(memory_id, said(count))
        if change is add_under_a_lower_limit:
            services.change(memory_id, policy=MessageWindow(10))
        under_lock.clear()
        change(memory_id, count)
        counts.append(max(under_lock))
    assert counts[2] - counts[1] < (MANY - FEW) / 10, counts


@pytest.mark.django_db(transaction=True)
def test_another_estimator_counts_before_the_conversation_is_locked(counted_in_transactions):
    services.create("m", MessageWindow(9))
    services.add("m", said(5))
    services.change("m", policy=MessageWindow(9, estimator="watched"))
    assert len(counted_in_transactions) == 5
    # On PostgreSQL, what is read before the lock is a transaction, too
    assert not any(counted_in_transactions) or connection.vendor == "postgresql"
    assert verify("m") is None


class Meanwhile:
    """Does something in another connection, when the stays are read for the first time."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if self._act and "chatmemory_stay" in sql and sql.startswith("SELECT"):
            act, self._act = self._act, None
            with connected(connection.settings_dict["NAME"]):
                act()
        return result


def texts(memory_id: str) -> list[str]:
    return [message.single_text() for message in protocol.get_messages(memory_id)]


def test_a_change_is_decided_again_if_another_came_first(committing, monkeypatch):
    monkeypatch.setattr(locking, "DECIDED_UNDER_LOCK", 0)
    services.create("m", MessageWindow(3))
    services.add("m", said(3))
    with connection.execute_wrapper(Meanwhile(lambda: services.add("m", said(1, "other")))):
        (added,) = services.add("m", said(1, "last"))
    assert (added.seq, [message.seq for message in added.evicted]) == (5, [2])
    with connection.execute_wrapper(Meanwhile(lambda: services.pin("m", 3))):
        services.set_messages("m", [UserMessage("message 2"), UserMessage("new")])
    assert texts("m") == ["message 2", "new"]
    assert [entry.pinned for entry in protocol.get_window("m")] == [True, False]
    assert verify("m") is None


def test_a_list_for_an_id_that_another_creates_meanwhile_is_the_second(committing):
    def create() -> None:
        protocol.update_messages("m", said(2))

    with connection.execute_wrapper(Meanwhile(create)):
        protocol.update_messages("m", [*said(2), UserMessage("third")])
    assert queries.memory("m").last_step == 2
    assert texts("m") == ["message 0", "message 1", "third"]
    assert verify("m") is None


class DeletedMeanwhile:
    """Deletes a conversation that was in the way of an insert, before it is locked."""

    is_done = False

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if not self.is_done and sql.startswith('INSERT INTO "chatmemory_memory"'):
            self.is_done = True
            Memory.objects.filter(pk="m").delete()
        return result


def test_an_id_that_is_deleted_while_it_is_created_is_stored(db):
    with connection.execute_wrapper(DeletedMeanwhile()):
        services.create("m", MessageWindow(5))
    assert queries.memory("m").policy == MessageWindow(5)
    Memory.objects.all().delete()
    with connection.execute_wrapper(DeletedMeanwhile()):
        protocol.update_messages("m", said(2))
    assert texts("m") == ["message 0", "message 1"]
