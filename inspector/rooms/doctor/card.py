"""What the doctor says on other pages: the verdicts of providers in use, a flag in the head, and
messages that never reached the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chatmemory.queries import ConversationState, MemoryRow
from chatmemory.testing.snippets import accepted_by
from inspector.conversation.as_test import copied_test
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import Choices, choices
from inspector.rooms.doctor.diagnosing import (
    NOT_KNOWN,
    KnownDiagnosis,
    diagnosis_of_rows,
    known_diagnosis,
)
from inspector.rooms.doctor.flagged import LATELY_STEPS
from inspector.rooms.doctor.reads import missed_steps
from inspector.rooms.doctor.using import InUse
from inspector.shell.room import Badge, Card, Link, Section


def known(view: ConversationState) -> KnownDiagnosis:
    """Return what is known of the window that a page shows, read once."""
    if "doctor" not in view.read:
        view.read["doctor"] = _known(view)
    found: KnownDiagnosis = view.read["doctor"]
    return found


def _known(view: ConversationState) -> KnownDiagnosis:
    if view.is_simulated:
        drafts = {draft.seq: draft.message for draft in view.drafts}
        return diagnosis_of_rows(view.memory.id, view.at, view.window.seqs, drafts)
    is_shown = view.is_live or not view.query.find or view.query.msg
    return known_diagnosis(view.stored) if view.stored and is_shown else NOT_KNOWN


def _made(view: ConversationState) -> Choices:
    if "providers" not in view.read:
        view.read["providers"] = choices()
    found: Choices = view.read["providers"]
    return found


def use_of(view: ConversationState) -> InUse:
    return _made(view).of(view.memory.id)


def cards(view: ConversationState) -> Iterator[Card]:
    if note := _repaired(view):
        yield Card("rooms/doctor/_toast.html", {"note": note, "memory": view.memory})
    yield Card("rooms/doctor/_providers.html", _answers(view), is_below=True)


def _repaired(view: ConversationState) -> str:
    """Return what the newest step says, if that is the repair which the address names."""
    row = view.detail.row if view.detail and view.is_live and not view.is_simulated else None
    named = view.query.of_rooms.get("repaired")
    return row.note if row and row.kind == "repair" and named == str(view.at) else ""


def sections(view: ConversationState) -> Iterator[Section]:
    yield Section("rooms/doctor/_providers.html", _answers(view))


def _answers(view: ConversationState) -> dict[str, object]:
    found, use = known(view), use_of(view)
    answers = words.answers(found.diagnosis, use) if found.diagnosis else []
    return {"answers": answers, "known": found, "use": use, "test": _test(view, found)}


def _test(view: ConversationState, found: KnownDiagnosis) -> str:
    """Return what chosen providers refuse as a test of a project; empty if they accept it."""
    use = use_of(view)
    refused = found.under(use).refused_by if use.is_chosen and not view.is_simulated else ()
    if not refused:
        return ""
    asserted = [accepted_by(refused)]
    return copied_test(view.memory.id, view.memory.policy, "is accepted", asserted)


def links(view: ConversationState) -> Iterator[Link]:
    """Yield the flag of a window that a provider in use refuses now, once they are chosen."""
    use = use_of(view)
    found = known(view).under(use) if view.is_live and use.is_chosen else NOT_KNOWN
    if found.refused_by:
        context = {"refused": words.refused(found), "memory": view.memory}
        yield Link("rooms/doctor/_refused.html", context, is_flag=True)


def badges(rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
    missed = missed_steps([row.id for row in rows], LATELY_STEPS)
    return {
        memory_id: [Badge("rooms/doctor/_missed.html", {"id": memory_id, "step": step}, True)]
        for memory_id, step in missed.items()
    }
