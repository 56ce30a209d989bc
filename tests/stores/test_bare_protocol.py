"""The history and the reasons that are inferred from a client's lists.

Which add explains a list, core/test_inference.py says; here is what the ledger stores of it.
"""

from __future__ import annotations

import sqlite3
from random import Random

import pytest
from django.db import connection

from chatmemory import (
    AiMessage,
    ChatMemoryStore,
    ChatMessage,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    UserMessage,
    services,
)
from chatmemory.explain.captions import caption
from chatmemory.explain.reasons import why_left
from chatmemory.ledger.protocol import delete_messages, get_messages, update_messages
from chatmemory.ledger.verification import verify
from chatmemory.models import Step
from chatmemory.reading import conversations, steps
from chatmemory.reading import history as history_reads
from chatmemory.reading import windows as windows_reads
from chatmemory.services import change

from ..conversations import numbered, users

pytestmark = pytest.mark.django_db

SYSTEM, OK, WRITERS, ADDS = SystemMessage("S"), UserMessage("ok"), 4, 60


def messages(letters: str) -> list[ChatMessage]:
    """S is a system message; all others are said by a user."""
    return [SYSTEM if letter == "S" else UserMessage(letter) for letter in letters]


def send(*lists: str) -> None:
    """Send one list after another; "-" deletes the messages."""
    for letters in lists:
        delete_messages("bare") if letters == "-" else update_messages("bare", messages(letters))


def evictions_at(step: int) -> list[tuple[int, str]]:
    return [(each.seq, each.reason) for each in steps.step("bare", step).change.evicted]


def window(step: int | None = None) -> str:
    return "".join(row.text for row in windows_reads.window("bare", step).rows)


def history() -> str:
    return "".join(row.text for row in history_reads.history("bare").rows)


@pytest.mark.parametrize(
    ("lists", "said"),
    {
        ("Sab",): "Sab",
        ("Sab", "Sabc", "Sbcd"): "Sabcd",
        ("aa",): "aa",
        # What stands before a known message was put in by the client, and not said
        ("ab", "axb"): "ab",
        ("Sab", "xyS"): "Sabxy",
        # What returns before the end is known
        ("abc", "bc", "abc"): "abc",
        ("abc", "bcxy"): "abcxy",
        # y comes from a writer that had not seen x, and z from one that had
        ("ab", "abx", "aby", "abxz"): "abxyz",
        # What was evicted, cleared, or slides in is said again
        ("ab", "bc", "bcad", "adc"): "abcadc",
        ("ab", "-", "ab"): "abab",
        ("abcd", "cdef", "efab"): "abcdefab",
        ("abc", "ac", "acb"): "abcb",
        # An older list, of another writer, brings back all but its last message
        ("ab", "bc", "xy", "az"): "abcxyz",
        ("ab", "bc", "xy", "za"): "abcxyza",
    }.items(),
)
def test_messages_of_lists_are_in_the_history_once(lists, said):
    windows = {}
    for letters in lists:
        send(letters)
        windows[conversations.memory("bare").last_step] = letters.strip("-")
    assert sorted(history()) == sorted(said)
    assert {step: window(step) for step in windows} == windows
    assert verify("bare") is None


@pytest.mark.parametrize(
    ("lists", "kind", "reasons"),
    [
        (("Sabc", "Sbcd"), "add", [(2, "CAPACITY")]),
        (("abc", "Sbc"), "add", [(1, "CAPACITY")]),
        (("Sab", "S"), "add", [(2, "CAPACITY"), (3, "CAPACITY")]),  # of one that nobody saw
        (("abc", "ac"), "set", [(2, "SET")]),
        (("abc", "bcxy"), "set", [(1, "SET")]),
    ],
)
def test_why_a_message_left_is_inferred(lists, kind, reasons):
    send(*lists)
    assert (steps.step("bare", 2).row.kind, evictions_at(2)) == (kind, reasons)


CALL = AiMessage(None, [ToolExecutionRequest("a", "find", "{}")])


def test_a_client_that_recovers_interrupted_calls_is_recognized():
    update_messages("bare", [*messages("q"), CALL])
    update_messages("bare", messages("qh"))
    assert evictions_at(2) == [(2, "INTERRUPTED")]
    assert why_left(steps.step("bare", 2).change, 2).cause == (
        "The client left out a tool call that was not answered completely."
    )
    # A limit of two would explain the next list as well, but not the one before
    update_messages("bare", [CALL, *messages("a")])
    update_messages("bare", messages("ab"))
    assert [reason for _, reason in evictions_at(4)] == ["INTERRUPTED"]
    assert verify("bare") is None


def test_a_client_that_keeps_interrupted_calls_is_recognized():
    update_messages("bare", [*messages("q"), CALL])
    update_messages("bare", [*messages("q"), CALL, *messages("h")])
    update_messages("bare", [CALL, *messages("hi")])
    update_messages("bare", messages("hij"))
    assert [evictions_at(step) for step in (3, 4)] == [[(1, "CAPACITY")], [(2, "CAPACITY")]]
    assert verify("bare") is None


