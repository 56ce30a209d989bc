"""What a room may add to the site: the hooks that the pages and the agents' tools call.

The configuration of a room of the site is a `SiteRoom`. `cards`, `sections`, `links` and `badges`
are called within the snapshot of their page, and have a budget of queries. If one of them raises,
the error is logged, and the page says in one line that the room is not available.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from django.http import HttpRequest
from django.urls import ResolverMatch

from chatmemory import room as kernel
from inspector.asgi import Application, Scope

if TYPE_CHECKING:
    from chatmemory.explain.captions import Caption
    from chatmemory.reading.rows import MemoryRow, MessageDetail
    from inspector.conversation.state import ConversationState

logger = logging.getLogger(__name__)

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

    def providers(self) -> Iterable[str]:
        """Return the names of the providers in use (`chatmemory.lint.PROVIDERS`), none until
        somebody has chosen.
        """
        return ()

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
        """Return what rows of the overview have, by the ids of conversations."""
        return {}

    def news(self, size: int) -> Iterable[News]:
        """Yield what the feed of the overview has, the latest `size` entries."""
        return ()


NOT_AVAILABLE = "inspector/shared/_not_available.html"
Item = TypeVar("Item")


def rooms() -> Iterator[SiteRoom]:
    """Yield the installed rooms of the site, in the order of INSTALLED_APPS."""
    return (each for each in kernel.rooms() if isinstance(each, SiteRoom))


def urlpatterns() -> list[Any]:
    """Return the URL patterns of all rooms."""
    return kernel.patterns_of(room.urls for room in rooms())


def parameters() -> dict[str, bool]:
    """Return the parameters of the conversation page's address that rooms own, and whether each is
    a number.
    """
    texts = {name: False for room in rooms() for name in room.parameters}
    return texts | {name: True for room in rooms() for name in room.numbers}


def rooms_on(request: HttpRequest) -> list[SiteRoom]:
    """Return the rooms whose styles and scripts the page of a request loads."""
    match = request.resolver_match
    if match is None:
        return []
    module = f"{match.func.__module__}."
    return [
        room
        for room in rooms()
        if module.startswith(f"{room.name}.") or match.url_name in room.also_on
    ]


def tools() -> list[Callable[..., Any]]:
    """Return what coding agents may call."""
    return [tool for room in rooms() for tool in room.tools()]


@contextmanager
def observing(method: str, headers: Mapping[str, str]) -> Iterator[RecordAnswer]:
    """Surround the answer to a request by what rooms have for it, and yield what records it."""
    with ExitStack() as stack:
        surrounding = (room.observing(method, headers) for room in rooms())
        recording = [stack.enter_context(each) for each in surrounding if each]

        def record(*answer: Any) -> None:
            for each in recording:
                each(*answer)

        yield record


def application_of(scope: Scope) -> Application | None:
    """Return the application of the room that answers a request in the place of Django; or None."""
    return next(filter(None, (room.application(scope) for room in rooms())), None)


def view(view: ConversationState) -> View | None:
    """Return what the first room that has something shows in the place of a stored step."""
    return next((shown for room in rooms() if (shown := room.view(view))), None)


def parts(view: ConversationState) -> list[Part]:
    """Return the parts of all rooms."""
    return _of_each(Part, lambda room: room.parts(view))


def cards(view: ConversationState) -> list[Card]:
    """Return the cards of all rooms."""
    return _of_each(Card, lambda room: room.cards(view))


def sections(view: ConversationState, message: MessageDetail) -> list[Section]:
    """Return the sections of all rooms for the selected message."""
    return _of_each(Section, lambda room: room.sections(view, message))


def links(view: ConversationState) -> list[Link]:
    """Return what the page's head has of all rooms."""
    return _of_each(Link, lambda room: room.links(view))


def reports(view: ConversationState) -> list[Report]:
    """Return what all rooms say on top of the conversation page."""
    return _of_each(Report, lambda room: room.reports(view))


def awaits(view: ConversationState) -> bool:
    """Whether a room awaits something derived; one that fails awaits nothing."""
    found = False
    for room in rooms():
        try:
            found = found or room.awaits(view)
        except Exception:
            logger.exception("the room %s fails", room.room)
    return found


def badges(rows: Sequence[MemoryRow]) -> dict[str, list[Badge]]:
    """Return the badges of all rooms by the ids of conversations."""
    found: dict[str, list[Badge]] = {row.id: [] for row in rows}
    for room in rooms():
        try:
            for memory_id, shown in room.badges(rows).items():
                found[memory_id].extend(shown)
        except Exception:
            logger.exception("the room %s has no badges", room.room)
    return found


def questions() -> list[Fragment]:
    """Return what all rooms ask on the overview."""
    return _of_each(Fragment, lambda room: room.questions())


def providers_in_use() -> list[str]:
    """Return the providers in use that rooms know of."""
    return [name for room in rooms() for name in room.providers()]


def muted() -> dict[str, Muted]:
    """Return the causes that are folded, of all rooms."""
    return {name: mute for room in rooms() for name, mute in room.muted().items()}


def news(size: int) -> list[News]:
    """Return what the feed of the overview has of all rooms."""
    return _of_each(News, lambda room: room.news(size))


def _of_each(kind: type[Item], asked: Callable[[SiteRoom], Iterable[Item]]) -> list[Item]:
    """Return what each room answers; of one that fails, a line that says so."""
    found: list[Item] = []
    for room in rooms():
        try:
            found += list(asked(room))
        except Exception:
            logger.exception("the room %s fails", room.room)
            named = {"verbose_name": room.verbose_name}  # which a cache can keep
            found.append(kind(NOT_AVAILABLE, {"room": named}))  # type: ignore[call-arg]
    return found
