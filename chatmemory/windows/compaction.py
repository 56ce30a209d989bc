"""Compaction: a summary replaces messages, which leave the window and stay in history.

A summary can cover any part of the window. It takes the position of the first covered message, and
evictions pass over it, as over a pinned message. A later compaction can cover the summary in turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypedDict

from chatmemory.exceptions import (
    InvalidMessage,
    InvalidValue,
    MessageNotFound,
    MessageTooLarge,
    NotCompactable,
)
from chatmemory.messages.field_checks import brief
from chatmemory.messages.message import ChatMessage, UserMessage
from chatmemory.windows.eviction import Eviction, Reason, group_starts, leading_system
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, total_under
from chatmemory.windows.transitions import Change, Transition, recovered
from chatmemory.windows.window import Entry, Window

if TYPE_CHECKING:
    from chatmemory.recall.facts import Words

_MARK = {"chatmemory": {"summary": True}}


class SummaryOptions(TypedDict, total=False):
    """The options of a compaction.

    One of `covering`, `keep_last` and `keep_tokens` selects the messages to replace. `append_terms`
    is the number of exact terms to append to the summary.
    """

    covering: Collection[int] | None
    keep_last: int | None
    keep_tokens: int | None
    append_terms: int


@dataclass(frozen=True)
class SummaryPlan:
    """Checked SummaryOptions. Raises InvalidValue.

    `covering` are positions in the window, or other numbers for messages, as the caller chooses.
    """

    covering: Collection[int] | None = None
    keep_last: int | None = None
    keep_tokens: int | None = None
    append_terms: int = 0

    def __post_init__(self) -> None:
        options = {
            "covering": self.covering,
            "keep_last": self.keep_last,
            "keep_tokens": self.keep_tokens,
        }
        chosen = {name: value for name, value in options.items() if value is not None}
        if len(chosen) != 1:
            raise InvalidValue("give one of covering, keep_last and keep_tokens")
        for name, value in {**chosen, "append_terms": self.append_terms}.items():
            _check_numbers(name, value)

    def covered(
        self, entries: Sequence[Entry], numbers: Sequence[int] | None = None
    ) -> list[Entry]:
        """Return the entries of a window that the summary covers. The entries have their messages.

        `numbers` are the entries' numbers in `covering`, by default their positions. Raises
        MessageNotFound for another number, and NotCompactable.
        """
        if self.covering is None:
            covered = all_but_last(entries, messages=self.keep_last, tokens=self.keep_tokens)
        else:
            chosen = set(self.covering)
            numbered = list(zip(numbers or range(len(entries)), entries, strict=True))
            for number in sorted(chosen - {number for number, _ in numbered})[:1]:
                raise MessageNotFound(f"#{number} is not in the memory: it cannot be covered")
            covered = [entry for number, entry in numbered if number in chosen]
        check_covered(entries, covered)
        return covered

    def terms(self, covered: Iterable[Entry], text: str, words: Words | None = None) -> list[str]:
        """Return the terms to append to the text of a summary, the best one first.

        `words` are terms that count as facts although they hold no digit, by default none.
        """
        if not self.append_terms:
            return []
        from chatmemory.recall.compactions import dropped_terms
        from chatmemory.recall.facts import NO_WORDS

        return dropped_terms(messages_of(covered), text, self.append_terms, words=words or NO_WORDS)

    def transition(
        self,
        window: Window,
        text: str,
        entry_of: Callable[[ChatMessage], Entry],
        policy: Policy | None,
        *,
        numbers: Sequence[int] | None = None,
        words: Words | None = None,
    ) -> Transition:
        """Return the transition that puts a summary with this text into a window.

        `entry_of` counts its message. Raises MessageNotFound, InvalidMessage, NotCompactable.
        """
        entries = list(window.with_messages())
        shown, hidden = recovered(entries, policy)
        if numbers is not None:
            gone = {each.entry for each in hidden}
            _check_interrupted(self.covering, zip(numbers, entries, strict=True), gone)
            shown_numbers = zip(numbers, entries, strict=True)
            numbers = [number for number, entry in shown_numbers if entry not in gone]
        covered = self.covered(shown, numbers)
        has_index = policy is not None and policy.indexed_terms > 0
        terms = [] if has_index else self.terms(covered, text, words)

        def summary_with(some: Sequence[str]) -> Entry:
            return entry_of(summary_message(text, some))

        return compact_with_terms(Window(entries), covered, terms, summary_with, policy)


def _check_interrupted(
    covering: Collection[int] | None,
    numbered: Iterable[tuple[int, Entry]],
    interrupted: Collection[Entry],
) -> None:
    """Raise NotCompactable if a summary should cover a message of an interrupted tool call."""
    for number, entry in numbered:
        if entry in interrupted and number in (covering or ()):
            raise NotCompactable(
                f"#{number} belongs to a tool call that was not answered completely: the model "
                "does not see it, and no summary covers it"
            )


def _check_numbers(name: str, value: object) -> None:
    numbers = [value]
    if name == "covering" and isinstance(value, Collection) and not isinstance(value, str):
        numbers = [*value]
    if not all(type(number) is int and number >= 0 for number in numbers):
        expected = "a list of whole numbers" if name == "covering" else "a whole number from 0 on"
        raise InvalidValue(f"{name} must be {expected}, not {brief(value)}")


def messages_of(entries: Iterable[Entry]) -> list[ChatMessage]:
    """Return the messages of entries. Entries without a message are left out."""
    return [entry.message for entry in entries if entry.message is not None]


def compact(
    window: Window,
    covered: Collection[Entry],
    summary: Entry,
    policy: Policy | None,
    place: int | None = None,
) -> Transition:
    """Return the transition in which `summary` replaces the covered messages.

    With `place`, this number of remaining messages comes before the summary. Raises NotCompactable
    if the window is over its limit afterwards.
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
            f"{policy.limit:,} {policy.unit}: cover more messages, or write a shorter summary"
        )
    return transition


