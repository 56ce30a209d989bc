"""Verifies an index, the message in memory that lists terms of evicted messages.

The index is computed again from the previous index, the evicted messages and the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from chatmemory import database
from chatmemory.contradictions import expect, stay_name
from chatmemory.ledger.windows import shown_message
from chatmemory.messages.estimators import TokenCountEstimator, count_tokens
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory, Message, Step
from chatmemory.recall.index import Left, chosen, index_of, indexed
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Entry, Window

AT_ONCE = 500  # messages


class Made(NamedTuple):
    """How a new index comes into the window. `place` is its position, and `evictions` are the
    messages that leave because of it.
    """

    place: int
    evictions: tuple[Eviction, ...]


def left_for(entry: Entry, before: Sequence[tuple[str, list[Entry]]]) -> list[Entry]:
    """Return the messages whose eviction led to the index in `entry`.

    `before` has the last two steps before the index, the newest first. Each is a pair: the kind of
    the step, and the messages that the step evicted. The evicted messages of the newest step are
    returned. Tool results that the older step cleared come before them, if the field `of` of the
    index has their seqs.
    """
    index = index_of(entry.message)
    of = sorted(index.of) if index else []
    found = [before[0][1]] if before else []
    if len(before) > 1 and before[1][0] == Step.Kind.CLEAR_RESULTS:
        found.append([*before[1][1], *found[0]])
    fitting = (each for each in found if sorted(one.seq for one in each) == of)
    return next(fitting, found[0] if found else [])


def made_again(
    memory: Memory,
    window: Window,
    left: Sequence[Entry],
    entry: Entry,
    policy: Policy,
    estimator: TokenCountEstimator,
    *,
    is_chosen: bool,
) -> Made | None:
    """Compute the index in `entry` again. Return its position in the window, and the evictions that
    it causes.

    - `window`: the window before the index came.
    - `left`: the messages whose eviction led to the index.
    - `is_chosen`: whether the index was made because somebody left a term out or listed a term
      again.

    Raises Contradicted if the computed index differs. Returns None if a message of the window, of
    `left` or of `entry` was redacted, because the index cannot be computed then.
    """
    seqs = {each.seq for each in (*window, *left, entry)}
    rows = {
        row.seq: row
        for part in database.parts_of(dict.fromkeys(seqs, 1), AT_ONCE)
        for row in Message.objects.filter(database.in_list("seq", part), memory=memory)
    }
    if any(row.redacted_step is not None for row in rows.values()):
        return None

    def with_message(each: Entry) -> Entry:
        return replace(each, message=shown_message(rows[each.seq], each.overrides))

    def counted(message: ChatMessage) -> Entry:
        return Entry.of(message, count_tokens(estimator, message))

    gone = [Left(message, each.seq) for each in left if (message := with_message(each).message)]
    shown, read = with_message(entry).message, Window(map(with_message, window))
    if is_chosen:
        index = index_of(shown)
        made = chosen(read, index.left_out if index else (), policy, counted)
    else:
        made = indexed(read, gone, policy, counted)
    new = next((each for each in made.arrivals if not each.n), None)
    expect(stay_name(entry.n, entry.seq), "the index", shown, new.message if new else None)
    assert new is not None
    return Made(list(made.arrivals).index(new), made.evictions)
