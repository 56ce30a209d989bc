"""Compaction: a summary replaces messages, which leave the window and stay in the history.

A summary can replace any part of the window, and takes the position of the first replaced message.
Like a pinned message, the summary is never evicted. A later compaction can replace the summary in
turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from chatmemory.exceptions import (
    InvalidMessage,
    MessageTooLarge,
    NotCompactable,
)
from chatmemory.messages.message import ChatMessage, UserMessage
from chatmemory.windows.eviction import Eviction, Reason, group_starts, leading_system
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, total_under
from chatmemory.windows.transitions import Change, Transition, recovered
from chatmemory.windows.window import Entry, Window

_MARK = {"chatmemory": {"summary": True}}


def messages_of(entries: Iterable[Entry]) -> list[ChatMessage]:
    """Return the messages of window entries. Entries whose message is not loaded are left out."""
    return [entry.message for entry in entries if entry.message is not None]


def compact(
    window: Window,
    covered: Collection[Entry],
    summary: Entry,
    policy: Policy | None,
    place: int | None = None,
) -> Transition:
    """Return the transition in which `summary` replaces the `covered` messages.

    `place` is the number of remaining messages before the summary. By default, the summary takes
    the position of the first covered message. Raises NotCompactable if the window is over the
    policy's limit afterwards.
    """
    entries = list(window)
    chosen = set(covered)
    if place is None:
        place = next(i for i, entry in enumerate(entries) if entry in chosen)
    summary = replace(summary, pinned=True)
    kept = [entry for entry in entries if entry not in chosen]
    after = [*kept[:place], summary, *kept[place:]]
    left = tuple(
        Eviction(entry, Reason.SUMMARIZED, summary) for entry in entries if entry in chosen
    )
    transition = Transition(
        Change.COMPACT,
        before=window.totals,
        after=total_under(policy, after),
        policy=policy,
        policy_before=policy,
        arrivals=after,
        evictions=left,
    )
    if not can_decide(policy) or policy.meters_only:
        return transition
    seen = policy.total(recovered(after, policy)[0]) if policy.recovers else transition.after
    if policy.is_exceeded_by(seen):
        raise NotCompactable(
            f"with this summary memory would hold {policy.load(seen):,} of "
            f"{policy.limit:,} {policy.unit}: replace more messages, or write a shorter summary"
        )
    return transition


def compact_with_terms(
    window: Window,
    covered: Collection[Entry],
    terms: Sequence[str],
    summary_with: Callable[[Sequence[str]], Entry],
    policy: Policy | None,
) -> Transition:
    """Return the compaction whose summary lists as many of the exact `terms` as the limit allows.
    Without room for all terms, the last terms are left out.

    `summary_with` takes the terms to list and returns the summary as an entry with its token count.
    Raises NotCompactable or MessageTooLarge if there is no room even without terms.
    """

    def with_terms(count: int) -> Transition:
        return compact(window, covered, summary_with(terms[:count]), policy)

    def has_no_room(count: int) -> bool:
        with suppress(NotCompactable, MessageTooLarge):
            with_terms(count)
            return False
        return True

    # By bisection, since the whole summary is counted for each number of terms
    most = bisect_left(range(1, len(terms) + 1), True, key=has_no_room) if terms else 0
    return with_terms(most)


# The messages that a summary may cover


def check_covered(entries: Sequence[Entry], covered: Collection[Entry]) -> None:
    """Raise NotCompactable if a summary cannot replace the `covered` messages. `entries` is the
    whole window, with messages loaded.

    A summary replaces at least two messages. It cannot replace:

    - the leading system message;
    - a pinned message, unless it is an earlier summary;
    - a tool call without its results, or a result without its tool call;
    - a tool call that has fewer results than it needs.
    """
    chosen = set(covered)
    if len(chosen) < 2:
        raise NotCompactable("a summary must replace at least two messages")
    if leading_system(entries) in chosen:
        raise NotCompactable("the system message at the head stays: no summary can replace it")
    if any(entry.pinned and not is_summary(entry.message) for entry in chosen):
        raise NotCompactable("a summary cannot replace a pinned message: unpin the message first")
    for _, positions in groupby(range(len(entries)), key=group_starts(entries).__getitem__):
        group = [entries[position] for position in positions]
        if chosen.isdisjoint(group):
            continue
        if not chosen.issuperset(group):
            raise NotCompactable("a summary must replace a tool call together with its results")
        calls = getattr(group[0].message, "tool_execution_requests", ())
        if calls and len(group) <= len(calls):
            raise NotCompactable(
                "a summary cannot replace a tool call that waits for results: add the results first"
            )


def all_but_last(
    entries: Sequence[Entry], *, messages: int | None = None, tokens: int | None = None
) -> list[Entry]:
    """Return the messages that a summary replaces: all but the last messages. Pass either
    `messages`, the number of last messages that stay, or `tokens`, the most tokens that they may
    have together.

    A leading system message and pinned messages also stay, but an earlier summary is replaced. A
    tool call is not separated from its results, so more than `messages` messages may stay.
    """
    end = len(entries) - messages if messages is not None else _fitting(entries, tokens or 0)
    end = max(0, min(end, len(entries)))
    if messages is not None and 0 < end < len(entries):
        end = group_starts(entries)[end]
    leading = leading_system(entries)
    return [
        entry
        for entry in entries[:end]
        if entry != leading and (not entry.pinned or is_summary(entry.message))
    ]


def _fitting(entries: Sequence[Entry], tokens: int) -> int:
    """Return the index from which all later messages together have at most `tokens`. A tool call is
    not separated from its results.
    """
    starts = group_starts(entries)
    kept, position = 0, len(entries)
    while position:
        first = starts[position - 1]
        kept += sum(entry.tokens for entry in entries[first:position])
        if kept > tokens:
            return position
        position = first
    return position


# The message of a summary


def appended_terms(terms: Iterable[str]) -> str:
    """Return the text that is appended to a summary to preserve these exact terms: "Exact terms:
    …". "" if there are no terms.
    """
    text = "\n".join(terms)
    return f"Exact terms: {text}" if text else ""


def summary_message(text: str, terms: Iterable[str] = ()) -> UserMessage:
    """Return the summary as a user message: its text, followed by the exact terms to preserve.

    The message has an attribute by which `is_summary` recognizes it. In a store without pins, this
    attribute protects the summary from eviction. Raises InvalidMessage for a blank text.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidMessage("a summary must be a string that is not blank")
    body = "\n\n".join(filter(None, [text, appended_terms(terms)]))
    return UserMessage(body, attributes=_MARK)


def is_summary(message: ChatMessage | None) -> bool:
    """Return whether a message is a summary that chatmemory itself wrote into memory."""
    attributes = message.attributes if isinstance(message, UserMessage) else {}
    own = attributes.get("chatmemory")
    return isinstance(own, Mapping) and own.get("summary") is True


def is_marked(message: ChatMessage | None) -> bool:
    """Return whether chatmemory or LangChain has marked a message as a summary. LangChain's mark is
    `lc_source`.

    Source: SummarizationMiddleware of langchain, which sets `lc_source` in additional_kwargs.
    """
    attributes = message.attributes if isinstance(message, UserMessage) else {}
    return is_summary(message) or _has_source(attributes.get("langchain"))


def _has_source(value: object) -> bool:
    if isinstance(value, Mapping):
        source = value.get("lc_source")
        source = source.get("=") if isinstance(source, Mapping) else source
        return source == "summarization" or any(map(_has_source, value.values()))
    return isinstance(value, list) and any(map(_has_source, value))
