"""How messages begin, as people read them, without reading all of them."""

from __future__ import annotations

import tracemalloc
from itertools import product

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.models import Message
from chatmemory.queries.conversation_state import beginnings, calls_in

pytestmark = [pytest.mark.django_db, pytest.mark.database]

FIND = ToolExecutionRequest("1", "find", '{"order": "A-1"}')


def test_beginnings_are_those_that_people_read():
    services.create("m", MessageWindow(20))
    said = [
        SystemMessage("Be brief."),
        UserMessage("where is it?"),
        AiMessage('"toolExecutionRequests":[{ is what I say'),
        AiMessage("I look.", (FIND,)),
        AiMessage(None, (None, ToolExecutionRequest())),
        ToolExecutionResultMessage("1", "find", "sent"),
    ]
    services.add("m", said)
    assert beginnings("m", range(1, 7), 30) == {
        1: "Be brief.",
        2: "where is it?",
        3: '"toolExecutionRequests":[{ is ',
        4: 'I look.\nfind(order: "A-1")',
        5: "()",
        6: "find sent",
    }


def test_long_texts_are_not_read_whole():
    words = "word " * 100_000
    said = [SystemMessage(words), UserMessage(words), AiMessage(words)]
    services.create("m", MessageWindow(20))
    services.add("m", [*said, ToolExecutionResultMessage("1", "find", words)])
    tracemalloc.start()
    found = beginnings("m", (1, 2, 3, 4), 80)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == dict.fromkeys((1, 2, 3), words[:80]) | {4: f"find {words}"[:80]}
    assert peak < 250_000


def test_the_calls_of_a_window_are_counted():
    entries = [None, ToolExecutionRequest(), ToolExecutionRequest("1", "look", '{"a": [{}, {}]}')]
    lists = [each for n in (1, 2, 3) for each in product(entries, repeat=n)]
    said = [AiMessage("said [null", each) for each in lists]
    services.import_conversation("calls", said, MessageWindow(100))
    rows = queries.outline("calls").rows
    assert calls_in("calls", rows) == {n: len(each) for n, each in enumerate(lists, 1)}
    Message.objects.filter(memory_id="calls", seq=2).update(frame="{")
    assert calls_in("calls", rows)[2] == 1, "one that cannot be read"
