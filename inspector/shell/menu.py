"""The main menu, with the items of rooms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest

from inspector.shell.room import MenuItem
from inspector.shell.rooms import rooms

OWN = (
    MenuItem("Conversations", "overview", 0, icon="talk"),
    MenuItem("API", "docs", 90, namespace="chatmemory", icon="code", is_seldom=True),
)


def menu_of(request: HttpRequest) -> Iterator[tuple[MenuItem, bool]]:
    """Yield the menu items that the reader may see, in order. The second value says whether the
    item is the current page.
    """
    items = [*OWN, *(item for room in rooms() for item in room.menu)]
    for item in sorted(items, key=lambda item: item.place):
        if _is_for(item, getattr(request, "user", None)):
            match = request.resolver_match
            yield item, match is not None and match.url_name in (item.route, *item.others)


def _is_for(item: MenuItem, user: Any) -> bool:  # of the project's model, or nobody
    if not getattr(user, "is_authenticated", False):
        return item.is_public
    return not item.permission or bool(user.has_perm(item.permission))
