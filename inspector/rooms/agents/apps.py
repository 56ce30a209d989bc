from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.agents import Answer


class Agents(room.SiteRoom):
    name = "inspector.rooms.agents"
    verbose_name = "Coding agents"

    def tools(self) -> Iterable[Callable[..., Answer]]:
        from inspector.rooms.agents import tools

        return (
            tools.find_conversations,
            tools.window,
            tools.history,
            tools.why_did_it_leave,
        )
