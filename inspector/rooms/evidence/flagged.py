"""The flags of conversations with an incident, or with a summary that lost a term."""

from __future__ import annotations

from django.db.models import Q

from chatmemory.flag import Flag, Line
from chatmemory.recall.kinds import FORCED

_HAVING = Q(keptincidents__newest_at__isnull=False)


def _losing() -> Q:
    """Return the condition for conversations whose summaries lost a term of the headline."""
    from inspector.rooms.evidence.corpus import corpus_now

    return Q(keptcompactions__terms_lost__gt=0, id__in=corpus_now().losing)


def _newest_said_again(memory_id: str) -> str:
    from inspector.rooms.evidence.lists import newest_said_again

    return newest_said_again(memory_id)


USER_REPEATED = Flag(
    "user_repeated",
    FORCED.title,
    _HAVING,
    icon="again",
    beside_doctor=True,
    place=10,
    line=Line(
        "Compare limits…",
        "lab",
        newest=_newest_said_again,
        began_at="keptincidents__newest_at",
    ),
    newest_at="keptincidents__newest_at",
    former=("said_again",),
)
COMPACTED_WITH_LOSS = Flag(
    "compacted_with_loss",
    "Compacted with loss",
    _losing,
    icon="again",
    beside_doctor=True,
    place=20,
)
USER_SUPPLIED = Flag(
    "user_supplied",
    "Users repeated facts from tool results",
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
FLAGS = (USER_REPEATED, COMPACTED_WITH_LOSS, USER_SUPPLIED, CALL_REPEATED)
