"""One test per rule, named after it."""

from __future__ import annotations

from chatmemory import (
    AiMessage,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.eviction import Reason
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.transitions import admit, fold, over_limit, refill, visible
from chatmemory.core.window import Entry, Totals, Window


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


def test_a_message_larger_than_the_window_leaves_at_once():
    arrival = user(100)
    transition = admit(Window([user()]), arrival, TokenWindow(50))
    assert transition.evictions[-1].entry == arrival
    assert transition.after == Totals(0, 0)


def test_the_overhead_of_a_request_counts():
    window = Window([user(47)])
    assert not over_limit(window, TokenWindow(50, fixed_overhead=3))
    assert over_limit(window, TokenWindow(50, fixed_overhead=4))


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


def test_a_decision_reads_only_what_it_evicts():
    read = []

    def entries():
        for _ in range(1_000):
            entry = user()
            read.append(entry)
            yield entry

    window = Window(entries(), Totals(1_000, 10_000))
    admit(window, user(), MessageWindow(1_000)).apply_to(window)
    assert len(read) < 5


def test_a_lazy_window_decides_like_a_whole_one():
    policy = TokenWindow(95)
    arrivals = [user(n % 7 + 5) for n in range(40)]
    start = [system(), call(), result(), user(), user()]
    whole, lazy = Window(start), Window(iter(start), Totals(5, 50))
    for one, other in zip(fold(whole, arrivals, policy), fold(lazy, arrivals, policy), strict=True):
        assert one == other
    assert list(whole) == list(lazy)


def test_one_memory_reads_what_another_wrote_to_the_same_store():
    from chatmemory import InMemoryChatMemoryStore

    store = InMemoryChatMemoryStore()
    MessageWindowChatMemory("a", 5, store).add(UserMessage("one"))
    assert MessageWindowChatMemory("a", 5, store).messages() == [UserMessage("one")]
    assert MessageWindowChatMemory("b", 5, store).messages() == []
