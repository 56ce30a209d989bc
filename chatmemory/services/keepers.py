"""The keepers, in the order in which they follow a change."""

from __future__ import annotations

from chatmemory.keeper import Keeper
from chatmemory.queries.compactions import CompactionKeeper
from chatmemory.queries.diagnosis import DiagnosisKeeper
from chatmemory.queries.incidents import IncidentKeeper

KEEPERS: tuple[Keeper, ...] = (DiagnosisKeeper(), IncidentKeeper(), CompactionKeeper())
