"""The main menu: the shell's items and the rooms' items."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest

from inspector.shell.room import MenuItem
from inspector.shell.rooms import rooms

OWN = (
    MenuItem("Conversations", "overview", 0),
    MenuItem("API", "docs", 50, namespace="chatmemory"),
)


def menu_of(request: HttpRequest) -> Iterator[tuple[MenuItem, bool]]:
    """Yield the items that the reader may see, in order, and whether each is the current one."""
    items = [*OWN, *(item for room in rooms() for item in room.menu)]
    for item in sorted(items, key=lambda item: item.place):
        if item.is_for(getattr(request, "user", None)):
            yield item, item.is_at(request.resolver_match)
