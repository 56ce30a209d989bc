"""Flags conversations that providers in use would reject, and conversations with a message that was
too large for the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from django.db.models import F, Q

from chatmemory.flag import Alarm, Case, Flag, FlagCases, Line, PastCases, Shown
from chatmemory.messages.json_values import JsonDict
from inspector.rooms.doctor.providers import LATELY_STEPS
from inspector.shell.rooms import page_url

if TYPE_CHECKING:
    from chatmemory.reading.passage import Passage


def _lately(column: str) -> Q:
    """Return the condition that the step in a column of the diagnosis is one of the conversation's
    last 40 steps.
    """
    return Q(**{f"keptdiagnosis__{column}__gt": F("last_step") - LATELY_STEPS})


def _refused(*rules: str) -> Q:
    """Return the condition for windows that a provider in use rejects because of one of these
    rules. Without rules, any rule counts.
    """
    from inspector.rooms.doctor.choosing import choices

    made = choices()
    if not rules:
        return made.where()
    return reduce(or_, map(made.where, rules))


def _are_chosen() -> bool:
    """Return whether somebody has chosen providers. Until then no flag is red."""
    from inspector.rooms.doctor.choosing import choices

    return choices().is_made


def _never_reached(memory_id: str) -> str:
    from inspector.rooms.doctor.card import never_reached

    return never_reached(memory_id)


def _who_refuses(memory_id: str) -> str:
    from inspector.rooms.doctor.card import who_refuses

    return who_refuses(memory_id)


def _verb() -> str:
    return "Repair…" if page_url("repair-many") else "Show the causes"


def _begun(passage: Passage, state: JsonDict) -> Iterable[Case]:
    from inspector.rooms.doctor.past import refused

    return refused(passage, state)


def _version() -> str:
    from inspector.rooms.doctor.diagnosing import DiagnosisKeeper

    return DiagnosisKeeper().version()


def _in_use() -> Callable[[str, str], bool]:
    from inspector.rooms.doctor.past import counting

    return counting()


def _by_rule() -> list[Flag]:
    """Return a flag for each rule for which a provider in use rejects windows."""
    from inspector.rooms.doctor.by_rule import flags_by_rule

    return flags_by_rule(PAST)


PAST = PastCases("Rejected", _begun, _version, counting=_in_use)

FLAGS = (
    Flag(
        "never_in_memory",
        "Messages that never reached the model",
        _lately("missed_step"),
        icon="out",
        shown=(Shown.BELOW_DOCTOR,),
        place=30,
        line=Line(
            "Compare limits…",
            "lab",
            reads_ids=True,
            newest=_never_reached,
            began_step="keptdiagnosis__missed_step",
        ),
    ),
    Flag(
        "oversized",
        "Oversized message",
        _lately("oversized_step"),
        icon="big",
        shown=(Shown.IN_ROWS, Shown.BELOW_DOCTOR),
        place=40,
    ),
    Flag(
        "dangling",
        "Tool call without its result",
        lambda: _refused("dangling_call", "results_apart"),
        icon="broken",
        shown=(Shown.IN_ROWS,),
        alarm=Alarm(counts=_are_chosen),
        place=60,
    ),
    Flag(
        "orphaned",
        "Tool result without its tool call",
        lambda: _refused("orphan_result", "duplicate_result"),
        icon="broken",
        shown=(Shown.IN_ROWS,),
        alarm=Alarm(counts=_are_chosen),
        place=70,
    ),
    Flag(
        "refused",
        "A provider would reject",
        _refused,
        icon="warn",
        alarm=Alarm(is_any=False, counts=_are_chosen),
        place=5,
        line=Line(
            _verb,
            "doctor",
            title="Requests that a provider would reject now",
            newest=_who_refuses,
            began_at="keptdiagnosis__ill_at",
        ),
        cases=FlagCases(past=PAST, parts=_by_rule),
    ),
)
