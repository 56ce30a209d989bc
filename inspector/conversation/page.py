"""The conversation page: its head, its panes and its links."""

from __future__ import annotations

from functools import cached_property

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import explain
from chatmemory.explain import Caption
from chatmemory.queries import ConversationState, MessageRow
from inspector.conversation.history import HistoryPane
from inspector.conversation.measures import limit_of, load_in, short_unit
from inspector.conversation.memory import MemoryPane
from inspector.conversation.panel import Panel
from inspector.conversation.simulation import SimulationView
from inspector.conversation.timeline import Timeline, draw

NEW_ID_LENGTH = 200


class ConversationPage:
    """The presenter of a state for the page."""

    def __init__(self, state: ConversationState) -> None:
        self.state = state
        self.memory = state.memory
        self.window = state.window
        self.at = state.at
        self.msg = state.query.msg
        self.find = state.query.find
        self.is_live = state.is_live
        self.is_simulation = state.is_simulated

    @cached_property
    def history_pane(self) -> HistoryPane:
        return HistoryPane(self.state)

    @cached_property
    def memory_pane(self) -> MemoryPane:
        return MemoryPane(self.state)

    @cached_property
    def panel(self) -> Panel:
        return Panel(self.state)

    @cached_property
    def timeline(self) -> Timeline:
        return draw(self.state)

    @cached_property
    def simulation(self) -> SimulationView | None:
        return SimulationView(self.state) if self.is_simulation else None

    @property
    def drafts(self) -> tuple[MessageRow, ...]:
        return self.state.drafts

    @property
    def pane(self) -> str:
        """The pane that a phone shows first: history, why or memory."""
        if self.state.query.before is not None or self.state.query.after is not None:
            return "history"
        return "why" if self.msg or self.find else "memory"

    # The head of the page

    @property
    def policy_name(self) -> str:
        return explain.policy_name(self.window.policy)

    @property
    def limit(self) -> int | None:
        return limit_of(self.state)

    @property
    def unit(self) -> str:
        return short_unit(self.window.policy)

    @property
    def load(self) -> int:
        return load_in(self.window)

    @property
    def fill(self) -> float:
        """The gauge's bar in percent."""
        return min(100.0, round(100 * self.load / self.limit, 1)) if self.limit else 0

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.load > self.limit

    @property
    def said_count(self) -> int:
        """The number of messages in the history at this step, without drafts."""
        return self.state.detail.row.said_count if self.state.detail else 0

    @property
    def history_load(self) -> int:
        """The load of the history at this step, with the drafts, in the policy's unit."""
        samples = self.state.samples
        load = next((sample.history for sample in samples if sample.step == self.at), 0)
        return load + (self.simulation.load_of_drafts if self.simulation else 0)

    @property
    def forgotten_load(self) -> int:
        return max(0, self.history_load - self.load)

    @property
    def found_count(self) -> int:
        return self.state.mentions.count

    @cached_property
    def caption(self) -> Caption:
        if self.simulation:
            return self.simulation.caption
        if self.state.change is None:
            return Caption(
                "Nothing has been said yet", detail="Step forward to see the first message."
            )
        return explain.caption(self.state.change)

    @property
    def new_id(self) -> str:
        """The default id for saving a simulation as a new conversation."""
        return f"{self.memory.id[:NEW_ID_LENGTH]}-from-{self.at}"

    # Links

    @property
    def previous_step(self) -> int | None:
        return self.at - 1 if self.at > 0 else None

    @property
    def next_step(self) -> int | None:
        return self.at + 1 if self.at < self.memory.last_step else None

    @property
    def evictions(self) -> tuple[int | None, int | None]:
        """The nearest steps before and after this one at which a message left."""
        return self.state.evictions

    @cached_property
    def url(self) -> str:
        """The URL of the live page; links add the step, the message and the search."""
        return reverse("conversation", args=[self.memory.id])

    @property
    def step_url(self) -> str:
        """The URL of the page at this step, without selection, search or drafts."""
        return self.url if self.is_live else f"{self.url}?at={self.at}"

    @property
    def live_url(self) -> str:
        """The URL of the live page with the selection and the search."""
        query = {name: value for name, value in (("msg", self.msg), ("find", self.find)) if value}
        return f"{self.url}?{urlencode(query)}" if query else self.url

    @property
    def find_kept(self) -> str:
        """The search that Clear keeps: it first clears the selected message, then the search."""
        return self.find if self.msg else ""

    @cached_property
    def find_query(self) -> str:
        """The query parameter by which a link keeps the search."""
        return _find_query(self.find)

    def link(self, at: int, find: str | None = None, **chosen: int | None) -> str:
        """Return the URL of this page at a step, with other parameters and the search."""
        numbers = "".join(f"&{name}={number}" for name, number in chosen.items() if number)
        phrase = self.find_query if find is None else _find_query(find)
        return f"{self.url}?at={at}{numbers}{phrase}"


def _find_query(phrase: str) -> str:
    return f"&{urlencode({'find': phrase})}" if phrase else ""
