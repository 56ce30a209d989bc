"""The hooks of a room: methods by which a feature adds to the site's pages and to agents' tools.
Pages call them within the page's database snapshot.

docs/rooms.md describes each hook.
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

    - `others` are further routes at which this item is shown as the current item.
    - An item with a `permission` is shown only to people who have the permission.
    - People who are not signed in see only items with `is_public`.
    - `icon` is the name of a symbol in the sprite.
    - An item with `is_seldom` is in the menu *More*, because people seldom need it.
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
    """A template of a room (feature). The template gets the context of the page around it, and the
    values in `context`.
    """

    template: str
    context: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What a room (feature) shows on the conversation page instead of a stored step, such as a
    simulation.

    A given `caption` replaces the caption of the step, and a given `panel` its panel. `tried` are
    URL parameters that lead to this view, and that links within the page keep. With `is_lasting`,
    links to the live page and forms of other features keep them, too.
    """

    state: ConversationState
    caption: Caption | None = None
    panel: Fragment | None = None
    tried: Mapping[str, int | str] = field(default_factory=dict)
    is_lasting: bool = True


class Place(StrEnum):
    """Positions on the conversation page where rooms (features) can add parts.

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
    """A part that a room (feature) adds to the conversation page, at a `place`. Parts at the same
    place are sorted by `order`.

    `dots` has dots for the timeline: by step, the CSS class of the dot. With `asks_to_be_seen`, a
    phone shows the panel first. With `awaits`, the part waits for derived data, and the page is
    updated when the data is stored.
    """

    place: Place = Place.CARD
    order: int = 0
    dots: Mapping[int, str] = field(default_factory=dict)
    asks_to_be_seen: bool = False
    awaits: bool = False


@dataclass(frozen=True)
class Badge(Fragment):
    """A badge in a row of the overview: a template of a room (feature). Agents, who see no
    templates, read its `words`.
    """

    words: str = ""


@dataclass(frozen=True)
class HitBeside:
    """A hit of a search in a text that is not in history, but that a room (feature) keeps, such as
    a recorded request.

    `where` says what the text is, such as `sent in call 3, not in history`, and `url` is its page.
    """

    text: str
    where: str
    url: str


@dataclass(frozen=True)
class FeedEntry(Fragment):
    """An entry in the feed of the overview, about an event at a step. `moment` is its time in
    microseconds since 1970.

    Entries with `is_first` are sorted before all others.
    """

    moment: int = 0
    step: int = 0
    is_first: bool = False


@dataclass(frozen=True)
class Muted:
    """A muted cause: who muted it, when, and its conversation count at that time."""

    count: int
    by: str
    at: datetime


class Listed(Protocol):
    """The list of conversations on the overview: its URL parameters, its filter, and links to other
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
    """What a room (feature) found about a kind of problem (a flag): whether a change of a policy or
    label helped.

    `effect` is a sentence about the change. `closed_at` is the time at which the problem ended, or
    None. `is_again` means that the problem had ended and then began again. `is_shown` tells whether
    the overview still shows a problem that has ended.
    """

    effect: str = ""
    closed_at: datetime | None = None
    is_again: bool = False
    is_shown: bool = True


