"""The parts of the overview about hours: a table of figures over time, the cause "Cost a turn", and
whether changes helped.
"""

from __future__ import annotations

from datetime import UTC, datetime

from inspector.rooms.hours.dearer import dearer
from inspector.rooms.hours.figures import EVERYTHING, TENANT, Made, computed, kept
from inspector.rooms.hours.strip import strip_of
from inspector.rooms.hours.telling import Telling
from inspector.shell.room import Fragment, Listed, OverTime, Told


def over_time(listed: Listed, at_once: bool = False) -> OverTime | None:
    """Return the parts of the overview about hours, or None if no conversation has hourly figures
    yet.

    Figures of a filtered list are not stored. With `at_once`, they are computed now. Otherwise the
    page requests them after it has loaded.
    """
    found = kept({TENANT, listed.split or TENANT})
    by_tenant = found.get(TENANT)
    if by_tenant is None or not by_tenant.values["groups"][EVERYTHING]["size"]:
        return None  # no conversation is examined yet
    split = listed.split if listed.split in found else by_tenant.values["usual"]
    if not listed.is_all and at_once:
        of_filter = computed(split, listed.which.rows())
        return OverTime(_strip(listed, of_filter)) if of_filter else None
    ready = (found | kept({split} - found.keys())).get(split) if listed.is_all else None
    later = Fragment("rooms/hours/_later.html", {"address": listed.link()})
    lines = list(dearer(listed, by_tenant)) if listed.is_all else ()
    return OverTime(
        _strip(listed, ready) if ready else later,
        lines,
        {name: _told(each) for name, each in by_tenant.told.items()},
        by_tenant.values["facets"],
        by_tenant.at,
    )


def _strip(listed: Listed, made: Made) -> Fragment:
    return Fragment("rooms/hours/_strip.html", {"strip": strip_of(listed, made)})


def _told(each: Telling) -> Told:
    closed_at = datetime.fromtimestamp(each.closed, UTC) if each.closed else None
    return Told(each.effect, closed_at, each.is_again, each.is_shown)
