"""A file of a long conversation with hostile texts is made quickly, and delays no other request."""

from __future__ import annotations

from threading import Thread
from time import perf_counter, process_time, sleep

import pytest

from chatmemory import MessageWindow, UserMessage, services
from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.evidence_file.reads import evidence

from ...growth.texts import text_of

SHAPES = ("hexadecimal", "a-", "+1", "@", "one long word")
MESSAGES, EVERY, LENGTH = 10_000, 20, 60_000
MOST, DELAY = 3.0, 0.2  # seconds


@pytest.fixture
def hostile(db) -> str:
    """One message in twenty has 60 kB of a hostile shape."""
    said = [
        UserMessage(text_of(SHAPES[n // EVERY % 5], LENGTH) if n % EVERY == 0 else f"message {n}")
        for n in range(MESSAGES)
    ]
    services.import_conversation("hostile", said, MessageWindow(300))
    return "hostile"


@pytest.mark.long
def test_the_file_is_made_in_seconds_and_delays_no_other_request(hostile):
    longest, done = 0.0, False

    def ask_meanwhile() -> None:
        nonlocal longest
        while not done:
            began = perf_counter()
            sleep(0.01)
            longest = max(longest, perf_counter() - began - 0.01)

    thread = Thread(target=ask_meanwhile)
    thread.start()
    began = process_time()
    masker = Masker(Choice(frozenset(KINDS), ("Ada Lovelace", "it is")))
    found = evidence(hostile, None, masker)
    took = process_time() - began
    done = True
    thread.join()
    assert len(found.data["messages"]) > 800
    assert took < MOST
    assert longest < DELAY