@dataclass(frozen=True)
class RoomCause:
    """A cause that a room (feature) found itself, with its `line` on the overview. People mute the
    cause by its `name`. `count` is the number of conversations with the cause, and `href` is the
    URL of their list.
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
    """The parts of the overview that a room (feature) adds about changes over time.

    - `strip` is the table over time, which is shown above the causes.
    - `causes` are further causes that the room has found.
    - `told` says whether a change helped, by the name of a flag, or of a part of a flag.
    - `facets` are the values that the overview offers for its filters, by the name of the filter.
      Each value comes with its number of conversations, and with words if they differ from the
      value.
    - `at` is the time at which these numbers were computed.
    """

    strip: Fragment
    causes: Sequence[RoomCause] = ()
    told: Mapping[str, Told] = field(default_factory=dict)
    facets: Mapping[str, Sequence[tuple[str, int, str]]] = field(default_factory=dict)
    at: datetime | None = None


class SiteRoom(kernel.Room):
    """The base class of a room's (feature's) configuration, with the hooks of the site. Pages show
    its `verbose_name`.
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
        """Return a context manager that surrounds a request; None if the room does not observe the
        request. The context manager yields a function that records the answer.
        """
        return None

    def application(self, scope: Scope) -> Application | None:
        """Return an ASGI application if the room answers this request instead of Django; otherwise
        None.
        """
        return None

    def view(self, view: ConversationState) -> View | None:
        """Return what the page shows instead of a stored step, if the URL asks for it; otherwise
        None.

        `view.query.room_parameters` has the URL parameters of the room as text. `view.read` has
        values that the room has already read for this page. If the method raises an exception, the
        request fails.
        """
        return None

    def measured(
        self,
        ids: Collection[str],
        policies: Mapping[str, Policy] | None = None,
        rules: CacheRules | None = None,
    ) -> Sequence[Measured] | None:
        """Return the figures of conversations, from which advice is derived; None if the room
        measures nothing.

        With `policies` by conversation ID, return the figures of these policies. `rules` are the
        rules of a prompt cache, by default the cache of the provider in use.
        """
        return None

    def next_need(self, view: ConversationState) -> NextNeed | None:
        """Return when the selected message, `view.selection.row`, was next needed. Return None if
        the room does not know.

        The message left memory by the change `view.selection.left_by`.
        """
        return None

    def selects(self, parameters: Mapping[str, str]) -> int | None:
        """Return the number of the message that the room's URL parameters select, or None. The
        message may not exist.
        """
        return None

    def marks(self, view: ConversationState) -> Highlights | None:
        """Return what the room highlights on the page, or None. The page calls this before it reads
        the history, because the history is scrolled to the highlights.
        """
        return None

    def parts(self, view: ConversationState) -> Iterable[Part]:
        """Yield parts of the conversation page. `view.is_simulated` tells whether the page shows a
        simulation or a replay, and `view.selection.row` is the selected message.
        """
        return ()

    def questions(self) -> Iterable[Fragment]:
        """Yield questions to show on the overview above its causes."""
        return ()

    def narrowing(self, name: str, value: str) -> Q | None:
        """Return the database condition for a filter of the overview that the room provides, such
        as the provider; None for other filters.
        """
        return None

    def cases_on(self, day: str, flag: str) -> Mapping[str, int] | None:
        """Return, by conversation ID, the number of cases of a flag on a day, such as `2026-11-28`.
        Return None if the room does not know past cases of the flag.
        """
        return None

    def over_time(self, listed: Listed, at_once: bool = False) -> OverTime | None:
        """Return the parts of the overview that show the listed conversations over time; None if
        the room has no such parts.

        With `at_once`, figures that are not stored yet are computed. This takes longer, and is only
        for a request that asks for these parts alone.
        """
        return None

    def muted(self) -> Mapping[str, Muted]:
        """Return the causes that people have muted on the overview, by the name of a flag or of a
        `RoomCause`.
        """
        return {}

    def hits_beside(self, words: str, memory_ids: Sequence[str]) -> Mapping[str, HitBeside]:
        """Return, by conversation ID, the best hit of a search among texts that the room keeps in
        addition to the history.

        `memory_ids` are conversations in which no message has the words.
        """
        return {}

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return badges for the rows of the overview, by conversation ID."""
        return {}

    def cells(self, rows: Sequence[MemoryRow]) -> Mapping[str, Mapping[str, Fragment]]:
        """Return the cells of the room's `columns` in the overview: by column name, then by
        conversation ID. Called once for all rows.
        """
        return {}

    def news(self, size: int) -> Iterable[FeedEntry]:
        """Yield the latest entries for the overview's feed, at most `size`."""
        return ()
