"""The part of the first screen that shows hours: the strip, its causes, and the effect of changes
on the causes of flags.
"""

from __future__ import annotations

import json

from chatmemory.reading.feed import time_of
from inspector.rooms.hours.dearer import dearer
from inspector.rooms.hours.figures import EVERYTHING, Made, compute
from inspector.rooms.hours.models import KeptFigures
from inspector.rooms.hours.strip import strip_of
from inspector.shell.room import Fragment, Listed, OverTime, Told

TENANT = "tenant"


def over_time(listed: Listed, at_once: bool = False) -> OverTime | None:
    """Return the parts of the overview over time, from the kept figures.

    Figures of a filter, or of a split that is not kept, are computed `at_once`. Otherwise the page
    requests them afterwards.
    """
    if at_once:
        made = compute(listed.split or TENANT, None if listed.is_all else listed.which.rows())
        return _shown(listed, made, made)
    rows = KeptFigures.objects.filter(split__in={TENANT, listed.split or TENANT})
    kept = {row.split: Made(time_of(row.made_at), json.loads(row.content)) for row in rows}
    by_tenant = kept.get(TENANT)
    if by_tenant is None or not by_tenant.values["groups"][EVERYTHING]["size"]:
        return None  # no conversation is examined yet
    ready = kept.get(listed.split or TENANT) if listed.is_all else None
    if ready is None:
        return OverTime(Fragment("rooms/hours/_later.html", {"address": listed.link()}))
    return _shown(listed, ready, by_tenant)


def _shown(listed: Listed, made: Made, by_tenant: Made) -> OverTime:
    lines = [
        Fragment("rooms/hours/_dearer.html", {"dearer": each}) for each in dearer(listed, by_tenant)
    ]
    told = {name: Told(*each) for name, each in by_tenant.values.get("told", {}).items()}
    strip = Fragment("rooms/hours/_strip.html", {"strip": strip_of(listed, made)})
    return OverTime(strip, lines, told)
