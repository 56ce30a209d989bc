"""When a message that left memory was needed again, as a room (feature) knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chatmemory.recall.incidents import Forgotten, Incident


class NextNeed(NamedTuple):
    """When the selected message was next needed: the incident, and the needed fact. Incidents are
    known up to step `until`.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int
