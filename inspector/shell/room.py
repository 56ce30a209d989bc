"""The hooks by which a room adds to the site. Pages call them within the snapshot of the page;
agents' tools call them too.

docs/rooms.md describes each hook.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from django.db.models import Q

from chatmemory import room as kernel
from inspector.asgi import Application, Scope
from inspector.shell.highlights import Highlights as Highlights  # among the values of hooks

if TYPE_CHECKING:
    from chatmemory import Policy
    from chatmemory.advice import Measured
    from chatmemory.explain.captions import Caption
    from chatmemory.reading.finding import MemoryFilter
    from chatmemory.reading.rows import MemoryRow
    from chatmemory.recall.cost import CacheRules
    from chatmemory.recall.incidents import Forgotten, Incident
    from inspector.shell.state import ConversationState

# Gets the method, the name of the route, the status, and the seconds until the answer.
RecordAnswer = Callable[[str, str, int, float], None]


@dataclass(frozen=True)
class MenuItem:
    """A link of the main menu to a route, ordered by `place`. `others` are further routes at which
    it is the current item. Only people with the `permission` see it, if it has one; strangers see
    only items with `is_public`. `icon` is a symbol of the sprite. An item that `is_seldom` needed
    is in the menu *More*.
    """

    label: str
    route: str
    place: int
    others: tuple[str, ...] = ()
    permission: str = ""
    is_public: bool = False
    namespace: str = "inspector"
    icon: str = "more"
    is_seldom: bool = False

    @property
    def address(self) -> str:
        return f"{self.namespace}:{self.route}"


@dataclass(frozen=True)
class Fragment:
    """A template of a room, rendered with its page's context and its own `context`."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A room's view in place of a stored step, with its `state`. The `caption` and the `panel`, if
    given, replace the step's. URLs keep the parameters in `tried`; URLs of the live page, and forms
    that ask something else, only if it `is_lasting`.
    """

    state: ConversationState
    caption: Caption | None = None
    panel: Fragment | None = None
    tried: Mapping[str, int | str] = field(default_factory=dict)
    is_lasting: bool = True


class Place(StrEnum):
    """Positions on the conversation page where rooms can add parts.

    Parts above or below the text of a step stay there when a room's panel replaces this text.
    """

    FIELDS = "fields"  # hidden fields of the room's forms: the step, the selection
    TOP = "top"  # above the head
    FLAG = "flag"  # in the head, behind the gauge
    LINK = "link"  # at the end of the head
    REPORT = "report"  # below the head: a fault, in a sentence with its verbs
    REPORT_BESIDE = "report_beside"
    HISTORY = "history"  # in the head of the history
    BELOW_MEMORY = "below_memory"
    ANSWER = "answer"  # first in the panel, in place of the words of the step
    CARD = "card"  # in the panel if no message is selected, also below an answer
    ABOVE_STEP = "above_step"  # the words of the step
    BELOW_STEP = "below_step"
    BELOW_REASON = "below_reason"  # why the selected message is in memory, or has left
    BELOW_TEXT = "below_text"  # the text of the selected message
    BELOW_MESSAGE = "below_message"  # all that is known of it


@dataclass(frozen=True)
class Part(Fragment):
    """A part of the conversation page, by `order` among those at its place.

    `dots` are classes of the timeline's cells by step. A phone shows the panel first if a part
    `asks_to_be_seen`. The page waits for a derived row that is not kept yet if a part `awaits` it.
    """

    place: Place = Place.CARD
    order: int = 0
    dots: Mapping[int, str] = field(default_factory=dict)
    asks_to_be_seen: bool = False
    awaits: bool = False


@dataclass(frozen=True)
class Badge(Fragment):
    """A badge in a row of the overview. Agents read its `words` instead."""

    words: str = ""


@dataclass(frozen=True)
class FeedEntry(Fragment):
    """An entry in the feed of the overview, of an event at a `moment` (in microseconds) and a step.
    Entries with `is_first` are sorted before all others.
    """

    moment: int = 0
    step: int = 0
    is_first: bool = False


class NextNeed(NamedTuple):
    """The incident for which a message was next needed, and the needed fact, among the incidents up
    to step `until`.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int


@dataclass(frozen=True)
class Muted:
    """A muted cause: who muted it, when, and its conversation count at that time."""

    count: int
    by: str
    at: datetime


class Listed(Protocol):
    """The list of conversations on the overview: its parameters, its filter, and links to other
    lists.
    """

    @property
    def split(self) -> str: ...

    @property
    def span(self) -> str: ...

    @property
    def flagged(self) -> str: ...

    @property
    def which(self) -> MemoryFilter: ...

    @property
    def is_all(self) -> bool: ...

    def link(self, **changes: str) -> str: ...


