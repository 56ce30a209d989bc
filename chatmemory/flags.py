"""Lists the flags (reasons why a conversation needs attention) for pages, the API and agents."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db.models import F, Q

from chatmemory.exceptions import InvalidValue
from chatmemory.flag import Alarm, Flag, Shown
from chatmemory.rooms import rooms

ANY = "any"  # the flag of conversations with at least one of the others


OVER_LIMIT = Flag(
    "over_limit",
    "Over the limit",
    Q(window_load__gt=F("policy_limit")),
    icon="warn",
    shown=(Shown.BELOW_DOCTOR,),
    place=50,
)
OWN = (OVER_LIMIT,)


def flags() -> tuple[Flag, ...]:
    """Return all flags in order, including the flags of the installed rooms."""
    others = sorted((*OWN, *(flag for room in rooms() for flag in room.flags)), key=_place)

    def any_of_them() -> Q:
        return reduce(or_, (each.where for each in others if each.alarm.is_any))

    return (Flag(ANY, "Problem with memory", any_of_them, alarm=Alarm(is_any=False)), *others)


def _place(flag: Flag) -> int:
    return flag.place


def flag_named(name: str) -> Flag:
    """Return the flag with this name. Names of the previous release are accepted. Raises
    InvalidValue for an unknown name.
    """
    name = today(name)
    if found := next((each for each in flags_and_parts(name) if each.name == name), None):
        return found
    names = ", ".join(flag.name for flag in flags())
    raise InvalidValue(f"no flag has the name {name!r}: use one of {names}")


def flags_and_parts(name: str) -> list[Flag]:
    """Return all flags. If `name` is the name of a part, such as "refused.dangling_call", the parts
    of its flag are appended.
    """
    found, (whole, dot, _) = list(flags()), name.partition(".")
    made = next((each.cases.parts for each in found if dot and each.name == whole), None)
    return [*found, *(made() if made else ())]


def today(name: str) -> str:
    """Return the current name of a flag. `name` may also be the flag's name in the previous
    release.
    """
    return next((flag.name for flag in flags() if name in flag.former), name)
