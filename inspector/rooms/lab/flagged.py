"""Flags conversations that cost at least 5 % more than sending everything. Only works if the cache
prices of a provider in use are known.
"""

from __future__ import annotations

from django.db.models import Q

from chatmemory.flag import Alarm, Flag, Line


def _costs_more() -> Q:
    from inspector.rooms.lab.costs import costs_more

    return costs_more()


def _has_price() -> bool:
    from inspector.rooms.lab.costs import has_price

    return has_price()


def _began_step() -> str:
    from inspector.rooms.lab.costs import began_step

    return began_step()


def _how_much_more(memory_id: str) -> str:
    from inspector.rooms.lab.costs import how_much_more

    return how_much_more(memory_id)


FLAGS = (
    Flag(
        "costly",
        "Costs more than sending everything",
        _costs_more,
        alarm=Alarm(is_any=False, is_fault=False, counts=_has_price),
        place=45,
        line=Line(
            "Compare costs…",
            "lab",
            title="Costs at least 5 % more than sending everything",
            route_of_one="compare",
            names_ids=True,
            reads_ids=True,
            newest=_how_much_more,
            began_step=_began_step,
        ),
    ),
)
