"""A verification agrees with whatever was done, in any order; see also tests/attack."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import with_attributes
from chatmemory.models import Stay
from chatmemory.reading import windows

from ..any_operations import accusation

pytestmark = pytest.mark.database

# Seeds after which earlier versions accused what they had done themselves, with the share of
# policies that recover interrupted calls
ACCUSED = ((1, 0), (2, 0), (21, 0), (25, 0), (32, 0), (36, 0), (179, 0.3))


@pytest.mark.parametrize(("seed", "recovers"), ACCUSED)
def test_a_seed_that_was_accused_is_not(db, seed, recovers):
    assert accusation(seed, 45, recovers=recovers) == ""


def result(n: int, words: str = "The parcel was seen in Porto. ") -> list:
    return [
        AiMessage(None, (ToolExecutionRequest(str(n), "find", "{}"),)),
        ToolExecutionResultMessage(str(n), "find", words * 10),
    ]


@pytest.fixture
def cleared(db) -> str:
    """A conversation whose first result was redacted and then cleared."""
    services.create("m", TokenWindow(180, clear_tool_results=1))
    services.add("m", [UserMessage("Where is it?"), *result(1)])
    services.redact("m", 3)
    services.add("m", result(2))
    return "m"


def stub() -> Stay:
    return Stay.objects.filter(memory="m", seq=3).latest("n")


def test_a_redacted_result_that_is_cleared_shows_its_tombstone(cleared):
    assert verify(cleared) is None
    (row,) = [row for row in windows.window(cleared).rows if row.seq == 3]
    assert row.text == "[redacted #3]"
    assert row.tokens < 20, "the words of the tombstone are counted"
    assert stub().overrides == '{"stub": true}'


def test_its_stub_stays_one_when_it_is_pinned_moved_and_counted_again(cleared):
    services.change(cleared, policy=TokenWindow(500, clear_tool_results=1))
    services.pin(cleared, 3)
    services.unpin(cleared, 3)
    services.change(cleared, policy=TokenWindow(500, estimator="gpt-4"))
    assert stub().overrides == '{"stub": true}'
    assert verify(cleared) is None


def test_a_result_that_is_redacted_after_it_was_cleared_stays_a_stub(db):
    services.create("m", TokenWindow(180, clear_tool_results=1))
    services.add("m", [UserMessage("Where is it?"), *result(1), *result(2)])
    services.redact("m", 3)
    services.change("m", policy=TokenWindow(500, clear_tool_results=1))
    services.pin("m", 3)
    assert stub().overrides == '{"stub": true}'
    assert verify("m") is None


def test_a_stub_whose_attributes_a_client_changes_stays_a_stub(db):
    services.create("m", TokenWindow(180, clear_tool_results=1))
    services.add("m", [UserMessage("Where is it?"), *result(1), *result(2)])
    listed = list(windows.window("m").messages)
    listed[2] = with_attributes(listed[2], {"a": 1})
    services.set_messages("m", listed)
    assert windows.window("m").messages[2] == listed[2]
    assert verify("m") is None


def test_words_in_the_overrides_of_a_redacted_result_are_named(cleared):
    Stay.objects.filter(memory="m", n=stub().n).update(overrides='{"stub": true, "x": 1}')
    assert verify(cleared) is not None
