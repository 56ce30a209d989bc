"""The flags of conversations that need attention: the one list of them for pages, API and agents.

A message was never in memory if it left in the step that added it.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import F, Q

from chatmemory.exceptions import InvalidValue
from chatmemory.flag import Flag
from chatmemory.rooms import rooms

ANY = "any"  # the flag of conversations with at least one of the others


OVER_LIMIT = Flag(
    "over_limit",
    "Over the limit",
    Q(window_load__gt=F("policy_limit")),
    icon="warn",
    beside_doctor=True,
    place=50,
)
OWN = (OVER_LIMIT,)


def flags() -> tuple[Flag, ...]:
    """Return all flags in order, including the flags of the installed rooms."""
    others = sorted((*OWN, *(flag for room in rooms() for flag in room.flags)), key=_place)

    def any_of_them() -> Q:
        return reduce(or_, (each.where for each in others if each.is_any))

    return (Flag(ANY, "Need attention", any_of_them, is_any=False), *others)


def _place(flag: Flag) -> int:
    return flag.place


def flag_named(name: str) -> Flag:
    """Return the flag with a name, which may be one of the release before. Raises InvalidValue."""
    name = today(name)
    for flag in flags():
        if flag.name == name:
            return flag
        if flag.parts and name.startswith(f"{flag.name}."):
            for part in flag.parts():
                if part.name == name:
                    return part
    names = ", ".join(flag.name for flag in flags())
    raise InvalidValue(f"no flag has the name {name!r}: one of {names}")


def today(name: str) -> str:
    """Return the current name of a flag, given that or its name in the release before."""
    return next((flag.name for flag in flags() if name in flag.former), name)
