"""The conversation page: its head, its panes and its links."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import MessageNotFound
from chatmemory.explain import captions, wording
from chatmemory.explain.captions import Caption
from chatmemory.explain.wording import option_words
from chatmemory.reading import feed
from chatmemory.windows.stored_policies import total_under
from chatmemory.windows.window import Totals
from inspector.conversation.budget import BudgetBar
from inspector.conversation.costs import costs_by_step
from inspector.conversation.forecasts import over_limit
from inspector.conversation.history import HistoryPane
from inspector.conversation.links import chosen, conversation_url, query_of
from inspector.conversation.measures import Amount, Gauge, Measure, history_totals, kept_totals
from inspector.conversation.memory import MemoryPane
from inspector.conversation.panel import Panel
from inspector.conversation.state import ConversationQuery, ConversationState, conversation_state
from inspector.conversation.timeline import Timeline
from inspector.conversation.timeline.strip import cells
from inspector.shell import rooms
from inspector.shell.room import Fragment, Part, Place, View

OWN_LINKS = (Part("inspector/conversation/links/compact.html", place=Place.LINK, order=20),)


def page_of(
    memory_id: str, query: ConversationQuery, read: dict[str, Any], is_posted: bool = False
) -> ConversationPage:
    """Return the page of a conversation, or of a room's view if the query asks for one.

    `read` has the values that rooms have already read, and gets more of them. Raises
    MemoryNotFound, StepNotFound, MessageNotFound, and the exceptions of rooms.
    """
    is_draft = (query.msg or 0) < 0
    shown = replace(query, msg=None) if is_draft else query
    state = replace(conversation_state(memory_id, shown, read), query=query)
    view = rooms.view(state)
    if view is None and is_draft:
        raise MessageNotFound("no simulation is shown, and so no draft")
    return ConversationPage(view or state, is_posted)


class ConversationPage:
    """The presenter of a state for the page, or of a room's view in its place. It may answer a POST
    to another URL.
    """

    def __init__(self, shown: ConversationState | View, is_posted: bool = False) -> None:
        self._view = shown if isinstance(shown, View) else View(shown)
        self.state = state = self._view.state
        self._is_posted = is_posted
        self.memory = state.memory
        self.window = state.window
        self.at = state.at
        self.msg = state.query.msg
        self.marks = state.marks
        self.is_live = state.is_live
        self.is_simulation = state.is_simulated
        self.is_replay = state.is_replay
        self.drafts = state.drafts
        self.tried, self.is_lasting = self._view.tried, self._view.is_lasting
        policy = state.window.policy
        self._measure = Measure.of(policy, costs_by_step(state.memory, policy))
        self.limit, self.unit = self._measure.limit, self._measure.unit
        self.previous_step = self.at - 1 if self.at > 0 else None
        self.first_step = 0 if self.at > 0 else None
        self.next_step = self.at + 1 if self.at < self.memory.last_step else None
        self.evictions = state.evictions
        self.gauge = Gauge(self.window.policy, self.window.totals)
        self.over_limit = over_limit(self.window)
        self._parts = rooms.parts(state)
        # If a derived row is still to come, the stream of steps announces kept rows at once.
        is_awaited = any(part.awaits for part in self._parts)
        kept = {"kept": 0} if self.is_live and is_awaited else {}
        created_at = feed.microseconds(self.memory.created_at)
        self.live_query = urlencode({"made": created_at, **kept})
        self.policy_options = ", ".join(option_words(self.window.policy))
        # Messages of the history up to this step without drafts, and messages that a client put in.
        row = state.detail.row if state.detail else None
        self.said_count = row.said_count if row else 0
        self.injected_count = len(state.injected & state.in_window)
        # Step 0 was made with the conversation.
        self.moment = row.at if row else self.memory.created_at
        # The window and the history until now: no step has a longer number.
        self.kept = self._measure.amount(self.window.totals)
        most = Totals(self.memory.said_count, self.memory.history_tokens)
        self.whole_history = self._measure.amount(
            self._measure.history(self.memory.last_step, most)
        )
        # The selection, unless it is a draft, and the query parameter that keeps it in URLs.
        self.selected_message = self.msg if self.msg and self.msg > 0 else None
        self.chosen_query = urlencode(chosen(self.msg))

    @cached_property
    def history_pane(self) -> HistoryPane:
        return HistoryPane(self.state, self.link)

    @cached_property
    def memory_pane(self) -> MemoryPane:
        return MemoryPane(self.state, self._measure)

    @cached_property
    def budget(self) -> BudgetBar | None:
        """The bar of the window's budget, or None if the window is empty."""
        return BudgetBar.of(self.state) if self.window.rows else None

    @cached_property
    def panel(self) -> Panel:
        return Panel(self.state)

    @cached_property
    def parts(self) -> dict[str, list[Part]]:
        """The parts of rooms, and the page's own links, by their places."""
        parts = sorted([*OWN_LINKS, *self._parts], key=lambda part: part.order)
        return {place: [part for part in parts if part.place is place] for place in Place}

    @cached_property
    def timeline(self) -> Timeline | None:
        """The timeline with its playhead at this step; None if there is no step."""
        dots: dict[int, str] = {}
        for part in self._parts:
            dots |= part.dots
        strip = cells(self.state, self._measure, self.cell_link, dots)
        return Timeline(self.state, self._measure, strip, dots) if strip else None

    @property
    def panel_instead(self) -> Fragment | None:
        """The panel of a room in place of the step's."""
        return self._view.panel

    @property
    def request_key(self) -> str:
        """The selection, the comparison and the parameters of marks. A page scrolls to another."""
        other = self.state.query.other
        values = self.msg or "", "" if other is None else other, *self.marks.kept.values()
        return " ".join(map(str, values))

    @property
    def pane(self) -> str:
        """The pane that a phone shows first: history, why or memory."""
        if self.state.query.before is not None or self.state.query.after is not None:
            return "history"
        panel = self.panel
        is_asked = any(part.asks_to_be_seen for part in self._parts)
        return "why" if self.msg or panel.changes or is_asked else "memory"

    # The head of the page

    @property
    def policy_name(self) -> str:
        if self.window.policy is None and self.state.is_policy_unknown:
            return "Policy not recorded"
        return wording.policy_name(self.window.policy)

    @cached_property
    def history(self) -> Amount:
        """The totals of the history up to this step, drafts included, in original token counts."""
        return self._measure.amount(history_totals(self.state, self._measure))

    @property
    def is_recounted(self) -> bool:
        """Whether another estimator counted messages of the window originally."""
        return bool(self.state.original_tokens.keys() - self.state.cleared.keys())

    @property
    def hidden(self) -> Amount | None:
        """The totals of the messages that a lowered limit hides until the next add, or None."""
        window = self.window
        return self._difference(self._limited, window.totals) if window.over_limit else None

    @property
    def interrupted(self) -> Amount | None:
        """The totals of interrupted tool calls with their results, which are hidden, or None."""
        window = self.window
        return self._difference(window.stored, self._limited) if window.interrupted else None

    @property
    def _limited(self) -> Totals:
        """The totals of the messages that the model sees, or that only a limit hides."""
        window = self.window
        rows = window.rows + window.over_limit if window.interrupted else window.in_order
        return total_under(window.policy, rows)

    @property
    def forgotten(self) -> Amount:
        """The totals of messages that are neither in memory nor hidden, in original token
        counts.
        """
        return self._difference(
            history_totals(self.state, self._measure), kept_totals(self.state, self._measure)
        )

    def _difference(self, whole: Totals, part: Totals) -> Amount:
        load = self._measure.load(whole) - self._measure.load(part)
        return self._measure.amount_of(load, whole.tokens - part.tokens)

    @cached_property
    def caption(self) -> Caption:
        if self._view.caption:
            return self._view.caption
        if self.state.change is None:
            way = "Step forward to see the first message."
            if self.next_step is None:
                way = "The first message will show here."
            return Caption("Nothing has been said yet", detail=way)
        note = self.state.detail.row.note if self.state.detail else ""
        return captions.caption(self.state.change, note)

    # Links

    @cached_property
    def url(self) -> str:
        """The URL of the live page; links add the step, the message and what a room keeps."""
        return reverse("inspector:conversation", args=[self.memory.id])

    @property
    def stored_url(self) -> str:
        """The URL of the page at this step with a stored message, without the drafts."""
        at = None if self.is_live else self.at
        return conversation_url(self.memory.id, at=at, msg=self.selected_message, **self.marks.kept)

    @cached_property
    def live_url(self) -> str:
        """The URL of the live page with the drafts and the selection."""
        tried = self.tried if self.is_lasting else {}
        return conversation_url(self.memory.id, **tried, **chosen(self.msg), **self.marks.kept)

    @property
    def follows(self) -> bool:
        """Whether new messages move the page; they move no simulation."""
        return self.is_live and not self.tried

    @property
    def pinned_url(self) -> str:
        """The URL of the page at this step, which new messages do not move."""
        return conversation_url(self.memory.id, at=self.at, msg=self.msg, **self.marks.kept)

    @property
    def followed_url(self) -> str:
        """The URL of the live page with a stored message, without the drafts."""
        return conversation_url(self.memory.id, msg=self.selected_message, **self.marks.kept)

    def link(
        self, at: int, keeps: bool = True, msg: int | None = None, **parameters: int | str | None
    ) -> str:
        """Return the URL of this page at a step, with other parameters and drafts."""
        return self.url + self.query(at, keeps, msg, **parameters)

    def query(
        self, at: int, keeps: bool = True, msg: int | None = None, **parameters: int | str | None
    ) -> str:
        """Return the query of such a URL with its question mark, or "" for the live page.

        It has the comparison, unless `with` is given, the drafts or the limit of a replay, and the
        parameters of marks if it `keeps` them.
        """
        stays_live = self.is_live and at == self.at
        place = {"at": None if stays_live else at} | chosen(msg)
        if "with" not in parameters:
            compared = {"with": self.state.query.other, "past": self.state.query.past}
            parameters = {**compared, **parameters}
        marked = self.marks.kept if keeps else {}
        marks = {name: parameters.pop(name, text) for name, text in marked.items()}
        return query_of({**place, **parameters, **self.tried, **marks})

    @cached_property
    def _kept_query(self) -> str:
        """The common end of the queries of all cells."""
        return self.query(self.at + 1).partition("&")[2]

    def step_link(self, at: int) -> str:
        """Return the URL of a step with the selection and the comparison."""
        return self.link(at, msg=self.msg)

    def cell_link(self, step: int, msg: int | None) -> str:
        """Return the URL of a step with the message that arrived at it, or of a draft.

        There are many cells, so that URLs of steps are short: relative to the page, unless it was
        posted to another URL.
        """
        if msg and msg < 0:
            return self.link(self.at, msg=msg)
        at = "" if self.is_live and step == self.at else f"at={step}"
        parts = (at, f"msg={msg}" if msg else "", self._kept_query)
        query = "?" + "&".join(filter(None, parts))
        return self.url + query if self._is_posted else query