@dataclass(frozen=True)
class Told:
    """The effect of the change before a cause, as a room found it.

    `effect` is a sentence. `closed_at` is the time since which the cause has been closed, because
    it had no case any more, and `is_again` means that new cases came later. A closed cause
    `is_shown` for a while.
    """

    effect: str = ""
    closed_at: datetime | None = None
    is_again: bool = False
    is_shown: bool = True


@dataclass(frozen=True)
class OverTime:
    """The parts of the overview that a room draws over time.

    `strip` is shown above the causes. `causes` are causes that the room found itself. `told` has
    the effects of changes on the causes of flags, by the name of the flag or of its part. `facets`
    are the values that filters offer, by the filter's name: each with its conversations, and with
    words if they differ from the value.
    """

    strip: Fragment
    causes: Sequence[Fragment] = ()
    told: Mapping[str, Told] = field(default_factory=dict)
    facets: Mapping[str, Sequence[tuple[str, int, str]]] = field(default_factory=dict)


class SiteRoom(kernel.Room):
    """The configuration of a room of the site. Pages name it by its `verbose_name`."""

    urls: str = ""  # a module whose `urlpatterns` are in the namespace "inspector"
    menu: Sequence[MenuItem] = ()
    styles: Sequence[str] = ()  # static files of the room's own pages
    scripts: Sequence[str] = ()  # modules of JavaScript, for the same pages
    also_on: Sequence[str] = ()  # the kernel's routes whose pages load these files too
    value_columns: Mapping[str, str] = {}  # of filters: a derived row's column by a filter's name
    parameters: Mapping[str, type] = {}  # in the URL of the conversation page: each `str` or `int`

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return the functions that coding agents may call: see `inspector.shell.agents`."""
        return ()

    def observing(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[RecordAnswer] | None:
        """Return a context that yields a function to record the answer to a request; or None."""
        return None

    def application(self, scope: Scope) -> Application | None:
        """Return the ASGI application that answers a request in place of Django; or None."""
        return None

    def view(self, view: ConversationState) -> View | None:
        """Return the view in place of a stored step, if the URL asks for one.

        `view.query.room_parameters` has the texts of the room's parameters, and `view.read` the
        values that a form of the room has read before. An exception ends the request.
        """
        return None

    def measured(
        self,
        ids: Collection[str],
        policies: Mapping[str, Policy] | None = None,
        rules: CacheRules | None = None,
    ) -> Sequence[Measured] | None:
        """Return the figures of conversations, from which advice is derived; None if the room has
        none. With `policies` by id, return the figures of these policies. `rules` are those of the
        provider's cache, by default of the one in use.
        """
        return None

    def next_need(self, view: ConversationState) -> NextNeed | None:
        """Return the next need of the message `view.selected`, which left by `view.left_by`, as
        known at the step; None if the room does not know.
        """
        return None

    def selects(self, parameters: Mapping[str, str]) -> int | None:
        """Return the message that the room's parameters select, or None. It need not exist."""
        return None

    def marks(self, view: ConversationState) -> Highlights | None:
        """Return the room's marks, or None: first without a history, which opens at them."""
        return None

    def parts(self, view: ConversationState) -> Iterable[Part]:
        """Yield parts of the page; also of a simulation or a replay, if `view.is_simulated`, and of
        the message `view.selected`.
        """
        return ()

    def questions(self) -> Iterable[Fragment]:
        """Yield the questions on the overview, above its causes."""
        return ()

    def narrowing(self, name: str, value: str) -> Q | None:
        """Return the condition of an overview filter that the room provides, such as the provider;
        None for other filters. The value of `cases` is a flag and a day, such as
        `refused@2026-11-28`.
        """
        return None

    def over_time(self, listed: Listed, at_once: bool = False) -> OverTime | None:
        """Return the figures of the listed conversations over time; None without any.

        Figures that are not kept ready are only computed with `at_once`, for a page that asks for
        nothing else.
        """
        return None

    def muted(self) -> Mapping[str, Muted]:
        """Return the causes that people folded on the overview, by the names of flags."""
        return {}

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return the badges in rows of the overview, by the ids of conversations."""
        return {}

    def cells(self, rows: Sequence[MemoryRow]) -> Mapping[str, Mapping[str, Fragment]]:
        """Return the cells of the room's `columns` in rows of the overview: by the names of the
        columns, and then by the ids of conversations. It is called once for all rows.
        """
        return {}

    def news(self, size: int) -> Iterable[FeedEntry]:
        """Yield the latest `size` entries of the overview's feed."""
        return ()
