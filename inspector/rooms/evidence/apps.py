from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from chatmemory.flag import Flag
from inspector.rooms.evidence import flagged
from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.keeper import Keeper
    from chatmemory.reading.rows import MemoryRow
    from chatmemory.recall.incidents import Incident
    from inspector.shell.state import ConversationState


class Evidence(room.SiteRoom):
    name = "inspector.rooms.evidence"
    verbose_name = "Incidents and lost terms"
    urls = "inspector.rooms.evidence.urls"
    api_urls = "inspector.rooms.evidence.api"
    styles = ("rooms/evidence/evidence.css",)
    also_on = ("conversation", "simulate", "add", "branch")
    flags: Sequence[Flag] = flagged.FLAGS
    parameters: Mapping[str, type] = {"used": str, "terms": str, "incident": int}
    services: Mapping[str, str] = {"current_incidents": "inspector.rooms.evidence.writes"}

    def keepers(self) -> Iterable[Keeper]:
        from inspector.rooms.evidence.compactions import CompactionKeeper
        from inspector.rooms.evidence.incidents import IncidentKeeper

        return (IncidentKeeper(), CompactionKeeper())

    def incidents(self, memory_id: str) -> Iterable[Incident]:
        from inspector.rooms.evidence.incidents import incidents_now

        return incidents_now(memory_id).incidents

    def next_need(self, view: ConversationState) -> room.NextNeed | None:
        from inspector.rooms.evidence.reads import next_need

        return next_need(view)

    def step_fields(self) -> Mapping[str, object]:
        from inspector.rooms.evidence.api import evidence_of_a_step

        return {"evidence": evidence_of_a_step()}

    def tools(self) -> Iterable[Callable[..., object]]:
        from inspector.rooms.evidence import tools

        return (tools.incidents, tools.what_did_summaries_lose)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.evidence import panel, report

        yield from report.reports(view)
        yield from panel.cards(view)

    def badges(self, rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[room.Badge]]:
        from inspector.rooms.evidence import overview

        return overview.badges(rows)

    def news(self, size: int) -> Iterable[room.FeedEntry]:
        from inspector.rooms.evidence import overview

        return overview.news(size)
