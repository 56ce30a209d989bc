from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.agents import Answer
    from inspector.shell.state import ConversationState


class Phrase(room.SiteRoom):
    name = "inspector.rooms.phrase"
    verbose_name = "The search for a phrase"
    api_urls = "inspector.rooms.phrase.api"
    styles = ("rooms/phrase/phrase.css",)
    also_on = ("conversation", "simulate", "add", "branch")
    parameters: Mapping[str, type] = {"find": str}

    def tools(self) -> Iterable[Callable[..., Answer]]:
        from inspector.rooms.phrase.tools import does_it_remember

        return (does_it_remember,)

    def selects(self, parameters: Mapping[str, str]) -> int | None:
        from inspector.rooms.phrase.searching import selected

        return selected(parameters)

    def marks(self, view: ConversationState) -> room.Highlights | None:
        from inspector.rooms.phrase.page import marks

        return marks(view)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.phrase.page import parts

        return parts(view)
