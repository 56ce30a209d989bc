"""Finds and explains the limit that would have kept a message in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chatmemory.explain.reasons import Explanation
from chatmemory.explain.wording import counted, in_unit
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.messages.texts import named
from chatmemory.models import Message, Step
from chatmemory.reading.replay import READ_AT_ONCE, changes_until, entries_of, first_that_counts
from chatmemory.reading.rows import MessageDetail
from chatmemory.recall.comparison import MOST_FOLLOWED
from chatmemory.recall.loads import MOST_ADDS, Keeping, evicts_oldest_first, smallest_limit
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry
from inspector.shell import rooms
from inspector.shell.state import ConversationQuery, ConversationState, KeepingLimit

# The most messages that a page replays on its own if they are counted again, because the
# conversation changed its estimator.
COUNTED_AT_ONCE = 500
SECTION = "kept"  # the name of the folded section
QUESTION = "Which limit would have kept this message?"
NOT_INSTALLED = Explanation(
    QUESTION, "Not known.", "The policy that was in force is not installed here."
)
TRIED_TOO_LONG = (
    "For this policy, limits must be tried one by one, and this history is too long for that."
)


def asks_for_limit(query: ConversationQuery) -> bool:
    """Return whether the page must find the limit that would have kept the selected message. True
    if the section about this limit is unfolded, or if the URL asks for a replay.
    """
    return SECTION in query.open or query.replay


def left_for_room(view: ConversationState) -> bool:
    """Return whether the selected message left memory because the limit was reached, alone or
    together with its tool call or the beginning of its turn.
    """
    row, left_by = view.selection.row, view.selection.left_by
    return row is not None and left_by is not None and _left_for_want_of_room(row, left_by)


def find_keeping_limit(view: ConversationState) -> KeepingLimit | None:
    """Return the limit that would have kept the selected message in memory until the message was
    needed again. If no need is known, the limit must keep the message until the shown step.

    A long history is replayed only if the URL asks for the replay. Otherwise the result has no
    limit yet, and `deferred` is the number of messages to replay. A policy that only measures
    (`meters_only`) is replayed as if its limit were enforced.

    The result is None in these cases:

    - No message is selected, or the message is not in history.
    - The message is still in memory, or left for another reason than the limit, such as a client's
      decision.
    - There is no policy, or its kind is not installed.
    """
    row, left_by, step = view.selection.row, view.selection.left_by, view.stored.step
    if row is None or left_by is None or not _left_for_want_of_room(row, left_by):
        return None
    need = rooms.next_need(view)
    needed = need.incident if need else None
    step = find_step(view.stored.memory, needed.step) if needed else step
    if not can_decide(step.policy):
        return None
    policy, last_seq = step.policy.enforced(), needed.again - 1 if needed else step.last_seq
    kinds, is_recounted = changes_until(step)
    answer = KeepingLimit(
        row.seq,
        step.n,
        policy,
        message_count=step.said_count - (step.last_seq - last_seq),
        need=need,
        leaves_out_changes=not kinds.isdisjoint((Step.Kind.SET, Step.Kind.CLEAR)),
        leaves_out_pins=Step.Kind.PIN in kinds,
    )
    first = first_that_counts(row) if evicts_oldest_first(policy) else 1
    amount = last_seq - first + 1
    if amount > (COUNTED_AT_ONCE if is_recounted else READ_AT_ONCE) and not view.query.replay:
        return replace(answer, deferred=amount)
    entries = entries_of(step.memory_id, range(first, last_seq + 1), policy, is_recounted)
    return replace(answer, keeping=_limit_for(answer, entries))


def _limit_for(answer: KeepingLimit, entries: Sequence[Entry]) -> Keeping | None:
    """Return the smallest limit under which the message is in memory after all of these entries."""
    position = next(i for i, entry in enumerate(entries) if entry.seq == answer.seq)
    most_adds = MOST_FOLLOWED if answer.needed else MOST_ADDS
    return smallest_limit(entries, position, answer.policy, most_adds)


def _left_for_want_of_room(row: MessageDetail, left_by: ChangeResult) -> bool:
    if left_by.by_client or row.origin != Message.Origin.SAID:
        return False
    eviction = left_by.eviction_of(row.seq)
    return eviction is not None and eviction.reason.is_for_room


# Its words


def explain_keeping_limit(answer: KeepingLimit) -> Explanation:
    """Explain in words which limit would have kept a message, and that raising the limit now comes
    too late.
    """
    return Explanation(QUESTION, _cause(answer), " ".join(_details(answer)))


def _cause(answer: KeepingLimit) -> str:
    if answer.keeping is None:
        return "Not known." if not answer.deferred else "Not computed yet."
    unpinned = ", with nothing pinned" if answer.leaves_out_pins else ""
    if answer.keeping.limit is None:
        return f"No limit{unpinned}."
    if answer.is_within_limit:
        return f"The same limit{unpinned or ' from the first message on'}."
    about = "about " if answer.keeping.tried_every > 1 else ""
    return f"A limit of {about}{in_unit(answer.keeping.limit, answer.policy)} or more{unpinned}."


def _details(answer: KeepingLimit) -> Iterator[str]:
    keeping = answer.keeping
    if keeping is None and answer.deferred:
        yield f"The page must replay {counted(answer.deferred, 'message')} to find the limit."
    elif keeping is None:
        yield TRIED_TOO_LONG
    elif keeping.limit is None:
        held = f"memory would not hold #{answer.seq} {_moment(answer)}"
        yield f"Even with room for everything, {held}."
    else:
        limit = "that limit"
        if answer.is_within_limit:
            limit = f"{in_unit(keeping.limit, answer.policy)} or more"
        yield (
            f"With {limit} from the first message on, #{answer.seq} would still be in memory "
            f"{_moment(answer)}."
        )
        if keeping.tried_every > 1:
            yield f"Limits were tried in steps of {keeping.tried_every:,}."
        yield from _for_the_fact(answer, keeping.limit)
    if answer.leaves_out_changes:
        yield "The replay ignores that memory was also cleared or replaced."
    if answer.leaves_out_pins and keeping is not None:
        yield "The replay ignores pins: beside pinned messages, a larger limit is needed."
    if answer.need and answer.needed is None:
        yield f"Up to step {answer.need.until:,}, #{answer.seq} was not needed again."
    yield f"A higher limit now does not bring #{answer.seq} back."


def _moment(answer: KeepingLimit) -> str:
    """Name the moment until which a limit would have kept a message: its next use, or a step."""
    if answer.needed is None:
        return f"at step {answer.step:,}"
    return f"just before {named(answer.needed.again)}, in which {_subject(answer)} came up again"


def _subject(answer: KeepingLimit) -> str:
    """Name the forgotten fact, or the result of a call."""
    fact = answer.need.fact.fact if answer.need and answer.need.fact else ""
    return fact or f"the result of {answer.needed.what}" if answer.needed else fact


def _for_the_fact(answer: KeepingLimit, limit: int) -> Iterator[str]:
    """Yield a sentence if a lower limit was enough to keep the forgotten fact, because a later
    message mentions the fact too.
    """
    fact = answer.need.fact if answer.need else None
    least = fact.keeping.limit if fact and fact.keeping else None
    if fact and least and least != limit and fact.last != answer.seq:
        enough = in_unit(least, answer.policy)
        also = f"{named(fact.last)} mentions it too"
        yield f"A limit of {enough} was enough for {_subject(answer)}: {also}."
