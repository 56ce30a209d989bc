"""The flags of conversations that need attention: the one list of them for pages, API and agents.

A message was never in memory if it left in the step that added it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import F, Q

from chatmemory.exceptions import InvalidValue
from chatmemory.rooms import rooms

ANY = "any"  # the flag of conversations with at least one of the others


@dataclass(frozen=True)
class Flag:
    """A reason why a conversation needs attention, in `words`, with its condition, or a function
    that returns the condition.

    A flag `beside_doctor` is counted below the doctor's list. ANY includes the flags with `is_any`.
    Flags are ordered by `place`. `icon` is the name of its picture. Rows of the overview show the
    flags with `in_rows`. A flag is red unless `is_fault` is False, such as for a price, or `alarms`
    returns False because it does not count yet. A flag with a `verb` is a cause, which has a line
    of its own on the overview: its `title`, and the verb (a text, or a function that returns it), a
    link to `route` of the inspector with the same filter. `newest` returns a sentence about the
    latest case in a conversation. The beginning of a conversation's case is in the column
    `began_at` (microseconds since 1970) or `began_step` (the number of a step). Lists can be sorted
    by `newest_at`, another column of microseconds, if there is one. `former` are its names in the
    previous release, which are still accepted.
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
    verb: str | Callable[[], str] = ""
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
        """Whether the flag counts already: some count only once the providers in use are chosen."""
        return self.alarms is None or self.alarms()

    @property
    def is_red(self) -> bool:
        return self.is_fault and self.counts

    @property
    def step_column(self) -> str:
        """The column with the number of the step in which a case began, or ""."""
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
    names = ", ".join(flag.name for flag in flags())
    raise InvalidValue(f"no flag has the name {name!r}: one of {names}")


def today(name: str) -> str:
    """Return the current name of a flag, given that or its name in the release before."""
    return next((flag.name for flag in flags() if name in flag.former), name)
