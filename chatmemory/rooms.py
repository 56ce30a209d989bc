"""The installed rooms, and the functions by which the kernel calls their hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.urls import URLPattern, URLResolver

from chatmemory.room import Recorded, Room

if TYPE_CHECKING:
    from chatmemory.keeper import Keeper
    from chatmemory.recall.incidents import Incident


def rooms() -> tuple[Room, ...]:
    """Return the installed rooms, in the order of INSTALLED_APPS. The result is cached."""
    global _known
    configs, found = _known
    if configs is not apps.app_configs:
        found = tuple(each for each in apps.get_app_configs() if isinstance(each, Room))
        _known = apps.app_configs if apps.ready else None, found
    return found


# The applications that Django has loaded, and the rooms among them
_known: tuple[object, tuple[Room, ...]] = (None, ())


def keepers() -> tuple[Keeper, ...]:
    """Return the keepers of the installed rooms, in the order in which they run after a change."""
    return tuple(keeper for room in rooms() for keeper in room.keepers())


def providers_in_use(memory_id: str = "") -> Mapping[str, Sequence[str]] | None:
    """Return the providers in use for a conversation, each with the names of its models. If
    `memory_id` is "", return the providers in use for all conversations together.

    None if no room knows which providers are in use.
    """
    found = (room.in_use(memory_id) for room in _knowing_use(rooms()))
    return next((each for each in found if each is not None), None)


@lru_cache(maxsize=8)
def _knowing_use(some: tuple[Room, ...]) -> list[Room]:
    """Return the rooms that may know which providers are in use."""
    return [each for each in some if type(each).in_use is not Room.in_use]


def seal(change: Recorded) -> None:
    """Let the rooms fill in the digests of a step that is not written yet, or of a new
    conversation.
    """
    for sealing in _sealing(rooms()):
        sealing(change)


@lru_cache(maxsize=8)
def _sealing(some: tuple[Room, ...]) -> list[Callable[[Recorded], None]]:
    """Return the hooks `sealing` of those rooms that override it."""
    return [each.sealing for each in some if type(each).sealing is not Room.sealing]


def known_incidents(memory_id: str) -> Iterator[Incident]:
    """Yield the incidents of a conversation, as the installed rooms return them."""
    return (each for room in rooms() for each in room.incidents(memory_id))


def patterns_of(modules: Iterable[str]) -> list[URLPattern | URLResolver]:
    """Return the URL patterns of the modules with these names. Empty names are skipped."""
    return [each for name in modules if name for each in import_module(name).urlpatterns]


def check_rooms(**_: object) -> list[CheckMessage]:
    """Return a Django system check error for each missing room or package that an installed room
    needs.
    """
    installed = {each.room for each in rooms()}
    missing = [
        Error(
            f"The room {room.room!r} needs the room {name!r}.",
            hint=f"Add it to INSTALLED_APPS, or remove {room.name!r}.",
            id="chatmemory.E010",
        )
        for room in rooms()
        for name in room.needs
        if name not in installed
    ]
    return [*missing, *_missing_packages()]


def _missing_packages() -> Iterator[CheckMessage]:
    for room in rooms():
        for package, module in room.packages.items():
            if not _is_importable(module):
                yield Error(
                    f"The room {room.room!r} needs the package {package!r}.",
                    hint=f"pip install {package} (the extra `pages` has it), or remove "
                    f"{room.name!r} from INSTALLED_APPS.",
                    id="chatmemory.E013",
                )


def _is_importable(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
