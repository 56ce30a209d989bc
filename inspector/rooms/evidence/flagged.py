"""The flags of conversations in which something came up again, or a summary lost something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from chatmemory.core.recall.kinds import FORCED
from chatmemory.flags import Flag

if TYPE_CHECKING:
    from chatmemory.models import Memory

_HAVING = Q(keptincidents__newest_at__isnull=False)


def _losing() -> Q:
    """Return the condition for conversations whose summaries lost a term of the headline."""
    from inspector.rooms.evidence.corpus import corpus_now

    return Q(keptcompactions__terms_lost__gt=0, id__in=corpus_now().losing)


def _newest() -> tuple[Memory, str] | None:
    from inspector.rooms.evidence.lists import newest_conversation

    return newest_conversation(_HAVING)


USER_REPEATED = Flag(
    "user_repeated",
    FORCED.title,
    _HAVING,
    icon="again",
    beside_doctor=True,
    place=10,
    verb="Raise limits…",
    route="lab",
    newest=_newest,
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
FLAGS = (USER_REPEATED, COMPACTED_WITH_LOSS)
