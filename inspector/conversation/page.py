"""The conversation page: its head, its panes and its links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from django.utils.http import urlencode

from chatmemory import MessageNotFound
from chatmemory.explain import captions
from chatmemory.explain.captions import Caption
from chatmemory.reading import feed
from chatmemory.reading.rows import MessageDetail
from inspector.conversation.addresses import Addresses
from inspector.conversation.budget import BudgetBar
from inspector.conversation.head import Head
from inspector.conversation.history import HistoryPane
from inspector.conversation.memory import MemoryPane
from inspector.conversation.panel import Panel
from inspector.conversation.state import conversation_state
from inspector.conversation.timeline import Timeline
from inspector.conversation.timeline.strip import cells
from inspector.shell import rooms
from inspector.shell.room import Fragment, Part, Place, View
from inspector.shell.state import ConversationQuery, ConversationState, ReadValues

OWN_LINKS = (Part("inspector/conversation/links/compact.html", place=Place.LINK, order=20),)

# The buttons that move to another step: the name of the icon, and the label
MOVES = {
    "first": "First step",
    "left-before": "Back to a step where messages left memory",
    "prev": "Step back",
    "next": "Step forward",
    "left-after": "On to a step where messages left memory",
}


@dataclass
class StepLink:
    """A button that moves the page to the step `to`, or is disabled if `to` is None.

    - `name` is the name of the button's icon.
    - `by` is 1 for one step forward, and -1 for one step back. 0 for buttons that move to a
      particular step, such as the first step.
    - `drawn` lists the fields that the template of the button gets.
    """

    drawn: ClassVar = ("name", "label", "to", "by")

    name: str
    label: str
    to: int | None
    href: str
    by: int = 0


def page_of(
    memory_id: str, query: ConversationQuery, read: ReadValues, is_posted: bool = False
) -> ConversationPage:
    """Return the page of a conversation. The page shows a step, or a view that the URL requests
    instead, such as a simulation.

    `read` has values that rooms (features) have already read for the page, by name. While the page
    is built, rooms add further values to `read`.

    Raises MemoryNotFound, StepNotFound, MessageNotFound, and the exceptions of rooms.
    """
    selects_draft = query.msg is not None and query.msg < 0
    # What is stored is read without the draft: only the room of the simulation finds the draft.
    stored_query = replace(query, msg=None) if selects_draft else query
    state = replace(conversation_state(memory_id, stored_query, read), query=query)
    view = rooms.view(state)
    if view is None and selects_draft:
        raise MessageNotFound(
            "this URL selects a draft message of a simulation, but names no simulation: remove "
            "msg from the URL"
        )
    return ConversationPage(view or state, is_posted)


class ConversationPage(Addresses, Head):
    """Presents the page of a conversation at a step, or a view that replaces the step, such as a
    simulation.

    `is_posted` means that the page is the response to a POST to another URL. The links of the
    timeline then include the path.
    """

    def __init__(self, shown: ConversationState | View, is_posted: bool = False) -> None:
        super().__init__(shown if isinstance(shown, View) else View(shown), is_posted)
        self._parts = rooms.parts(self.state)

    @property
    def is_simulation(self) -> bool:
        return self.state.is_simulated

    @property
    def is_replay(self) -> bool:
        return self.state.simulation.is_replay

    @property
    def drafts(self) -> tuple[MessageDetail, ...]:
        return self.state.simulation.drafts

    @property
    def live_query(self) -> str:
        """The query string for the live stream of new steps. While the page waits for derived data,
        the query string also makes the stream announce that data.
        """
        query = {"made": feed.microseconds(self.memory.created_at)}
        if self.is_live and any(part.awaits for part in self._parts):
            query["kept"] = 0  # the page shows no derived data yet
        return urlencode(query)

    @cached_property
    def history_pane(self) -> HistoryPane:
        return HistoryPane(self.state, self.link)

    @cached_property
    def memory_pane(self) -> MemoryPane:
        return MemoryPane(self.state, self._measure)

    @cached_property
    def budget(self) -> BudgetBar | None:
        """The bar that shows what the limit is used for; None if memory is empty."""
        return BudgetBar.of(self.state) if self.window.rows else None

    @cached_property
    def panel(self) -> Panel:
        return Panel(self.state)

    @cached_property
    def parts(self) -> dict[str, list[Part]]:
        """The parts at each place on the page, such as "card". These are the page's own links, and
        the parts that rooms (features) add.
        """
        parts = sorted([*OWN_LINKS, *self._parts], key=lambda part: part.order)
        return {place: [part for part in parts if part.place is place] for place in Place}

    @property
    def steps_back(self) -> list[StepLink]:
        """The buttons that move to an earlier step, in order."""
        last_eviction, _ = self.state.step.evictions
        return [
            self._step_link("first", self.first_step),
            self._step_link("left-before", last_eviction),
            self._step_link("prev", self.previous_step, by=-1),
        ]

    @property
    def steps_forward(self) -> list[StepLink]:
        """The buttons that move to a later step, in order."""
        _, next_eviction = self.state.step.evictions
        return [
            self._step_link("next", self.next_step, by=1),
            self._step_link("left-after", next_eviction),
        ]

    def _step_link(self, name: str, to: int | None, by: int = 0) -> StepLink:
        href = "" if to is None else self.step_link(to)
        return StepLink(name, MOVES[name], to, href, by)

    @cached_property
    def timeline(self) -> Timeline | None:
        """The timeline with the shown step marked; None if there are no steps."""
        dots: dict[int, str] = {}
        for part in self._parts:
            dots |= part.dots
        strip = cells(self.state, self._measure, self.cell_link, dots)
        return Timeline(self.state, self._measure, strip, dots) if strip else None

    @property
    def panel_instead(self) -> Fragment | None:
        """The panel that replaces the step's panel, such as the panel of a simulation. None if the
        page shows the step's panel.
        """
        return self._view.panel

    @property
    def request_key(self) -> str:
        """A text that identifies the selection, the comparison and the highlights. The page scrolls
        to the selection when this text changes.
        """
        compared = self.state.query.other
        parts = [self.msg or "", "" if compared is None else compared, *self.marks.kept.values()]
        return " ".join(map(str, parts))

    @property
    def pane(self) -> str:
        """The pane that a phone shows first: history, why or memory."""
        query = self.state.query
        if query.before is not None or query.after is not None:
            return "history"
        asks_for_panel = any(part.asks_to_be_seen for part in self._parts)
        return "why" if self.msg or self.panel.changes or asks_for_panel else "memory"

    @cached_property
    def caption(self) -> Caption:
        if self._view.caption:
            return self._view.caption
        if self.state.change is None:
            return self._caption_before_any_step
        detail = self.state.step.detail
        return captions.caption(self.state.change, detail.row.note if detail else "")

    @property
    def _caption_before_any_step(self) -> Caption:
        detail = "Step forward to see the first message."
        if self.next_step is None:
            detail = "The first message will show here."
        return Caption("Nothing has been said yet", detail=detail)
