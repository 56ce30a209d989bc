"""One test per rule, named after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import ref

from chatmemory import (
    AiMessage,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.eviction import Eviction, Head, Reason, oldest_first
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.transitions import (
    Change,
    admit,
    clear,
    fold,
    hidden_by_limit,
    refill,
    unchanged,
    visible,
)
from chatmemory.core.window import Entry, Totals, Window, total


def user(tokens: int = 10) -> Entry:
    return Entry.of(UserMessage("hello"), tokens)


def system(text: str = "Be brief.", tokens: int = 10) -> Entry:
    return Entry.of(SystemMessage(text), tokens)


def call() -> Entry:
    return Entry.of(AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),)), 10)


def result() -> Entry:
    return Entry.of(ToolExecutionResultMessage("1", "find", "found"), 10)


def reasons(transition) -> list[Reason]:
    return [eviction.reason for eviction in transition.evictions]


def test_the_oldest_message_leaves_a_full_window():
    first, second = user(), user()
    transition = admit(Window([first, second]), user(), MessageWindow(2))
    assert [e.entry for e in transition.evictions] == [first]
    assert (transition.before, transition.after) == (Totals(2, 20), Totals(2, 20))


def test_a_leading_system_message_stays():
    lead, oldest = system(), user()
    transition = admit(Window([lead, oldest]), user(), MessageWindow(2))
    assert [e.entry for e in transition.evictions] == [oldest]


def test_a_system_message_that_is_not_first_is_evicted_like_any_other():
    lead = user()
    transition = admit(Window([lead, system()]), user(), MessageWindow(2))
    assert [e.entry for e in transition.evictions] == [lead]


def test_results_leave_with_their_call():
    window = Window([call(), result(), result(), user()])
    transition = admit(window, user(), MessageWindow(4))
    assert reasons(transition) == [Reason.CAPACITY, Reason.ORPHANED, Reason.ORPHANED]
    assert transition.evictions[1].because == transition.evictions[0].entry


def test_an_equal_system_message_is_ignored():
    transition = admit(Window([system("A")]), system("A"), MessageWindow(2))
    assert transition.ignored
    assert transition.after == Totals(1, 10)


def test_a_different_system_message_replaces_the_first_and_goes_to_the_end():
    window = Window([system("A"), user()])
    transition = admit(window, system("B"), MessageWindow(5))
    transition.apply_to(window)
    assert reasons(transition) == [Reason.REPLACED]
    assert [entry.type for entry in window] == ["USER", "SYSTEM"]


def test_keep_first_puts_a_system_message_at_the_head():
    window = Window([user()])
    policy = MessageWindow(5, always_keep_system_message_first=True)
    admit(window, system(), policy).apply_to(window)
    assert [entry.type for entry in window] == ["SYSTEM", "USER"]


def test_a_system_message_put_first_is_not_evicted_but_an_older_one_behind_it_is():
    older, last = system("B"), user()
    window = Window([system("A"), older, last])
    arrival, policy = system("C", 20), TokenWindow(40, always_keep_system_message_first=True)
    transition = admit(window, arrival, policy)
    transition.apply_to(window)
    assert reasons(transition) == [Reason.REPLACED, Reason.CAPACITY]
    assert list(window) == [arrival, last]


def test_a_message_larger_than_the_window_leaves_at_once():
    arrival = user(100)
    transition = admit(Window([user()]), arrival, TokenWindow(50))
    assert transition.evictions[-1].entry == arrival
    assert transition.after == Totals(0, 0)


def test_the_overhead_of_a_request_counts():
    window = Window([user(47)])
    assert not hidden_by_limit(window, window.totals, TokenWindow(50, fixed_overhead=3))
    assert hidden_by_limit(window, window.totals, TokenWindow(50, fixed_overhead=4))


def test_a_lowered_limit_hides_messages_until_the_next_add():
    entries = [user(), user(), user()]
    window = Window(entries)
    assert visible(window, MessageWindow(1)) == entries[2:]
    assert visible(window, MessageWindow(3)) == entries


def test_a_set_is_trimmed_from_the_head():
    entries = [system(), user(), user()]
    transition = refill(Window(), entries, MessageWindow(2))
    assert [e.entry for e in transition.evictions] == [entries[1]]


def test_deciding_changes_nothing():
    window = Window([user(), user()])
    admit(window, user(), MessageWindow(1))
    assert len(list(window)) == 2


class OldestAtAnyPrice(MessageWindow):
    """A policy of someone else's: a leading system message leaves like any other."""

    def evict(self, head):
        while self.is_exceeded_by(head.totals):
            yield Eviction(head.pop(), Reason.CAPACITY)


