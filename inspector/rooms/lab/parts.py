"""The lab's parts of the conversation page: what the conversation costs, and what an eviction costs
in the next prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chatmemory.ledger.changes import ChangeResult
from chatmemory.reading.rows import MessageDetail
from chatmemory.testing.snippets import cost
from inspector.conversation.as_test import copied_test
from inspector.shell.advice import advice_of
from inspector.shell.room import Part, Place
from inspector.shell.rooms import page_url
from inspector.shell.state import ConversationState


class Rebilled(NamedTuple):
    """What an eviction means for the next prompt, in tokens. `freed` is the size of the evicted
    messages.

    The messages after the first evicted message are no longer in the prefix shared with the
    previous prompt. They are billed at the full price again; `again` is their size.
    """

    freed: int
    again: int


def parts(view: ConversationState) -> Iterator[Part]:
    """Yield the lab's parts of the conversation page: advice about the conversation's cost, and
    what an eviction costs in the next prompt.
    """
    card = None if view.is_simulated or not view.is_live else advice_of(view)
    if card and card.is_worth_a_line:
        yield Part("rooms/lab/_conversation.html", {"card": card}, Place.REPORT_BESIDE)
    if view.selection.row:
        yield from _bills(view, view.selection.row)


def _bills(view: ConversationState, message: MessageDetail) -> Iterator[Part]:
    """Yield what an eviction costs in the next prompt, if the selected message left memory at the
    shown step to make room.

    Nothing is yielded if no tokens are billed again.
    """
    change = view.selection.left_by
    left = change.eviction_of(message.seq) if change else None
    if change is None or left is None or view.is_simulated or change.step != view.step.n:
        return
    bill = rebilled(view, change)
    if left.reason.is_for_room and bill.again:
        asserted = [cost(at_most=1.0)]
        test = copied_test(view.memory.id, change.policy, "costs no more than everything", asserted)
        context = {"bill": bill, "compare": page_url("compare", view.memory.id), "test": test}
        yield Part("rooms/lab/_billed.html", context, Place.BELOW_TEXT)


def rebilled(view: ConversationState, change: ChangeResult) -> Rebilled:
    """Return how many tokens an eviction freed, and how many tokens the next prompt bills again.

    The messages after the first evicted message are billed again, except messages that were added
    at the step of the eviction.
    """
    first = min(each.seq for each in change.evicted)
    arrived = {row.seq for row in view.window.rows if row.entered_step == change.step}
    behind = (row for row in view.window.rows if row.seq > first and row.seq not in arrived)
    return Rebilled(sum(each.tokens for each in change.evicted), sum(row.tokens for row in behind))