def compact_with_terms(
    window: Window,
    covered: Collection[Entry],
    terms: Sequence[str],
    summary_with: Callable[[Sequence[str]], Entry],
    policy: Policy | None,
) -> Transition:
    """Return the transition for a summary with as many of these terms as fit. The last terms are
    left out first.

    `summary_with` counts the summary with some terms, and may raise MessageTooLarge.
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
    """Raise NotCompactable for messages of a window that no summary can cover together.

    The entries have their messages.
    """
    chosen = set(covered)
    if len(chosen) < 2:
        raise NotCompactable("a summary covers at least two messages")
    if leading_system(entries) in chosen:
        raise NotCompactable("the leading system message cannot be covered: it stays as it is")
    if any(entry.pinned and not is_summary(entry.message) for entry in chosen):
        raise NotCompactable("a pinned message cannot be covered: unpin it first")
    for _, positions in groupby(range(len(entries)), key=group_starts(entries).__getitem__):
        group = [entries[position] for position in positions]
        if chosen.isdisjoint(group):
            continue
        if not chosen.issuperset(group):
            raise NotCompactable("a tool call and its results can only be covered together")
        calls = getattr(group[0].message, "tool_execution_requests", ())
        if calls and len(group) <= len(calls):
            raise NotCompactable("a tool call that awaits results cannot be covered")


def all_but_last(
    entries: Sequence[Entry], *, messages: int | None = None, tokens: int | None = None
) -> list[Entry]:
    """Return the messages that a summary covers if so many of the last messages, or tokens, stay.

    A leading system message and pinned messages stay, too, but an earlier summary is covered. A
    tool call stays with its results, so that more messages may stay than `messages`, and fewer
    tokens than `tokens`.
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
    """Return the position from which on all messages, in whole groups, take at most `tokens`."""
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
    """Return the text that appends terms to a summary, "" without terms."""
    text = "\n".join(terms)
    return f"Exact terms: {text}" if text else ""


def summary_message(text: str, terms: Iterable[str] = ()) -> UserMessage:
    """Return the summary as a message: its text, followed by the exact terms to preserve.

    An attribute marks the message as a summary. Stores that only know messages then keep its
    position. Raises InvalidMessage for a blank text.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidMessage("a summary must be a string that is not blank")
    body = "\n\n".join(filter(None, [text, appended_terms(terms)]))
    return UserMessage(body, attributes=_MARK)


def is_summary(message: ChatMessage | None) -> bool:
    """Return whether a message is the summary of a compaction."""
    attributes = message.attributes if isinstance(message, UserMessage) else {}
    own = attributes.get("chatmemory")
    return isinstance(own, Mapping) and own.get("summary") is True


def is_marked(message: ChatMessage | None) -> bool:
    """Return whether a client has marked a message as a summary, as LangChain does by `lc_source`.

    Source: SummarizationMiddleware of langchain, which sets it in additional_kwargs.
    """
    attributes = message.attributes if isinstance(message, UserMessage) else {}
    return is_summary(message) or _has_source(attributes.get("langchain"))


def _has_source(value: object) -> bool:
    if isinstance(value, Mapping):
        source = value.get("lc_source")
        source = source.get("=") if isinstance(source, Mapping) else source
        return source == "summarization" or any(map(_has_source, value.values()))
    return isinstance(value, list) and any(map(_has_source, value))
