"""What a room may add to the site: the hooks that the pages and the agents' tools call.

The configuration of a room of the site is a `SiteRoom`. `cards`, `sections`, `links` and `badges`
are called within the snapshot of their page, and have a budget of queries. If one of them raises,
the error is logged, and the page says in one line that the room is not available.
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


# Takes the method, the name of the route, the status, and the seconds until the answer.
RecordAnswer = Callable[[str, str, int, float], None]


@dataclass(frozen=True)
class MenuItem:
    """A link of the main menu to a route of the namespace `inspector`.

    Items are ordered by `place`. `others` are the names of further routes at which the item is the
    current one. Only people with the `permission` see it, if there is one; strangers see what
    `is_public`.
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
    """A template of a room, which sees what its page sees, and `context` beside it."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What a room shows in the place of a stored step, such as a simulation: its `state`.

    The `caption` and the `panel` take the place of those of the step, if there are any. `receipts`
    returns its changes, each with its receipt. Addresses keep the parameters in `tried`; those of a
    search and of the live page do only if it `is_lasting`.
    """

    state: ConversationState
    caption: Caption | None = None
    panel: Fragment | None = None
    receipts: Callable[[], Sequence[tuple[Any, Any]]] = tuple
    tried: Mapping[str, int | str] = field(default_factory=dict)
    is_lasting: bool = True


@dataclass(frozen=True)
class Part(Fragment):
    """What a room has on the conversation page itself: above its head, or `below_memory`."""

    below_memory: bool = False


@dataclass(frozen=True)
class Muted:
    """A cause that somebody folded on the overview, at a number of conversations."""

    count: int
    by: str
    at: datetime


@dataclass(frozen=True)
class Card(Fragment):
    """What a room says in the panel of the conversation page where nothing is selected or searched.

    It stands above the words of the step, of the replay or of the simulation, or with `is_below`
    after them. `dots` are classes of cells of the timeline by step. A phone shows the panel first
    if a card `asks_to_be_seen`. One that is `in_searches` stands below the answer to a search, too.
    """

    dots: Mapping[int, str] = field(default_factory=dict)
    asks_to_be_seen: bool = False
    is_below: bool = False
    in_searches: bool = False


@dataclass(frozen=True)
class Section(Fragment):
    """What a room says of the selected message: below its reason and its text, or with `is_below`
    below all that is known of it.
    """

    is_below: bool = False


@dataclass(frozen=True)
class Link(Fragment):
    """What a room puts into the head of the conversation page, in the order of `place`: behind the
    gauge if it `is_flag`, else at the end.
    """

    place: int = 0
    is_flag: bool = False


@dataclass(frozen=True)
class Report(Fragment):
    """What a room says on top of the conversation page: a sentence with its verbs. One that
    `is_beside` stands at the right of others.
    """

    is_beside: bool = False


@dataclass(frozen=True)
class Badge(Fragment):
    """What a room says in a row of the overview. `words` are what agents read in its place."""

    words: str = ""


@dataclass(frozen=True)
class News(Fragment):
    """What a room says in the feed of the overview: it happened at a `moment`, in microseconds, at
    a step. One that `is_first` stands above all that happened.
    """

    moment: int = 0
    step: int = 0
    is_first: bool = False


class SiteRoom(kernel.Room):
    """The configuration of a room of the site. Its `verbose_name` is what pages call it."""

    urls: str = ""  # a module whose `urlpatterns` are of the namespace "inspector"
    menu: Sequence[MenuItem] = ()
    styles: Sequence[str] = ()  # static files of the room's own pages
    scripts: Sequence[str] = ()  # modules of JavaScript, for the same pages
    also_on: Sequence[str] = ()  # the kernel's routes whose pages load these files too
    parameters: Sequence[str] = ()  # what the room owns in the address of the conversation page
    numbers: Sequence[str] = ()  # the same, of which each is a number

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return the functions that coding agents may call: see `inspector.shell.agents`."""
        return ()

    def observing(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[RecordAnswer] | None:
        """Return what surrounds the answer to a request, and records the answer; or None."""
        return None

    def application(self, scope: Scope) -> Application | None:
        """Return the ASGI application that answers a request in the place of Django; or None."""
        return None

    def stopping(self) -> None:
        """End what would keep a server process from stopping."""

    def view(self, view: ConversationState) -> View | None:
        """Return what is shown in the place of a stored step, if the address asks for it.

        `view.query.of_rooms` has the texts of the room's parameters, and `view.read` what a form of
        the room has read before. An exception ends the request.
        """
        return None

    def parts(self, view: ConversationState) -> Iterable[Part]:
        """Yield what the page has above its head and below memory."""
        return ()

    def cards(self, view: ConversationState) -> Iterable[Card]:
        """Yield what the panel says where no message is selected.

        It may be a simulation or a replay: `view.is_simulated`. `view.query.of_rooms` has the texts
        of the room's parameters, and `view.read` keeps what several hooks need.
        """
        return ()

    def sections(self, view: ConversationState, message: MessageDetail) -> Iterable[Section]:
        """Yield what the panel says of the selected message, below the reason and the text."""
        return ()

    def links(self, view: ConversationState) -> Iterable[Link]:
        """Yield what the head of the page has."""
        return ()

    def reports(self, view: ConversationState) -> Iterable[Report]:
        """Yield what is wrong with the conversation, each in a sentence with its verbs."""
        return ()

    def awaits(self, view: ConversationState) -> bool:
        """Whether the page will hear of something derived that is not kept yet."""
        return False

    def questions(self) -> Iterable[Fragment]:
        """Yield what the overview asks above its causes."""
        return ()

    def muted(self) -> Mapping[str, Muted]:
        """Return the causes that people folded on the overview, by the names of flags."""
        return {}

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return what rows of the overview have, by the ids of conversations."""
        return {}

    def news(self, size: int) -> Iterable[News]:
        """Yield what the feed of the overview has, the latest `size` entries."""
        return ()
