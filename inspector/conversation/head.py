"""The head of a conversation page: its policy, and the sizes of history and memory."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from chatmemory.explain import wording
from chatmemory.reading.rows import StepRow
from chatmemory.reading.windows import WindowView
from chatmemory.windows.option_words import option_words
from chatmemory.windows.stored_policies import total_under
from chatmemory.windows.window import Totals
from inspector.conversation.costs import costs_by_step
from inspector.conversation.forecasts import over_limit
from inspector.conversation.measures import Amount, Gauge, Measure, history_totals, kept_totals
from inspector.shell.state import ConversationState


class Head:
    """Numbers at the top of a conversation page: the limit, and the sizes of history and memory.

    Subclasses provide the `state`.
    """

    state: ConversationState

    @property
    def window(self) -> WindowView:
        return self.state.window

    @cached_property
    def _measure(self) -> Measure:
        policy = self.window.policy
        return Measure.of(policy, costs_by_step(self.state.memory, policy))

    @property
    def limit(self) -> int | None:
        return self._measure.limit

    @property
    def unit(self) -> str:
        return self._measure.unit

    @cached_property
    def gauge(self) -> Gauge:
        return Gauge.of(self.window.policy, self.window.totals)

    @cached_property
    def over_limit(self) -> str:
        return over_limit(self.window)

    @property
    def policy_options(self) -> str:
        return ", ".join(option_words(self.window.policy))

    @property
    def _row(self) -> StepRow | None:
        return self.state.step.detail.row if self.state.step.detail else None

    @property
    def moment(self) -> datetime:
        """The time of the shown step; at step 0, the creation of the conversation."""
        return self._row.at if self._row else self.state.memory.created_at

    @property
    def said_count(self) -> int:
        """The number of messages in history up to the shown step, without drafts."""
        return self._row.said_count if self._row else 0

    @property
    def injected_count(self) -> int:
        """The number of messages in memory that are not in history, because a client put them
        there.
        """
        return len(self.state.contents.injected & self.state.in_window)

    @cached_property
    def kept(self) -> Amount:
        """The size of memory, without the messages that a lowered limit hides."""
        return self._measure.amount(self.window.totals)

    @cached_property
    def whole_history(self) -> Amount:
        """The size of the history at the newest step, even if the page shows an older step. The
        page uses this size to give its legend the same width at each step.
        """
        memory = self.state.memory
        most = Totals(memory.said_count, memory.history_tokens)
        return self._measure.amount(self._measure.history(memory.last_step, most))

    @property
    def policy_name(self) -> str:
        if self.window.policy is None and self.state.is_policy_unknown:
            return "Policy not recorded"
        return wording.policy_name(self.window.policy)

    @cached_property
    def history(self) -> Amount:
        """The size of the history up to the shown step, including drafts. Each message has the
        token count that it got when it was added.
        """
        return self._measure.amount(history_totals(self.state, self._measure))

    @property
    def is_recounted(self) -> bool:
        """Whether another estimator has counted messages in memory again since they were added.
        Cleared tool results are ignored.
        """
        return bool(self.state.contents.original_tokens.keys() - self.state.contents.cleared.keys())

    @property
    def hidden(self) -> Amount | None:
        """The size of the messages that a lowered limit hides until the next add; None if no
        message is hidden.
        """
        window = self.window
        return self._difference(self._limited, window.totals) if window.over_limit else None

    @property
    def interrupted(self) -> Amount | None:
        """The size of interrupted tool calls with their results, which are hidden from the model;
        None if there are none.
        """
        window = self.window
        return self._difference(window.stored, self._limited) if window.interrupted else None

    @property
    def _limited(self) -> Totals:
        """The totals of all messages in memory except interrupted tool calls. Messages that a
        lowered limit hides are included.
        """
        window = self.window
        rows = window.rows + window.over_limit if window.interrupted else window.in_order
        return total_under(window.policy, rows)

    @property
    def forgotten(self) -> Amount:
        """The size of the messages in history that are not in memory. Messages that a lowered limit
        hides are not included, nor are interrupted tool calls with their results.

        Each message has the token count that it got when it was added. For a cleared tool result in
        memory, the tokens that the clearing saved are included.
        """
        return self._difference(
            history_totals(self.state, self._measure), kept_totals(self.state, self._measure)
        )

    def _difference(self, whole: Totals, part: Totals) -> Amount:
        load = self._measure.load(whole) - self._measure.load(part)
        return self._measure.amount_of(load, whole.tokens - part.tokens)