def test_a_list_that_either_policy_explains_was_set():
    """A limit of two, or an interrupted call."""
    update_messages("bare", [CALL, *messages("q")])
    update_messages("bare", messages("qa"))
    assert (steps.step("bare", 2).row.kind, evictions_at(2)) == ("set", [(1, "SET")])


def test_what_no_add_explains_was_left_out_by_the_client():
    send("abc", "ac")
    change = steps.step("bare", 2).change
    assert why_left(change, 2).summary == (
        "The client left it out of its list. At step 2 the list of the client was without #2."
    )
    assert "#2 was left out by the client" in caption(change).summary


def test_the_servers_policy_does_not_decide_what_a_client_did():
    send("ab")
    assert (conversations.memory("bare").policy, windows_reads.window("bare").load) == (None, None)
    assert update_messages("bare", messages("ab")).ignored
    change("bare", policy=MessageWindow(10))
    send("bc")
    step = steps.step("bare", 3)
    assert (step.row.by_client, step.row.policy) == (True, MessageWindow(10))
    assert evictions_at(3) == [(1, "CAPACITY")]


@pytest.mark.parametrize(
    ("said", "back"),
    [
        ([SYSTEM, OK, AiMessage("bad")], 2),
        ([OK, AiMessage("bad"), *messages("ab")], 1),
        ([OK, AiMessage("good"), OK, AiMessage("bad")], 3),
        ([OK, OK, OK], 2),
    ],
)
def test_an_answer_that_a_client_takes_back_adds_nothing(said, back):
    update_messages("bare", said)
    result = update_messages("bare", said[:back])
    assert (result.kind, result.arrived) == ("set", ())
    assert evictions_at(2) == [(seq, "SET") for seq in range(back + 1, len(said) + 1)]
    update_messages("bare", [*said[:back], AiMessage("better")])
    assert history_reads.all_messages("bare") == [*said, AiMessage("better")]
    assert verify("bare") is None


def test_past_windows_of_a_sliding_list_are_read_from_a_short_range():
    for start in range(40):
        update_messages("bare", [SYSTEM, *(UserMessage(str(n)) for n in range(start, start + 3))])
    last = Step.objects.get(memory="bare", n=40)
    assert last.last_stay - last.oldest == 2
    for step in (1, 20, 40):
        assert window(step) == "S" + "".join(str(n) for n in range(step - 1, step + 2))


def test_many_insertions_into_one_gap_keep_the_order():
    words = ["start", "end"]
    for number in range(30):
        words.insert(1, str(number))
        update_messages("bare", users(*words))
        assert [row.text for row in windows_reads.window("bare").rows] == words


def test_more_messages_return_than_a_query_takes(db):
    services.create("m", MessageWindow(100))
    said = numbered(100)
    services.set_messages("m", said)
    services.set_messages("m", [UserMessage("other")])
    values = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
    if connection.vendor == "sqlite":
        before = connection.connection.setlimit(values, 40)
    try:
        services.set_messages("m", said)
    finally:
        if connection.vendor == "sqlite":
            connection.connection.setlimit(values, before)
    assert [row.seq for row in windows_reads.window("m").rows] == list(range(1, 101))
    assert conversations.memory("m").said_count == 101
    assert verify("m") is None


class HeldStore(ChatMemoryStore):
    """A store that gives the list that was read last, however old it is."""

    def __init__(self) -> None:
        self.held: list[ChatMessage] = []

    def get_messages(self, memory_id):
        return list(self.held)

    def update_messages(self, memory_id, messages):
        self.held = list(messages)
        update_messages(memory_id, messages)

    def delete_messages(self, memory_id):
        raise NotImplementedError


@pytest.mark.parametrize("limit", [2, 5, 20])
@pytest.mark.parametrize("rereads", [True, False], ids=["fresh copies", "own copies"])
def test_messages_of_several_writers_are_in_the_history_once(limit, rereads):
    """The last writer wins. A message that another one displaced returns, and is not said again."""
    random = Random(limit)
    stores = [HeldStore() for _ in range(WRITERS)]
    memories = [MessageWindowChatMemory("shared", limit, store) for store in stores]
    has_read = [False] * WRITERS
    said = 0
    while said < ADDS:
        writer = random.randrange(WRITERS)
        if rereads and not has_read[writer]:
            stores[writer].held = get_messages("shared")
            has_read[writer] = True
            continue
        memories[writer].add(UserMessage(f"message {said}"))
        has_read[writer] = False
        said += 1
    assert history_reads.all_messages("shared") == numbered(ADDS)
    assert conversations.memory("shared").said_count == ADDS
    assert verify("shared") is None
