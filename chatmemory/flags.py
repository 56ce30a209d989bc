"""The flags of conversations that need attention: the one list of them for pages, API and agents.

A message was never in memory that left in the step that added it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import F, Q
from django.utils.module_loading import import_string

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.recall.kinds import FORCED
from chatmemory.room import rooms

LATELY_STEPS = 40
ANY = "any"  # the name of the flag that a conversation has with at least one of others


def breaking(rule: str) -> Q:
    """Return the condition for a window that breaks a rule, as far as it was diagnosed."""
    return Q(keptdiagnosis__problems__contains=f",{rule},")


def lately(column: str) -> Q:
    """Return the condition for a step among the last ones."""
    return Q(**{f"keptdiagnosis__{column}__gt": F("last_step") - LATELY_STEPS})


class Losing:
    """The ids of the conversations whose summaries lost a term of the headline, read when they are
    asked for.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(import_string("chatmemory.queries.corpus.corpus_now")().losing)


_REFUSED = Q(keptdiagnosis__refused_by__gt=0)


@dataclass(frozen=True)
class Flag:
    """Why a conversation needs attention, in `words`, and the condition for it.

    One that `is_offered` is always among the filters of the overview; one that is `beside_doctor`
    is counted below the doctor's list; one that `is_any` is among those of which ANY is one. They
    are ordered by `place`. `icon` names its picture.
    """

    name: str
    words: str
    condition: Q
    icon: str = ""
    is_offered: bool = False
    beside_doctor: bool = False
    is_any: bool = True
    place: int = 0

    def __str__(self) -> str:
        return self.name


USER_REPEATED = Flag(
    "user_repeated",
    FORCED.title,
    Q(keptincidents__newest_at__isnull=False),
    icon="again",
    is_offered=True,
    beside_doctor=True,
    place=10,
)
COMPACTED_WITH_LOSS = Flag(
    "compacted_with_loss",
    "Compacted with loss",
    Q(keptcompactions__terms_lost__gt=0) & Q(id__in=Losing()),
    icon="again",
    is_offered=True,
    beside_doctor=True,
    place=20,
)
NEVER_IN_MEMORY = Flag(
    "never_in_memory",
    "Never reached the model",
    lately("missed_step"),
    icon="out",
    is_offered=True,
    beside_doctor=True,
    place=30,
)
OVERSIZED = Flag(
    "oversized",
    "Oversized message",
    lately("oversized_step"),
    icon="big",
    beside_doctor=True,
    place=40,
)
OVER_LIMIT = Flag(
    "over_limit",
    "Over the limit",
    Q(window_load__gt=F("policy_limit")),
    icon="warn",
    beside_doctor=True,
    place=50,
)
DANGLING = Flag(
    "dangling",
    "Dangling tool call",
    _REFUSED & (breaking("dangling_call") | breaking("results_apart")),
    icon="broken",
    place=60,
)
ORPHANED = Flag(
    "orphaned",
    "Result without its call",
    _REFUSED & (breaking("orphan_result") | breaking("duplicate_result")),
    icon="broken",
    place=70,
)
REFUSED = Flag(
    "refused",
    "Refused by a provider",
    _REFUSED,
    icon="warn",
    is_offered=True,
    is_any=False,
    place=80,
)

# Names of the release before, which are still accepted
FORMER = {"said_again": USER_REPEATED.name}

OWN = (
    *(USER_REPEATED, COMPACTED_WITH_LOSS, NEVER_IN_MEMORY, OVERSIZED),
    *(OVER_LIMIT, DANGLING, ORPHANED, REFUSED),
)


def flags() -> tuple[Flag, ...]:
    """Return all flags in their order, those of the installed rooms among them."""
    others = sorted((*OWN, *(flag for room in rooms() for flag in room.flags)), key=_place)
    condition = reduce(or_, (each.condition for each in others if each.is_any))
    return (Flag(ANY, "Need attention", condition, is_offered=True, is_any=False), *others)


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