def test_a_system_message_is_compared_with_the_first_that_the_trim_has_left():
    window = Window([system("A"), system("B"), user()])
    assert admit(window, system("A"), MessageWindow(3)).ignored
    assert admit(window, system("B"), OldestAtAnyPrice(2)).ignored
    transition = admit(window, system("A"), OldestAtAnyPrice(2))
    assert reasons(transition) == [Reason.CAPACITY, Reason.REPLACED]


def test_what_a_system_message_replaced_left_because_of_it():
    arrival = system("B")
    transition = admit(Window([system("A")]), arrival, MessageWindow(2))
    assert transition.evictions[0].because == arrival


def test_an_ignored_system_message_leaves_a_window_over_its_limit_alone():
    window = Window([system("A"), user(), user()])
    transition = admit(window, system("A"), MessageWindow(1))
    transition.apply_to(window)
    assert (transition.evictions, transition.after) == ((), Totals(3, 30))
    assert len(list(window)) == 3


def test_the_limit_is_asked_again_after_the_append():
    first, second, arrival = user(), user(), user()
    before, after = MessageWindow(2), MessageWindow(1)
    transition = admit(Window([first, second]), arrival, before, lambda: after)
    assert [e.entry for e in transition.evictions] == [first, second]
    assert (transition.policy_before, transition.policy) == (before, after)


def test_a_head_system_message_alone_stays_over_any_limit():
    transition = admit(Window([system(tokens=90)]), user(20), TokenWindow(50))
    assert transition.after == Totals(1, 90)


def test_results_behind_an_evicted_message_that_calls_nothing_stay():
    window = Window([user(), result(), user()])
    transition = admit(window, user(), MessageWindow(3))
    assert reasons(transition) == [Reason.CAPACITY]


def test_only_results_directly_behind_a_call_leave_with_it():
    window = Window([system(), call(), result(), user(), result()])
    transition = admit(window, user(), MessageWindow(4))
    assert reasons(transition) == [Reason.CAPACITY, Reason.ORPHANED]
    assert transition.after.count == 4


def test_a_clear_takes_everything_away():
    entries = [system(), user()]
    window = Window(entries)
    transition = clear(window, MessageWindow(2))
    transition.apply_to(window)
    assert [(e.entry, e.reason) for e in transition.evictions] == [
        (entry, Reason.CLEARED) for entry in entries
    ]
    assert (transition.before, transition.after) == (Totals(2, 20), Totals())
    assert (list(window), list(window.systems()), window.totals) == ([], [], Totals())


def test_keeping_leaves_the_window_alone():
    entries = [user(), user()]
    window, policy = Window(entries), MessageWindow(1)
    transition = unchanged(window, policy)
    transition.apply_to(window)
    assert (list(window), window.totals) == (entries, Totals(2, 20))
    assert (transition.before, transition.after) == (Totals(2, 20), Totals(2, 20))
    assert transition.policy == transition.policy_before == policy
    assert not transition.ignored


def test_a_set_replaces_the_list_and_names_what_its_policy_trims():
    old, arrivals = user(), [user(), user(), user()]
    window, policy = Window([old]), MessageWindow(2)
    transition = refill(window, arrivals, policy)
    transition.apply_to(window)
    assert transition.arrivals == arrivals
    assert (transition.before, transition.after) == (Totals(1, 10), Totals(2, 20))
    assert transition.policy == transition.policy_before == policy
    assert (list(window), window.totals) == (arrivals[1:], Totals(2, 20))


def test_a_set_without_a_policy_is_not_trimmed():
    transition = refill(Window(), [user(), user()], None)
    assert (transition.evictions, transition.after.count) == ((), 2)


def test_without_a_policy_everything_is_visible():
    entries = [user(), user()]
    assert visible(Window(entries), None) == entries
    assert hidden_by_limit(entries, total(entries), None) == []


