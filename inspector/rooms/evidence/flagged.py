"""Flags conversations with an incident, or with a summary that lost a needed term."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from django.db.models import Q

from chatmemory.flag import Alarm, Case, Flag, FlagCases, Line, PastCases, Shown, Turns
from chatmemory.messages.json_values import JsonDict
from chatmemory.recall.kinds import FORCED

if TYPE_CHECKING:
    from chatmemory.reading.passage import Passage

_HAVING = Q(keptincidents__newest_at__isnull=False)


def _losing() -> Q:
    """Return the condition for conversations in which a summary lost a needed term. Only terms that
    pages count first matter, such as rare terms.
    """
    from inspector.rooms.evidence.corpus import corpus_now

    return Q(keptcompactions__terms_lost__gt=0, id__in=corpus_now().losing)


def _newest_said_again(memory_id: str) -> str:
    from inspector.rooms.evidence.lists import newest_said_again

    return newest_said_again(memory_id)


def _repeated(passage: Passage, state: JsonDict) -> Iterable[Case]:
    from inspector.rooms.evidence.past import repeated

    return repeated(passage)


def _lost(passage: Passage, state: JsonDict) -> Iterable[Case]:
    from inspector.rooms.evidence.past import lost

    return lost(passage)


def _incidents_version() -> str:
    from inspector.rooms.evidence.incidents import IncidentKeeper

    return IncidentKeeper().version()


def _compactions_version() -> str:
    from inspector.rooms.evidence.compactions import CompactionKeeper

    return CompactionKeeper().version()


def _losing_conversations() -> Callable[[str, str], bool]:
    from inspector.rooms.evidence.corpus import corpus_now

    losing = corpus_now().losing
    return lambda memory_id, detail: memory_id in losing


USER_REPEATED = Flag(
    "user_repeated",
    FORCED.title,
    _HAVING,
    icon="again",
    shown=(Shown.BELOW_DOCTOR,),
    place=10,
    line=Line(
        "Compare limits…",
        "lab",
        reads_ids=True,
        newest=_newest_said_again,
        began_at="keptincidents__newest_at",
    ),
    cases=FlagCases(
        newest_at="keptincidents__newest_at",
        past=PastCases("Users repeated", _repeated, _incidents_version, Turns.EVICTED),
    ),
    former=("said_again",),
)
COMPACTED_WITH_LOSS = Flag(
    "compacted_with_loss",
    "Summaries lost needed terms",
    _losing,
    icon="again",
    shown=(Shown.BELOW_DOCTOR,),
    place=20,
    cases=FlagCases(
        past=PastCases(
            "Lost by compaction",
            _lost,
            _compactions_version,
            Turns.COMPACTED,
            _losing_conversations,
        )
    ),
)
USER_SUPPLIED = Flag(
    "user_supplied",
    "Users repeated facts from tool results",
    Q(keptincidents__user_supplied__gt=0),
    icon="again",
    alarm=Alarm(is_any=False, is_fault=False),
    place=22,
)
CALL_REPEATED = Flag(
    "call_repeated",
    "Tool calls repeated after eviction",
    Q(keptincidents__call_repeated__gt=0),
    icon="again",
    alarm=Alarm(is_any=False, is_fault=False),
    place=24,
)
FLAGS = (USER_REPEATED, COMPACTED_WITH_LOSS, USER_SUPPLIED, CALL_REPEATED)
