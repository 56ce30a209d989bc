"""The flags of conversations that need attention: the one list of them for pages, API and agents.

A message was never in memory that left in the step that added it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import F, Q
from django.utils.module_loading import import_string

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.recall.kinds import FORCED
from chatmemory.room import rooms

ANY = "any"  # the name of the flag that a conversation has with at least one of others


class Losing:
    """The ids of the conversations whose summaries lost a term of the headline, read when they are
    asked for.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(import_string("chatmemory.queries.corpus.corpus_now")().losing)


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
    column with microseconds since 1970, or by `began_step`, one with the number of a step.
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


def _who_repeated_what(memory_id: str) -> str:
    found: str = import_string("chatmemory.explain.incidents.newest_said_again")(memory_id)
    return found


USER_REPEATED = Flag(
    "user_repeated",
    FORCED.title,
    Q(keptincidents__newest_at__isnull=False),
    icon="again",
    beside_doctor=True,
    place=10,
    verb="Raise limits…",
    route="lab",
    title="Users repeated themselves",
    newest=_who_repeated_what,
    began_at="keptincidents__newest_at",
)
USER_SUPPLIED = Flag(
    "user_supplied",
    "Users supplied what a tool had said",
    Q(keptincidents__user_supplied__gt=0),
    icon="again",
    is_any=False,
    is_fault=False,
    place=22,
)
CALL_REPEATED = Flag(
    "call_repeated",
    "Tools called again",
    Q(keptincidents__call_repeated__gt=0),
    icon="again",
    is_any=False,
    is_fault=False,
    place=24,
)
COMPACTED_WITH_LOSS = Flag(
    "compacted_with_loss",
    "Compacted with loss",
    Q(keptcompactions__terms_lost__gt=0) & Q(id__in=Losing()),
    icon="again",
    beside_doctor=True,
    place=20,
)
OVER_LIMIT = Flag(
    "over_limit",
    "Over the limit",
    Q(window_load__gt=F("policy_limit")),
    icon="warn",
    beside_doctor=True,
    place=50,
)
# Names of the release before, which are still accepted
FORMER = {"said_again": USER_REPEATED.name}

OWN = (USER_REPEATED, COMPACTED_WITH_LOSS, USER_SUPPLIED, CALL_REPEATED, OVER_LIMIT)


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
    name = FORMER.get(name, name)
    for flag in flags():
        if flag.name == name:
            return flag
    names = ", ".join(flag.name for flag in flags())
    raise InvalidValue(f"no flag has the name {name!r}: one of {names}")
