"""The flags of conversations that need attention: the one list of them for pages, API and agents.

A message was never in memory that left in the step that added it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import F, Q

from chatmemory.exceptions import InvalidValue
from chatmemory.rooms import rooms

ANY = "any"  # the name of the flag that a conversation has with at least one of others


@dataclass(frozen=True)
class Flag:
    """Why a conversation needs attention, in `words`, and the condition for it, or what makes the
    condition when it is asked for.

    One that is `beside_doctor` is counted below the doctor's list; one that `is_any` is among those
    of which ANY is one. They are ordered by `place`. `icon` names its picture. A row of the
    overview shows those that are `in_rows`. It is red, unless it `is_fault` of nobody, such as a
    price, or `alarms` says that it is not one that counts yet.
    One with a `verb` is a cause with a line of its own on the overview: its `title`, and the verb,
    which leads to `route` of the inspector with the same filter. `newest` says what happened in a
    conversation that has it. When the case of a conversation began is known by `began_at`, a
    column with microseconds since 1970, or by `began_step`, one with the number of a step. Lists
    can be sorted by `newest_at`, another column of microseconds, if it has one. `former` are its
    names in the release before, which are still accepted.
    """

    name: str
    words: str
    condition: Q | Callable[[], Q]
    icon: str = ""
    beside_doctor: bool = False
    is_any: bool = True
    in_rows: bool = False
    alarms: Callable[[], bool] | None = None
    place: int = 0
    verb: str = ""
    route: str = ""
    title: str = ""
    newest: Callable[[str], str] | None = None
    began_at: str = ""
    began_step: str | Callable[[], str] = ""
    is_fault: bool = True
    newest_at: str = ""
    former: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def counts(self) -> bool:
        """Whether it is known whom it concerns: somebody has chosen, say, the providers in use."""
        return self.alarms is None or self.alarms()

    @property
    def is_red(self) -> bool:
        return self.is_fault and self.counts

    @property
    def step_column(self) -> str:
        """The column with the number of the step in which a case began; empty for none."""
        return self.began_step() if callable(self.began_step) else self.began_step

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition


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
    """Return all flags in their order, those of the installed rooms among them."""
    others = sorted((*OWN, *(flag for room in rooms() for flag in room.flags)), key=_place)

    def any_of_them() -> Q:
        return reduce(or_, (each.where for each in others if each.is_any))

    return (Flag(ANY, "Need attention", any_of_them, is_any=False), *others)


def _place(flag: Flag) -> int:
    return flag.place


def flag_named(name: str) -> Flag:
    """Return the flag with a name, also with one of the release before. Raises InvalidValue."""
    name = today(name)
    for flag in flags():
        if flag.name == name:
            return flag
    names = ", ".join(flag.name for flag in flags())
    raise InvalidValue(f"no flag has the name {name!r}: one of {names}")


def today(name: str) -> str:
    """Return the name that a flag has today, given that or one of the release before."""
    return next((flag.name for flag in flags() if name in flag.former), name)
