"""The cause "Cost a turn" of the overview: tenants whose turns cost more since a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.utils import timezone

from chatmemory.messages.json_values import JsonDict
from inspector.rooms.hours.figures import EVERYTHING, Made, ratio_of
from inspector.rooms.hours.strip import THOUSAND, facet_of, linked, mark_of, words_of
from inspector.shell.room import Fragment, Listed, RoomCause
from inspector.shell.rooms import page_url

FROM = 1.5  # times the days before
NAME = 64  # characters of the name of a cause
_TURNS, _COST = 0, 2


@dataclass(frozen=True)
class Dearer:
    """A tenant whose turns cost more since a change of a policy or label, as a line of the
    overview.

    - `group`: the name of the tenant, or `no tenant`.
    - `before`, `after`: the cost of a turn before and after the change, as a median over days. A
      cost of 1 is the price of one input token.
    - `ratio`: the factor by which the cost has risen, such as 1.8.
    - `count`: how many conversations have this change, and had turns after it.
    - `release`: the change in words.
    - `since`: the time of the change.
    - `href`: the URL of the tenant's conversations.
    - `address`: the URL of the lab for the tenant, or "" without the lab.
    """

    ratio: float
    group: str
    count: int
    release: str
    since: datetime
    before: float
    after: float
    href: str
    address: str

    @property
    def title(self) -> str:
        return f"Cost per turn ×{self.ratio:.1f}"


def dearer(listed: Listed, made: Made) -> Iterator[RoomCause]:
    """Yield a cause for each tenant whose turns cost at least 1.5 times as much after a change as
    before.
    """
    for name, each in _dearer(listed, made):
        line = Fragment("rooms/hours/_dearer.html", {"dearer": each})
        yield RoomCause(f"cost:{name}"[:NAME], each.title, each.count, each.href, line)


def _dearer(listed: Listed, made: Made) -> Iterator[tuple[str, Dearer]]:
    if made.split != "tenant":
        return
    values: JsonDict = made.values
    for name, group in sorted(values["groups"].items()):
        mark = mark_of(group, values["days"])
        ratio = ratio_of(group["days"], _COST, mark)
        if name == EVERYTHING or mark is None or ratio is None or ratio < FROM:
            continue
        sides = group["days"][:mark], group["days"][mark:]
        before, after = (
            median(each[_COST] for each in side if each[_TURNS]) / THOUSAND for side in sides
        )
        address = page_url("lab")
        yield (
            name,
            Dearer(
                ratio,
                words_of("tenant", name),
                group["change"][3],
                group["change"][2],
                datetime.fromtimestamp(group["change"][0], timezone.get_default_timezone()),
                before,
                after,
                linked(listed, **facet_of("tenant", name), flagged=""),
                f"{address}?prefix={name}" if address and name else address,
            ),
        )
