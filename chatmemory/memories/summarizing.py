"""A memory that replaces its oldest messages by a summary, which your own code writes.

    memory = SummarizingChatMemory("order-7741", 8000, summarize, keep_tokens=2000, store=store)

This library calls no model: `summarize` gets the messages and returns a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Unpack

from chatmemory.exceptions import InvalidMessage, InvalidValue, NotCompactable
from chatmemory.memories.limited import TokenWindowChatMemory
from chatmemory.memories.memory import Limit
from chatmemory.messages.estimators import TokenCountEstimator
from chatmemory.messages.message import ChatMessage
from chatmemory.recall.facts import LIMIT
from chatmemory.recall.summary_plan import SummaryPlan
from chatmemory.windows.compaction import (
    check_covered,
    compact_with_terms,
    messages_of,
    summary_message,
)
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import TokenWindowOptions
from chatmemory.windows.store import ChatMemoryStore, Decide
from chatmemory.windows.transitions import Change, Transition, recovered, unchanged
from chatmemory.windows.window import Entry, Window

Summarize = Callable[[list[ChatMessage]], str]


# The reason why an add evicted messages, for the note of its step
NO_SUMMARY = "No summary took their place: none was there yet."
WRITING = "No summary took their place: it was still being written."
FAILED = "No summary took their place: the last one failed ({error})."

# Summaries that are being written in this process, by store and memory id
_written: set[tuple[int, str]] = set()
_guard = Lock()


class SummarizingChatMemory(TokenWindowChatMemory):
    """A token window that replaces its oldest messages by a summary before it is full.

    - `summarize`: your function that returns the text of a summary. It gets all messages, except a
      leading system message, pinned messages, and the newest messages.
    - `start_at`: the share of `max_tokens` above which `summarize` is called after an add.
    - `keep_tokens`: the newest messages that fit into this number of tokens are not summarized. The
      default is a quarter of `max_tokens`.
    - `append_terms`: up to this number of exact terms that the summary lacks are appended to the
      summary if the limit leaves room for them. With `index_terms`, the index message lists these
      terms instead.

    `summarize` runs outside any transaction, and only once at a time for each memory in a process.
    If `summarize` fails, the error is logged, and the added messages stay stored. If one of the
    summarized messages has left memory meanwhile, the summary is dropped.

    Without a summary, messages are evicted as in a plain token window. In a store with a ledger,
    the note of the step says why there was no summary.
    """

    def __init__(
        self,
        id: str,
        max_tokens: Limit,
        summarize: Summarize,
        keep_tokens: int | None = None,
        append_terms: int = LIMIT,
        start_at: float = 0.8,
        estimator: TokenCountEstimator | None = None,
        store: ChatMemoryStore | None = None,
        **options: Unpack[TokenWindowOptions],
    ) -> None:
        super().__init__(id, max_tokens, estimator, store, **options)
        if not callable(summarize):
            raise InvalidValue("summarize must be a function that takes messages and returns text")
        if not 0 < start_at <= 1:
            raise InvalidValue(
                "start_at must be a share of max_tokens above 0 and at most 1, such as 0.8"
            )
        self._summarize, self._start_at = summarize, start_at
        self._keep_tokens, self._append_terms = keep_tokens, append_terms
        self._missing = NO_SUMMARY

    def add(self, message: ChatMessage, *more: ChatMessage) -> None:
        super().add(message, *more)
        self.summarize_if_full()

    def extend(self, messages: Iterable[ChatMessage]) -> None:
        super().extend(messages)
        self.summarize_if_full()

    def _extend_at_once(self, messages: Iterable[ChatMessage]) -> None:
        super()._extend_at_once(messages)
        self.summarize_if_full()

    def summarize_if_full(self) -> bool:
        """Replace the oldest messages by a summary if memory is larger than the share `start_at` of
        its limit. Returns whether a summary was applied.

        If `summarize` raises, the error is logged and the result is False.
        """
        key = self._key
        with _guard:
            if key in _written:
                return False
            _written.add(key)
        try:
            is_put = self._summarize_now()
        except Exception as error:
            # Its class only: the text of an error may quote a message
            self._missing = FAILED.format(error=type(error).__name__)
            import logging

            logger = logging.getLogger(__name__)
            logger.exception(
                "memory %r was not summarized, so its messages stay as they are", self.id
            )
            return False
        else:
            self._missing = NO_SUMMARY
            return is_put
        finally:
            with _guard:
                _written.discard(key)

    async def asummarize_if_full(self) -> bool:
        return await self.in_thread(self.summarize_if_full)

    @property
    def _key(self) -> tuple[int, str]:
        return id(self._store), self.id

    def _transact(self, decisions: Iterable[Decide], reads: bool = True) -> None:
        super()._transact(map(self._noted, decisions), reads)

    def _noted(self, decide: Decide) -> Decide:
        """Return an add that notes why no summary replaced the messages, if the add evicts
        messages.
        """

        def noted(window: Window) -> Transition:
            transition = decide(window)
            if transition.change is not Change.ADD or not _makes_room(transition):
                return transition
            return transition._replace(note=WRITING if self._key in _written else self._missing)

        return noted

    def _summarize_now(self) -> bool:
        covered = self._covered()
        if not covered:
            return False
        replaced = messages_of(covered)
        text = self._summarize(list(replaced))
        if not isinstance(text, str):
            raise InvalidMessage(f"summarize must return a text, not {type(text).__name__}")
        summary_message(text)
        return self._put(replaced, text, self._plan.terms(covered, text))

    @property
    def _plan(self) -> SummaryPlan:
        policy = self.policy()
        kept = policy.limit // 4 if self._keep_tokens is None else self._keep_tokens
        appended = 0 if policy.indexed_terms else self._append_terms
        return SummaryPlan(keep_tokens=kept, append_terms=appended)

    def _covered(self) -> list[Entry]:
        """Return the messages that a summary should replace; [] while memory is not full enough."""
        policy, window = self.policy(), self._read_window()
        if policy.load(window.measure_with(policy)) <= self._start_at * policy.limit:
            return []
        entries, interrupted = recovered(window.with_messages(), policy)
        if interrupted and policy.load(policy.total(entries)) <= self._start_at * policy.limit:
            return []
        try:
            return self._plan.covered(entries)
        except NotCompactable:  # too few, or a call that awaits results
            return []

    def _put(self, replaced: Sequence[ChatMessage], text: str, terms: Sequence[str]) -> bool:
        policy, is_put = self.policy(), False

        def decide(window: Window) -> Transition:
            nonlocal is_put
            window.count_with(self._family, self._count)
            entries = window.with_messages()
            covered = _still_there(entries, replaced)
            if covered is None:
                return unchanged(window, policy)
            check_covered(entries, covered)
            is_put = True
            return compact_with_terms(window, covered, terms, summary_with, policy)

        def summary_with(some: Sequence[str]) -> Entry:
            return self._entry(summary_message(text, some))

        self._transact(self._then_indexed([decide], policy))
        return is_put


def _makes_room(transition: Transition) -> bool:
    """Return whether a change evicted older messages to make room."""
    arrived = {each.key for each in transition.arrivals}
    return any(
        each.reason is Reason.CAPACITY and each.entry.key not in arrived
        for each in transition.evictions
    )


def _still_there(entries: Sequence[Entry], messages: Sequence[ChatMessage]) -> list[Entry] | None:
    """Return the entries of these messages, in order. None if one of the messages has left."""
    rest = iter(entries)
    found = [
        next((entry for entry in rest if entry.message == message), None) for message in messages
    ]
    return [entry for entry in found if entry is not None] if None not in found else None
