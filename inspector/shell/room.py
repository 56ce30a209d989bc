"""The hooks of the site: the methods by which a room adds to pages and to the tools of coding
agents.

Pages call the hooks within their database snapshot. docs/rooms.md describes each hook.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from django.db.models import Q

from chatmemory import room as kernel
from inspector.asgi import Application, Scope
from inspector.shell.highlights import Highlights as Highlights  # among the values of hooks
from inspector.shell.needs import NextNeed as NextNeed  # the same

if TYPE_CHECKING:
    from chatmemory import Policy
    from chatmemory.advice import Measured
    from chatmemory.explain.captions import Caption
    from chatmemory.reading.finding import MemoryFilter
    from chatmemory.reading.rows import MemoryRow
    from chatmemory.recall.cost import CacheRules
    from inspector.shell.state import ConversationState

# Gets the method, the name of the route, the status, and the seconds until the answer.
RecordAnswer = Callable[[str, str, int, float], None]


@dataclass(frozen=True)
class MenuItem:
    """A link of the main menu to a route. Items are sorted by `place`.

    - `namespace`: the URL namespace of the route.
    - `others`: further routes for which this item is the current item.
    - `permission`: only people with this permission see the item; with "", all who are signed in.
    - `is_public`: whether people who are not signed in see the item.
    - `icon`: the name of a symbol in the sprite.
    - `is_seldom`: whether the item is in the menu *More*.
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
    """A template of a room. It gets the values in `context`, and the context of the page around
    it.
    """

    template: str
    context: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A view that a room shows on the conversation page instead of the stored step, such as a
    simulation.

    - `state`: what the view shows.
    - `caption`, `panel`: replace the caption and the panel of the step. With None, those of the
      step remain.
    - `tried`: URL parameters of the view, such as `limit`. Links to other steps keep these
      parameters.
    - `is_lasting`: whether the forms of other rooms and the link to the live page keep the
      parameters in `tried`, too.
    """

    state: ConversationState
    caption: Caption | None = None
    panel: Fragment | None = None
    tried: Mapping[str, int | str] = field(default_factory=dict)
    is_lasting: bool = True


class Place(StrEnum):
    """The positions on the conversation page where rooms can add parts.

    ABOVE_STEP and BELOW_STEP are above and below the page's text about a step. If the `panel` of a
    `View` replaces this text, the two positions are above and below the panel.
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
    """A part that a room adds to the conversation page at a `place`. Parts at the same place are
    sorted by `order`.

    - `dots`: CSS classes of dots that the part adds to the timeline, by step.
    - `asks_to_be_seen`: whether a phone first shows the panel with this part, instead of memory.
    - `awaits`: whether the part waits for derived data. The page is then updated when the data is
      stored.
    """

    place: Place = Place.CARD
    order: int = 0
    dots: Mapping[int, str] = field(default_factory=dict)
    asks_to_be_seen: bool = False
    awaits: bool = False


@dataclass(frozen=True)
class Badge(Fragment):
    """A badge of a room in a row of the overview. `words` is the text of the badge for coding
    agents, which see no HTML. With "", agents do not see the badge.
    """

    words: str = ""


@dataclass(frozen=True)
class HitBeside:
    """A search hit in a text that a room stores beside the history, such as a recorded request.

    - `text`: an excerpt with the words that somebody searched.
    - `where`: where the text comes from, such as `sent in call 3, not in history`.
    - `url`: the page that shows the text.
    """

    text: str
    where: str
    url: str


@dataclass(frozen=True)
class FeedEntry(Fragment):
    """An entry of a room in the feed of the overview, about an event at a step. `moment` is the
    time in microseconds since 1970.

    Entries with `is_first` come before all others.
    """

    moment: int = 0
    step: int = 0
    is_first: bool = False


@dataclass(frozen=True)
class Muted:
    """When and by whom a cause was muted. `count` is how many conversations had the cause at that
    time.
    """

    count: int
    by: str
    at: datetime


