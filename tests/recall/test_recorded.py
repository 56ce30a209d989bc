"""The predicted share that a cache saves, compared with recorded usage; and advice if nothing can
be recommended.
"""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, UserMessage
from chatmemory.recall.history import history_from
from chatmemory.reports.recorded import RecordedCall, shares, used_in


def answer(read: int, written: int, fresh: int) -> AiMessage:
    usage = {
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "input_tokens": fresh,
    }
    return AiMessage("Hm.", attributes={"claude_code": {"usage": usage}})


def test_messages_since_the_previous_call_are_new_and_misses_are_counted_apart():
    said = [UserMessage("a"), answer(0, 900, 0), UserMessage("b"), answer(900, 95, 5)]
    said += [UserMessage("c"), AiMessage("not recorded"), answer(0, 1_000, 10)]
    history = history_from(said, [10] * 7, 0, range(1, 8), times=[0, 1, 2, 3, 4, 5, 900])
    calls = list(used_in(said, history))
    assert calls == [RecordedCall(1_000, 900, 20, 2), RecordedCall(1_010, 0, 30, 897)]
    assert shares(calls) == (1, pytest.approx(0.9), pytest.approx(0.98))
    assert shares([]) == (0, 0, 0)
