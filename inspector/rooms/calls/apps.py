from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from chatmemory.room import Erased
from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.agents import Answer
    from inspector.shell.state import ConversationState


class Calls(room.SiteRoom):
    name = "inspector.rooms.calls"
    verbose_name = "Calls"
    urls = "inspector.rooms.calls.urls"
    api_urls = "inspector.rooms.calls.api"
    menu = (room.MenuItem("Calls", "calls-intake", 15, ("calls", "call"), icon="calls"),)
    styles = ("rooms/calls/calls.css", "rooms/calls/list.css")
    also_on = ("conversation",)

    def ready(self) -> None:
        from chatmemory.search import TEXTS_BESIDE
        from chatmemory.signals import vacuuming

        TEXTS_BESIDE[:] = ["chatmemory_calls.CallMessage"]
        vacuuming.connect(_forget_old_calls, dispatch_uid="inspector.rooms.calls")

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.calls.reads import mentions_on, newest_in

        if call := newest_in(view):
            yield room.Part("rooms/calls/_card.html", {"call": call}, room.Place.BELOW_STEP)
            yield room.Part("rooms/calls/_link.html", place=room.Place.LINK, order=42)
            if mentions := mentions_on(view):
                context = {"mentions": mentions}
                yield room.Part("rooms/calls/_mentions.html", context, order=50)

    def hits_beside(self, words: str, memory_ids: Sequence[str]) -> Mapping[str, room.HitBeside]:
        from inspector.rooms.calls.hits import hits

        return hits(words, memory_ids)

    def tools(self) -> Iterable[Callable[..., Answer]]:
        from inspector.rooms.calls.agents import calls

        return (calls,)

    def erasing(self, erased: Erased) -> None:
        from inspector.rooms.calls.erasure import erase

        erase(erased)


def _forget_old_calls(**_: object) -> None:
    from inspector.rooms.calls.writes import forget_old_calls

    forget_old_calls()
