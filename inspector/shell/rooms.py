"""The installed rooms of the site, and functions that call the rooms' hooks for pages and agents.

If a hook that adds parts to a page fails, the error is logged. Instead of the parts, the page shows
a line which says that the room is not available.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Q
from django.http import HttpRequest
from django.urls import NoReverseMatch, URLPattern, URLResolver, reverse

from chatmemory import rooms as kernel
from chatmemory.room import ListColumn
from inspector.asgi import Application, Scope
from inspector.shell.highlights import NO_HIGHLIGHTS, Highlights
from inspector.shell.room import (
    Badge,
    FeedEntry,
    Fragment,
    HitBeside,
    Listed,
    Muted,
    NextNeed,
    OverTime,
    Part,
    Place,
    RecordAnswer,
    SiteRoom,
    View,
)

if TYPE_CHECKING:
    from chatmemory import Policy
    from chatmemory.advice import Measured
    from chatmemory.reading.overview import OverviewRow
    from chatmemory.reading.rows import MemoryRow
    from chatmemory.recall.cost import CacheRules
    from inspector.shell.state import ConversationState


logger = logging.getLogger(__name__)
NOT_AVAILABLE = "inspector/shared/_not_available.html"
Item = TypeVar("Item")


def rooms() -> Iterator[SiteRoom]:
    """Yield the installed rooms of the site, in the order of INSTALLED_APPS."""
    return (each for each in kernel.rooms() if isinstance(each, SiteRoom))


def _first(answer: Callable[[SiteRoom], Item | None]) -> Item | None:
    """Return the first answer of a room that is not None; None if there is none."""
    found = map(answer, rooms())
    return next((each for each in found if each is not None), None)


def urlpatterns() -> list[URLPattern | URLResolver]:
    """Return the URL patterns of all rooms."""
    return kernel.patterns_of(room.urls for room in rooms())


def page_url(route: str, *arguments: str) -> str:
    """Return the URL of a page; "" if the room with this page is not installed."""
    try:
        return reverse(f"inspector:{route}", args=arguments)
    except NoReverseMatch:
        return ""


def parameters() -> dict[str, type]:
    """Return the types of the URL parameters that rooms add to the conversation page, by name."""
    return {name: kind for room in rooms() for name, kind in room.parameters.items()}


def rooms_on(request: HttpRequest) -> list[SiteRoom]:
    """Return the rooms whose styles and scripts the requested page needs."""
    match = request.resolver_match
    if match is None:
        return []
    module = f"{match.func.__module__}."
    return [
        room
        for room in rooms()
        if module.startswith(f"{room.name}.") or match.url_name in room.also_on
    ]


def tools() -> list[Callable[..., object]]:
    """Return the tools of all rooms for coding agents."""
    return [tool for room in rooms() for tool in room.tools()]


@contextmanager
def observing(method: str, headers: Mapping[str, str]) -> Iterator[RecordAnswer]:
    """Let all rooms observe a request. The context manager yields a function that passes the
    method, route, status and seconds to the rooms. Call this function after the answer.
    """
    with ExitStack() as stack:
        surrounding = (room.observing(method, headers) for room in rooms())
        recording = [stack.enter_context(each) for each in surrounding if each]

        def record(*answer: Any) -> None:  # RecordAnswer has their types
            for each in recording:
                each(*answer)

        yield record


def application_of(scope: Scope) -> Application | None:
    """Return the ASGI application of a room that answers this request instead of Django. Return
    None if Django answers.
    """
    return next(filter(None, (room.application(scope) for room in rooms())), None)


def view(view: ConversationState) -> View | None:
    """Return what the conversation page shows instead of the stored step, such as a simulation. The
    first room that has a view for the URL decides. None if no room has a view.
    """
    return next((shown for room in rooms() if (shown := room.view(view))), None)


def next_need(view: ConversationState) -> NextNeed | None:
    """Return when the selected message was needed again after it left memory, from the first room
    that knows. None if no room knows.
    """
    return next((need for room in rooms() if (need := room.next_need(view))), None)


def measured(
    ids: Collection[str],
    policies: Mapping[str, Policy] | None = None,
    rules: CacheRules | None = None,
) -> Sequence[Measured] | None:
    """Return the figures from which advice about conversations is derived. They come from the first
    room that measures conversations, such as the lab. Return None without such a room.

    The arguments are those of `SiteRoom.measured`.
    """
    return _first(lambda room: room.measured(ids, policies, rules))


def selected(parameters: Mapping[str, str]) -> int | None:
    """Return the number of the message that the URL parameters of a room select; None if they
    select none.
    """
    return _first(lambda room: room.selects(parameters))


def marks(view: ConversationState) -> Highlights:
    """Return the highlights of the first room that highlights something on the conversation page.
    If no room does, return empty highlights. A room that fails is skipped.
    """
    for room in rooms():
        try:
            if found := room.marks(view):
                return found
        except Exception:
            logger.exception(
                "the room %s failed to mark a conversation, which is shown without its marks",
                room.room,
            )
    return NO_HIGHLIGHTS


def parts(view: ConversationState) -> list[Part]:
    """Return the parts of all rooms for the conversation page. For a room that fails, the part is a
    line which says that the room is not available.
    """
    return _of_each(partial(Part, place=Place.REPORT), lambda room: room.parts(view))


def hits_beside(words: str, rows: Sequence[OverviewRow]) -> dict[str, HitBeside]:
    """Return hits of a search in texts that rooms store beside the history, by conversation ID.

    Only conversations without a hit in a message are searched.
    """
    ids = [row.memory.id for row in rows if row.mention is None]
    found: dict[str, HitBeside] = {}
    for room in rooms() if words and ids else ():
        try:
            found |= room.hits_beside(words, ids)
        except Exception:
            logger.exception("the room %s failed to search, so its hits are missing", room.room)
    return found


def badges(rows: Sequence[MemoryRow]) -> dict[str, list[Badge]]:
    """Return the badges of all rooms for rows of the overview, by conversation ID. If a room fails,
    its badges are left out.
    """
    found: dict[str, list[Badge]] = {row.id: [] for row in rows}
    for room in rooms():
        try:
            for memory_id, shown in room.badges(rows).items():
                found[memory_id].extend(shown)
        except Exception:
            logger.exception(
                "the room %s failed to make badges, so its badges are missing", room.room
            )
    return found


def columns() -> list[ListColumn]:
    """Return the columns that rooms add to the overview."""
    return [column for room in rooms() for column in room.columns]


def cells(rows: Sequence[MemoryRow]) -> dict[str, list[Fragment | None]]:
    """Return the cells of the rooms' columns, by conversation ID. The cells of a conversation are
    in the order of `columns()`. A cell is None if the room has no value for it, or failed.
    """
    found: dict[str, Mapping[str, Fragment]] = {}
    for room in rooms() if rows else ():
        try:
            found |= room.cells(rows)
        except Exception:
            logger.exception(
                "the room %s failed to make the cells of its columns, so these cells are empty",
                room.room,
            )
    of_columns = [found.get(column.name, {}) for column in columns()]
    return {row.id: [column.get(row.id) for column in of_columns] for row in rows}


def questions() -> list[Fragment]:
    """Return the questions to the reader that rooms add to the overview."""
    return _of_each(Fragment, lambda room: room.questions())


def narrowing(name: str, value: str) -> Q | None:
    """Return the database condition for a filter of the overview, from the room that has the
    filter. None for an unknown filter.
    """
    return _first(lambda room: room.narrowing(name, value))


def cases_on(day: str, flag: str) -> Mapping[str, int] | None:
    """Return how many cases of a flag began on a day, by conversation ID, from the first room that
    knows past cases of this flag. None if no room does.

    Cases that have ended since then count, too.
    """
    return _first(lambda room: room.cases_on(day, flag))


def value_columns() -> dict[str, str]:
    """Return the database columns that rooms declare for filters, by the filter's name. For
    example, `provider` has `kepthours__provider`, the path to the column from a conversation.
    """
    return {name: column for room in rooms() for name, column in room.value_columns.items()}


def over_time(listed: Listed, at_once: bool = False) -> OverTime | None:
    """Return what the overview shows about conversations over time, from the first room that
    returns an `OverTime`. None if no room does.
    """
    for room in rooms():
        try:
            if found := room.over_time(listed, at_once):
                return found
        except Exception:
            logger.exception("the room %s failed to show conversations over time", room.room)
    return None


def muted() -> dict[str, Muted]:
    """Return the muted causes of the overview, by the name of a flag or of a `RoomCause`."""
    return {name: mute for room in rooms() for name, mute in room.muted().items()}


def news(size: int) -> list[FeedEntry]:
    """Return the latest entries of all rooms for the overview's feed, at most `size` of each
    room.
    """
    return _of_each(FeedEntry, lambda room: room.news(size))


def _of_each(
    make: Callable[[str, Mapping[str, object]], Item], hook: Callable[[SiteRoom], Iterable[Item]]
) -> list[Item]:
    """Return the answers of all rooms to a hook. For a room that fails, `make` makes a line that
    says so.
    """
    found: list[Item] = []
    for room in rooms():
        try:
            found += list(hook(room))
        except Exception:
            logger.exception("the room %s failed, so its part of the page is missing", room.room)
            named = {"verbose_name": room.verbose_name}  # so that a cache can keep it
            found.append(make(NOT_AVAILABLE, {"room": named}))
    return found
