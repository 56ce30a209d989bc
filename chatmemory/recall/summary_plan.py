"""The options of a compaction: which messages the summary replaces, and how many exact terms of
these messages are appended to the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from chatmemory.exceptions import InvalidValue, MessageNotFound, NotCompactable
from chatmemory.messages.field_checks import brief
from chatmemory.messages.message import ChatMessage
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.windows.compaction import (
    all_but_last,
    check_covered,
    compact_with_terms,
    messages_of,
    summary_message,
)
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Transition, recovered
from chatmemory.windows.window import Entry, Window


class SummaryOptions(TypedDict, total=False):
    """The options of a compaction. Exactly one of the first three must be given.

    - `covering`: the messages to replace: their positions in a memory object, or their seqs in a
      stored conversation.
    - `keep_last`: how many of the newest messages stay.
    - `keep_tokens`: the newest messages that fit into this many tokens stay.
    - `append_terms`: how many exact terms to append to the summary.
    """

    covering: Collection[int] | None
    keep_last: int | None
    keep_tokens: int | None
    append_terms: int


@dataclass(frozen=True)
class SummaryPlan:
    """The checked options of a compaction (see `SummaryOptions`). Raises InvalidValue for invalid
    options.

    `covering` has positions in the window, from 0. If a method is called with `numbers`, such as
    seqs, `covering` has the numbers of the messages instead of positions.
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
            raise InvalidValue("give exactly one of covering, keep_last and keep_tokens")
        for name, value in {**chosen, "append_terms": self.append_terms}.items():
            _check_numbers(name, value)

    def covered(
        self, entries: Sequence[Entry], numbers: Sequence[int] | None = None
    ) -> list[Entry]:
        """Return the entries of a window that the summary replaces. The messages of all entries
        must be loaded.

        `numbers` has one number for each entry, such as its seq. By default, the number is the
        position of the entry. `covering` says by these numbers which entries to replace. Raises
        MessageNotFound if `covering` has a number that no entry has, and NotCompactable if one
        summary cannot replace these entries.
        """
        if self.covering is None:
            covered = all_but_last(entries, messages=self.keep_last, tokens=self.keep_tokens)
        else:
            chosen = set(self.covering)
            numbered = list(zip(numbers or range(len(entries)), entries, strict=True))
            for number in sorted(chosen - {number for number, _ in numbered})[:1]:
                raise MessageNotFound(
                    f"message #{number} is not in memory, so no summary can replace it"
                )
            covered = [entry for number, entry in numbered if number in chosen]
        check_covered(entries, covered)
        return covered

    def terms(self, covered: Iterable[Entry], text: str, words: Words = NO_WORDS) -> list[str]:
        """Return the exact terms to append to a summary: at most `append_terms` terms of the
        replaced messages that `text` does not contain. The most important terms come first (see
        `dropped_terms`).

        - `covered`: the entries of the replaced messages.
        - `text`: the text of the summary.
        - `words`: the project's additions to what counts as a fact.
        """
        if not self.append_terms:
            return []
        from chatmemory.recall.compactions import dropped_terms  # many programs compact nothing

        return dropped_terms(messages_of(covered), text, self.append_terms, words=words)

    def transition(
        self,
        window: Window,
        text: str,
        entry_of: Callable[[ChatMessage], Entry],
        policy: Policy | None,
        *,
        numbers: Sequence[int] | None = None,
        words: Words = NO_WORDS,
    ) -> Transition:
        """Return the transition that replaces messages of a window by a summary with this text.

        - `entry_of`: makes an entry from the summary message, and counts its tokens.
        - `numbers`: one number for each entry of the window, as in `covered`.
        - `words`: the project's additions to what counts as a fact.

        Raises MessageNotFound, InvalidMessage, NotCompactable.
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
    """Raise NotCompactable if `covering` has a message of an interrupted tool call."""
    for number, entry in numbered:
        if entry in interrupted and number in (covering or ()):
            raise NotCompactable(
                f"#{number} belongs to a tool call that was not answered completely: the model "
                "does not see it, and no summary can replace it"
            )


def _check_numbers(name: str, value: object) -> None:
    numbers = [value]
    if name == "covering" and isinstance(value, Collection) and not isinstance(value, str):
        numbers = [*value]
    if not all(type(number) is int and number >= 0 for number in numbers):
        expected = "a list of whole numbers" if name == "covering" else "a whole number from 0 on"
        raise InvalidValue(f"{name} must be {expected}, not {brief(value)}")
