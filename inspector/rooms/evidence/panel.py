"""The cards of incidents and of lost terms in the side panel of the conversation page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chatmemory import CorruptRow
from inspector.rooms.evidence.card import IncidentCard, UsedTerms
from inspector.rooms.evidence.compactions import evidence_at
from inspector.rooms.evidence.lost import EvidenceCard
from inspector.rooms.evidence.report import incidents_shown
from inspector.shell.room import Part, Place
from inspector.shell.state import ConversationState

FOLDER = "rooms/evidence"


def cards(view: ConversationState) -> Iterator[Part]:
    """Yield the cards for a stored step. There are none in a simulation or while a message is
    selected.
    """
    if view.is_simulated or view.selection.row:
        return
    for read in (_lost, _incidents):
        try:
            yield from read(view)
        except CorruptRow as error:
            yield _card("_unreadable", unreadable=str(error))


def _card(name: str, **context: object) -> Part:
    return Part(f"{FOLDER}/{name}.html", context, Place.CARD)


def _lost(view: ConversationState) -> Iterator[Part]:
    """Yield the card of the terms that the step's summary lost. While the terms are not known yet,
    yield a note instead.
    """
    if view.step.detail is None or view.step.detail.row.kind != "compact":
        return
    found = evidence_at(view.stored.memory, view.step.n, "terms" in view.query.room_parameters)
    if found is None:
        yield _card("_not_known")
        return
    card = EvidenceCard(found, view.step.detail.row, is_over=view.memory.is_imported)
    yield replace(_card("_evidence", card=card), asks_to_be_seen=True)


def _incidents(view: ConversationState) -> Iterator[Part]:
    """Yield the incident cards of the conversation page.

    A card shows one incident only if the URL names an incident, or if the newest incident is at the
    shown step. Further cards show unseen uses of facts, and up to which step the incidents are
    known.
    """
    found = incidents_shown(view)
    if not found:
        if view.memory.last_step:
            yield Part(f"{FOLDER}/_not_found_yet.html", {}, Place.BELOW_STEP, awaits=True)
        return
    shown = found.shown
    if shown and ("incident" in view.query.room_parameters or shown.incident.step == view.step.n):
        yield replace(_card("_incident", card=IncidentCard(view, shown)), asks_to_be_seen=True)
    if found.used.total:
        yield _card("_used", used=UsedTerms(view, found))
    if not found.is_current and (found.shown or found.used.total):
        yield _card("_until", until=found.until)
