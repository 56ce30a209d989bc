"""The hooks by which a room adds to the site: pages and agents' tools call them.

The configuration of a room of the site is a `SiteRoom`. `cards`, `sections`, `links` and `badges`
are called within the snapshot of their page, and have a budget of queries. If one of them raises,
the error is logged, and the page shows one line: the room is not available.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.urls import ResolverMatch

from chatmemory import room as kernel
from inspector.asgi import Application, Scope

if TYPE_CHECKING:
    from chatmemory.explain.captions import Caption
    from chatmemory.reading.rows import MemoryRow, MessageDetail
    from inspector.conversation.state import ConversationState


# Gets the method, the name of the route, the status, and the seconds until the answer.
RecordAnswer = Callable[[str, str, int, float], None]


@dataclass(frozen=True)
class MenuItem:
    """A link of the main menu to a route of the namespace `inspector`.

    Items are ordered by `place`. `others` are the names of further routes at which the item is the
    current one. Only people with the `permission` see it, if it has one; strangers see only items
    with `is_public`.
    """

    label: str
    route: str
    place: int
    others: tuple[str, ...] = ()
    permission: str = ""
    is_public: bool = False
    namespace: str = "inspector"

    @property
    def address(self) -> str:
        return f"{self.namespace}:{self.route}"

    def is_for(self, user: Any) -> bool:
        """Whether this reader sees the item."""
        if not getattr(user, "is_authenticated", False):
            return self.is_public
        return not self.permission or bool(user.has_perm(self.permission))

    def is_at(self, match: ResolverMatch | None) -> bool:
        """Whether this is the item of a route."""
        return match is not None and match.url_name in (self.route, *self.others)


@dataclass(frozen=True)
class Fragment:
    """A template of a room, rendered with its page's context and its own `context`."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """The view of a room in place of a stored step, such as a simulation, with its `state`.

    The `caption` and the `panel`, if given, replace the step's. `receipts` returns its changes,
    each with its receipt. URLs keep the parameters in `tried`; URLs of a search and of the live
    page keep them only if it `is_lasting`.
    """

    state: ConversationState
    caption: Caption | None = None
    panel: Fragment | None = None
    receipts: Callable[[], Sequence[tuple[Any, Any]]] = tuple
    tried: Mapping[str, int | str] = field(default_factory=dict)
    is_lasting: bool = True


@dataclass(frozen=True)
class Part(Fragment):
    """A part of the conversation page that a room adds above its head, or `below_memory`."""

    below_memory: bool = False


@dataclass(frozen=True)
class Muted:
    """A cause that somebody folded on the overview, at a number of conversations."""

    count: int
    by: str
    at: datetime


@dataclass(frozen=True)
class Card(Fragment):
    """A card in the panel of the conversation page, when nothing is selected or searched.

    It comes before the words of the step, the replay or the simulation, or with `is_below` after
    them. `dots` are classes of cells of the timeline by step. A phone shows the panel first if a
    card `asks_to_be_seen`. A card `in_searches` is also shown below the answer to a search.
    """

    dots: Mapping[int, str] = field(default_factory=dict)
    asks_to_be_seen: bool = False
    is_below: bool = False
    in_searches: bool = False


@dataclass(frozen=True)
class Section(Fragment):
    """A section about the selected message, below its reason and its text, or with `is_below` at
    the end.
    """

    is_below: bool = False


@dataclass(frozen=True)
class Link(Fragment):
    """A link in the head of the conversation page, in the order of `place`: after the gauge if it
    `is_flag`, else at the end.
    """

    place: int = 0
    is_flag: bool = False


@dataclass(frozen=True)
class Report(Fragment):
    """A report at the top of the conversation page: a sentence with its verbs. One that `is_beside`
    is at the right of the others.
    """

    is_beside: bool = False


@dataclass(frozen=True)
class Badge(Fragment):
    """A badge in a row of the overview. Agents read its `words` instead."""

    words: str = ""


@dataclass(frozen=True)
class News(Fragment):
    """An entry in the feed of the overview: it happened at a `moment`, in microseconds, at a step.
    One that `is_first` comes before all others.
    """

    moment: int = 0
    step: int = 0
    is_first: bool = False


class SiteRoom(kernel.Room):
    """The configuration of a room of the site. Its `verbose_name` is what pages call it."""

    urls: str = ""  # a module whose `urlpatterns` are in the namespace "inspector"
    menu: Sequence[MenuItem] = ()
    styles: Sequence[str] = ()  # static files of the room's own pages
    scripts: Sequence[str] = ()  # modules of JavaScript, for the same pages
    also_on: Sequence[str] = ()  # the kernel's routes whose pages load these files too
    parameters: Sequence[str] = ()  # the room's parameters in the URL of the conversation page
    numbers: Sequence[str] = ()  # such parameters that must be numbers

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return the functions that coding agents may call: see `inspector.shell.agents`."""
        return ()

    def observing(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[RecordAnswer] | None:
        """Return a context manager for a request that yields a function to record its answer; or
        None.
        """
        return None

    def application(self, scope: Scope) -> Application | None:
        """Return the ASGI application that answers a request in place of Django, or None."""
        return None

    def stopping(self) -> None:
        """End whatever would prevent a server process from stopping."""

    def view(self, view: ConversationState) -> View | None:
        """Return the view in place of a stored step, if the URL asks for one.

        `view.query.of_rooms` has the texts of the room's parameters, and `view.read` the values
        that a form of the room has read before. An exception ends the request.
        """
        return None

    def parts(self, view: ConversationState) -> Iterable[Part]:
        """Yield parts of the page, above its head or below memory."""
        return ()

    def cards(self, view: ConversationState) -> Iterable[Card]:
        """Yield the cards of the panel when no message is selected.

        It may be a simulation or a replay: `view.is_simulated`. `view.query.of_rooms` has the texts
        of the room's parameters, and `view.read` keeps values that several hooks need.
        """
        return ()

    def sections(self, view: ConversationState, message: MessageDetail) -> Iterable[Section]:
        """Yield the sections of the panel about the selected message, below the reason and the
        text.
        """
        return ()

    def links(self, view: ConversationState) -> Iterable[Link]:
        """Yield the links in the head of the page."""
        return ()

    def reports(self, view: ConversationState) -> Iterable[Report]:
        """Yield the faults of the conversation, each in a sentence with its verbs."""
        return ()

    def awaits(self, view: ConversationState) -> bool:
        """Whether the page should wait for a derived row that is not kept yet."""
        return False

    def questions(self) -> Iterable[Fragment]:
        """Yield the questions on the overview, above its causes."""
        return ()

    def muted(self) -> Mapping[str, Muted]:
        """Return the causes that people folded on the overview, by the names of flags."""
        return {}

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return the badges in rows of the overview, by the ids of conversations."""
        return {}

    def news(self, size: int) -> Iterable[News]:
        """Yield the latest `size` entries for the feed of the overview."""
        return ()