def test_every_transition_says_what_it_does_under_which_policy():
    window, policy = Window([system("A")]), MessageWindow(2)
    kinds = {
        Change.ADD: [admit(window, user(), policy), admit(window, system("A"), policy)],
        Change.SET: [refill(window, [user()], policy)],
        Change.CLEAR: [clear(window, policy)],
        Change.KEEP: [unchanged(window, policy)],
    }
    for kind, transitions in kinds.items():
        for transition in transitions:
            assert transition.change is kind
            assert transition.policy == transition.policy_before == policy
            assert transition.before == Totals(1, 10)


def test_reasons_and_changes_are_spelled_as_databases_and_clients_have_them():
    assert " ".join(Reason) == "CAPACITY ORPHANED REPLACED CLEARED SET MOVED TURN"
    assert " ".join(Change) == "add set clear keep pin"


def test_a_transition_can_be_told_about_other_entries():
    old, arrival, stored, counted = system("A"), system("B"), system("B"), system("A", 99)
    transition = admit(Window([old]), arrival, MessageWindow(5))
    told = transition.with_entries({arrival: stored, old: counted})
    assert told.arrivals == (stored,)
    assert told.evictions == (Eviction(counted, Reason.REPLACED, because=stored),)
    assert told.evictions[0].entry.tokens == 99
    assert transition.with_entries({}) == transition
    plain = admit(Window([user()]), user(), MessageWindow(1))
    assert plain.with_entries({}).evictions[0].because is None


def test_folding_moves_the_window_along():
    window, arrivals = Window(), [user(), user(), user()]
    transitions = list(fold(window, arrivals, MessageWindow(2)))
    assert [transition.arrivals for transition in transitions] == [(each,) for each in arrivals]
    assert [transition.before.count for transition in transitions] == [0, 1, 2]
    assert list(window) == arrivals[1:]


def test_taking_from_the_head_changes_what_remains_and_not_the_window():
    entries = [user(1), user(2), user(3)]
    window = Window(entries)
    head = Head(window, window.totals)
    assert (head.peek(), head.peek(2), head.peek(3)) == (entries[0], entries[2], None)
    assert (head.pop(1), head.pop(7), head.peek(1)) == (entries[1], None, entries[2])
    head.remove(entries[2])
    assert (head.peek(1), head.totals) == (None, Totals(1, 1))
    assert (list(window), window.totals) == (entries, Totals(3, 6))


def test_what_is_placed_at_the_head_or_behind_everything_is_met_there():
    inside, first, last, very_last = user(1), user(2), user(4), user(8)
    head = Head([inside], total([inside]))
    head.peek()
    head.place(last, at_head=False)
    head.place(very_last, at_head=False)
    head.place(first, at_head=True)
    assert head.totals == Totals(4, 15)
    assert [head.pop() for _ in range(5)] == [first, inside, last, very_last, None]
    assert head.totals == Totals()


def test_eviction_ends_with_the_window_whatever_the_limit_says():
    assert not list(oldest_first(Head([], Totals()), lambda totals: True))


def test_an_entry_removed_before_it_was_met_is_not_met():
    entries = [system("A"), system("B"), system("C")]
    head = Head(entries, total(entries))
    head.remove(entries[1])
    assert [head.pop(), head.pop(), head.pop()] == [entries[0], entries[2], None]


def test_one_memory_reads_what_another_wrote_to_the_same_store():
    from chatmemory import InMemoryChatMemoryStore

    store = InMemoryChatMemoryStore()
    MessageWindowChatMemory("a", 5, store).add(UserMessage("one"))
    assert MessageWindowChatMemory("a", 5, store).messages() == [UserMessage("one")]
    assert MessageWindowChatMemory("b", 5, store).messages() == []


def test_a_change_leaves_nothing_for_the_garbage_collector():
    """What refers to itself stays until Python looks for it, with all that it refers to."""
    heads = []

    @dataclass(frozen=True)
    class Watched(MessageWindow):
        def evict(self, head: Head) -> Iterator[Eviction]:
            heads.append(ref(head))
            return super().evict(head)

    gc.disable()
    try:
        window = Window([user(), user(), user()])
        admit(window, user(), Watched(2)).apply_to(window)
        assert [head() for head in heads] == [None, None]
    finally:
        gc.enable()