class Listed(Protocol):
    """The list of conversations that the overview shows, for the hooks of rooms.

    - `split`: how the overview's table of figures over time is grouped, such as `tenant`; "" for
      the default.
    - `span`: the period of this table, such as `24h`; "" for the default.
    - `flagged`: the name of the chosen flag, or "".
    - `which`: the search, the filters and the chosen flag of the list, together as a
      `MemoryFilter`.
    - `is_all`: whether the list has no search and no filter. A chosen flag does not count as a
      filter.
    - `link`: returns the query string of the list with changed URL parameters.
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
    """What the overview says about a cause: whether a change of a policy or label helped.

    - `effect`: a sentence about the change, or "".
    - `closed_at`: when the cause ended; None while it continues.
    - `is_again`: whether the cause had ended and began again.
    - `is_shown`: whether the overview still shows the cause after its end.
    """

    effect: str = ""
    closed_at: datetime | None = None
    is_again: bool = False
    is_shown: bool = True


@dataclass(frozen=True)
class RoomCause:
    """A cause that a room adds to the overview, and that is not a flag. `line` is the line that the
    overview shows for the cause. `name` is needed to mute the cause.

    `count` is the number of conversations with the cause, and `href` the URL of their list.
    """

    name: str
    title: str
    count: int
    href: str
    line: Fragment

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OverTime:
    """What a room adds to the overview about changes over time.

    - `strip`: the table of figures over time, shown above the causes.
    - `causes`: further causes that the room found.
    - `told`: whether a change of a policy or label helped, by the name of the cause's flag. If a
      flag has parts, such as one for each rule of a provider, the keys are the names of the parts.
    - `facets`: the values that each filter offers, by the filter's name. An entry is a value, its
      number of conversations, and the words to show instead of the value.
    - `at`: when the stored figures were computed; None if they were computed for this request.
    """

    strip: Fragment
    causes: Sequence[RoomCause] = ()
    told: Mapping[str, Told] = field(default_factory=dict)
    facets: Mapping[str, Sequence[tuple[str, int, str]]] = field(default_factory=dict)
    at: datetime | None = None


class SiteRoom(kernel.Room):
    """The base class for the configuration of a room that adds to the site. Its methods are hooks:
    a room overrides those that it needs. docs/rooms.md explains the hooks and the attributes. Pages
    show the room's `verbose_name`.
    """

    urls: str = ""  # a module whose `urlpatterns` are in the namespace "inspector"
    menu: Sequence[MenuItem] = ()
    styles: Sequence[str] = ()  # static files of the room's own pages
    scripts: Sequence[str] = ()  # modules of JavaScript, for the same pages
    also_on: Sequence[str] = ()  # the kernel's routes whose pages load these files too
    value_columns: Mapping[str, str] = {}  # of filters: a derived row's column by a filter's name
    parameters: Mapping[str, type] = {}  # in the URL of the conversation page: each `str` or `int`

    def tools(self) -> Iterable[Callable[..., object]]:
        """Return the functions that coding agents may call; see `inspector.shell.agents`."""
        return ()

    def observing(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[RecordAnswer] | None:
        """Return a context manager in which a request is answered; None if the room does not
        observe the request.

        The context manager yields a function. After the answer, this function is called with the
        method, route, status and seconds.
        """
        return None

    def application(self, scope: Scope) -> Application | None:
        """Return an ASGI application that answers the request of `scope` instead of Django. Return
        None if the room does not answer it.
        """
        return None

    def view(self, view: ConversationState) -> View | None:
        """Return the view that the page shows instead of the stored step, or None if the URL asks
        for no such view.

        `view.query.room_parameters` has the room's URL parameters as text. `view.read` has values
        that rooms have already read for this page.

        If this hook raises InvalidValue or NoRoomBesidePins, the page shows the stored step.
        `view.read["problem"]` then has the text of the error. Any other exception makes the request
        fail.
        """
        return None

    def measured(
        self,
        ids: Collection[str],
        policies: Mapping[str, Policy] | None = None,
        rules: CacheRules | None = None,
    ) -> Sequence[Measured] | None:
        """Return the figures from which advice about conversations is derived. Return None if the
        room measures nothing.

        - `policies`: the policy to measure, by conversation ID. For all other conversations, the
          room chooses the policies.
        - `rules`: the rules of the prompt cache to calculate with; None for the cache of the
          provider in use.
        """
        return None

    def next_need(self, view: ConversationState) -> NextNeed | None:
        """Return when the selected message was needed again after it left memory. Return None if
        the room does not know.

        `view.selection.row` is the message, and `view.selection.left_by` is the change by which it
        left. If the message was not needed again, the `incident` of the result is None.
        """
        return None

    def selects(self, parameters: Mapping[str, str]) -> int | None:
        """Return the number of the message that the room's URL parameters select; None if they
        select none. There may be no message with this number.
        """
        return None

    def marks(self, view: ConversationState) -> Highlights | None:
        """Return what the room highlights on the page; None if nothing. The hook is called before
        the history is read, because the highlights decide which part of the history is shown.
        """
        return None

    def parts(self, view: ConversationState) -> Iterable[Part]:
        """Yield the room's parts of the conversation page. `view.is_simulated` is True for a
        simulation or a replay. `view.selection.row` is the selected message, or None.
        """
        return ()

    def questions(self) -> Iterable[Fragment]:
        """Yield questions to the reader, which the overview shows above its causes."""
        return ()

    def narrowing(self, name: str, value: str) -> Q | None:
        """Return the database condition for a filter of the overview, such as `provider`. Return
        None if the filter is not the room's.
        """
        return None

    def cases_on(self, day: str, flag: str) -> Mapping[str, int] | None:
        """Return how many cases of a flag began on a day such as `2026-11-28`, by conversation ID.
        Return None if the room does not know the past cases of the flag.
        """
        return None

    def over_time(self, listed: Listed, at_once: bool = False) -> OverTime | None:
        """Return what the overview shows about the listed conversations over time. Return None if
        the room has nothing for this.

        With `at_once`, figures that are not stored are computed now, which takes long.
        """
        return None

    def muted(self) -> Mapping[str, Muted]:
        """Return the muted causes of the overview, by the name of a flag or of a `RoomCause`."""
        return {}

    def hits_beside(self, words: str, memory_ids: Sequence[str]) -> Mapping[str, HitBeside]:
        """Return the best hit of a search in texts that the room stores beside the history, by
        conversation ID.

        Only the conversations in `memory_ids` are searched. The overview found no message with the
        words in these conversations.
        """
        return {}

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return badges for the rows of the overview, by conversation ID."""
        return {}

    def cells(self, rows: Sequence[MemoryRow]) -> Mapping[str, Mapping[str, Fragment]]:
        """Return cells for the room's columns of the overview: by name of the column, then by
        conversation ID. The hook is called once for all rows.
        """
        return {}

    def news(self, size: int) -> Iterable[FeedEntry]:
        """Yield the latest entries for the overview's feed, at most `size`."""
        return ()
