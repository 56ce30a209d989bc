"""A window behaves like a plain list of its entries, however little of it has been read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, SystemMessage, UserMessage
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import MessageWindow
from chatmemory.core.transitions import admit, visible
from chatmemory.core.window import Entry, EntrySource, Totals, Window, total


def entry(letter: str, tokens: int = 1) -> Entry:
    return Entry.of(SystemMessage(letter) if letter.isupper() else UserMessage(letter), tokens)


class Kept(EntrySource):
    """Entries kept elsewhere, where only those of system messages give their messages unasked."""

    def __init__(self, entries: list[Entry]) -> None:
        self.kept = entries
        self.read = self.systems_asked = 0

    def entries(self):
        for each in self.kept:
            self.read += 1
            is_system = each.type is MessageType.SYSTEM
            yield each if is_system else replace(each, message=None)

    def systems(self):
        self.systems_asked += 1
        return [each for each in self.kept if each.type is MessageType.SYSTEM]

    def with_messages(self):
        return self.kept


def lazy(entries: list[Entry]) -> Window:
    return Window(Kept(entries), total(entries))


def read(window: Window, count: int) -> list[Entry]:
    return [each for each, _ in zip(window, range(count), strict=False)]


letters = st.text(alphabet="abST", max_size=6)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from("aS"), st.booleans()),
        st.tuples(st.just("discard"), st.integers(0, 9), st.none()),
        st.tuples(st.just("read"), st.integers(0, 4), st.none()),
        st.tuples(st.just("systems"), st.none(), st.none()),
    ),
    max_size=8,
)


@given(letters, changes)
def test_a_window_read_lazily_equals_a_list(start, script):
    entries = [entry(letter) for letter in start]
    for window in (Window(entries), lazy(entries)):
        expected = list(entries)
        for name, value, at_head in script:
            if name == "place":
                arrival = entry(value)
                window.place(arrival, at_head)
                expected.insert(0 if at_head else len(expected), arrival)
            elif name == "discard" and value < len(expected):
                window.discard(expected.pop(value))
            elif name == "read":
                assert read(window, value) == expected[:value]
            elif name == "systems":
                systems = [each for each in expected if each.type is MessageType.SYSTEM]
                assert list(window.systems()) == systems
        assert list(window) == expected
        assert [each.message for each in window.with_messages()] == [
            each.message for each in expected
        ]


@given(letters, st.lists(st.sampled_from("abST"), max_size=6), st.integers(1, 4), st.booleans())
def test_a_lazy_window_decides_like_one_read_at_once(start, arriving, limit, keep_first):
    policy = MessageWindow(limit, always_keep_system_message_first=keep_first)
    entries, arrivals = [entry(letter) for letter in start], [entry(letter) for letter in arriving]
    window, whole = lazy(entries), Window(entries)
    for arrival in arrivals:
        transition = admit(window, arrival, policy)
        assert transition == admit(whole, arrival, policy)
        transition.apply_to(window)
        transition.apply_to(whole)
        assert window.totals == whole.totals == total(whole)
    assert list(window) == list(whole)
    assert visible(window, policy) == visible(whole, policy)


def test_looking_for_system_messages_hides_nothing_from_a_decision_under_way():
    entries = [entry(letter) for letter in "abcd"]
    window = Window(iter(entries), total(entries))
    transition = admit(window, entry("S"), MessageWindow(1))
    assert [eviction.entry for eviction in transition.evictions] == entries


def test_a_decision_reads_only_what_it_evicts():
    kept = Kept([entry("a") for _ in range(1_000)])
    window = Window(kept, Totals(1_000, 1_000))
    admit(window, entry("b"), MessageWindow(1_000)).apply_to(window)
    assert kept.read < 5
    assert kept.systems_asked == 0


def test_options_read_no_more_than_they_evict():
    kept = Kept([entry("a") for _ in range(1_000)])
    window = Window(kept, Totals(1_000, 1_000))
    policy = MessageWindow(1_000, low_water="0.99", snap_to_user=True, oversized="keep")
    transition = admit(window, entry("b"), policy)
    assert len(transition.evictions) == 11
    assert kept.read < 16


def test_a_system_message_finds_the_one_in_force_without_reading_on():
    kept = Kept([entry("a") for _ in range(1_000)] + [entry("S")])
    window = Window(kept, Totals(1_001, 1_001))
    assert admit(window, entry("S"), MessageWindow(2_000)).ignored
    assert kept.read == 0


def test_the_messages_of_system_entries_need_no_loading():
    window = lazy([entry("a"), entry("S")])
    assert [each.message for each in window.systems()] == [SystemMessage("S")]


def test_system_messages_can_be_discarded_one_by_one():
    window = Window([entry("S"), entry("a"), entry("T")])
    for each in window.systems():
        window.discard(each)
    assert [each.message for each in window] == [UserMessage("a")]


def test_another_family_counts_every_message_anew():
    entries = [entry("a", 5), entry("S", 5), entry("b", 5)]
    for window in (Window(entries), lazy(entries)):
        window.count_with("words", lambda message: 2 if message == UserMessage("a") else 1)
        assert [each.tokens for each in window] == [2, 1, 1]
        assert (window.totals, window.counted_by) == (Totals(3, 4), "words")
        assert list(window) == entries


def test_the_same_family_counts_nothing():
    window = Window([entry("a", 5)], counted_by="words")
    window.count_with("words", lambda message: 1)
    assert window.totals == Totals(1, 5)


def test_a_refilled_window_forgets_what_it_held():
    old, arrival = [entry("a"), entry("S")], entry("T")
    for window in (Window(old), lazy(old)):
        window.place(entry("b"), at_head=True)
        window.discard(old[0])
        window.refill([arrival, old[0]])
        assert list(window) == window.with_messages() == [arrival, old[0]]
        assert list(window.systems()) == [arrival]


def test_a_window_may_hold_equal_messages_twice():
    twins = entry("a"), entry("a")
    window = Window(twins)
    window.discard(twins[0])
    assert list(window) == [twins[1]]
    assert twins[0] != twins[1]


def test_totals_are_the_number_of_entries_and_the_sum_of_their_tokens():
    call = Entry.of(AiMessage("yes"))
    assert Window([entry("a", 3), entry("b", 4), call]).totals == Totals(3, 7)
    assert Window([entry("a", 3)], Totals(9, 9)).totals == Totals(9, 9)
