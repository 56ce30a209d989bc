"""The tools with which agents read incidents and the terms that summaries lost."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.explain import wording
from chatmemory.explain.reasons import how_it_left
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.ledger.lookup import find_memory
from chatmemory.messages.texts import named
from chatmemory.reading import steps
from chatmemory.recall.incidents import Incident, incident_to_dict, incident_words
from chatmemory.recall.kinds import IncidentKind
from inspector.rooms.evidence import words
from inspector.rooms.evidence.api import EvidenceSerializer, evidence_fields
from inspector.rooms.evidence.compactions import (
    CompactionsUntil,
    compactions_now,
    shown_compactions,
)
from inspector.rooms.evidence.incidents import IncidentsUntil, incidents_now
from inspector.rooms.evidence.reads import UnseenUses, unseen_uses
from inspector.shell.agents import SIZE, Agent, Answer

SUMMARIES = 5  # in an answer


def incidents(agent: Agent, conversation: str) -> Answer:
    """List the facts and calls that left memory and came up again, the newest first.

    Each incident has the step at which the fact left, and the limit that would have kept the fact.
    This answers why an assistant asked again for something that it already knew.
    """
    known = incidents_now(agent.visible(conversation), QUICK_MESSAGES)
    found = [each for each in known.incidents if each.kind is not IncidentKind.USED_UNSEEN]
    used = _unseen_uses(conversation, known.incidents)
    shown = found[::-1][:SIZE]
    lines = [_counted(known, len(found), "incident")]
    lines += [_incident_words(conversation, each) for each in shown]
    lines += [f"{words.used_words(used)}."] if used.total else []
    at = shown[0].step if shown else None
    return Answer(
        lines,
        agent.page_of(conversation, at=at),
        incidents=[
            {**incident_to_dict(each), "url": agent.page_of(conversation, at=each.step)}
            for each in shown
        ],
        count=len(found) if _is_known(known) else None,
        used_without_mention=used.total if _is_known(known) else None,
        known_until=known.step,
        is_current=known.is_current,
    )


def _unseen_uses(conversation: str, incidents: Sequence[Incident]) -> UnseenUses:
    found = [each for each in incidents if each.kind is IncidentKind.USED_UNSEEN]
    newest = max((each.step for each in found), default=None)
    are_pairs = (fact.is_pair for each in found for fact in each.facts)
    return unseen_uses(find_memory(conversation), newest, are_pairs)


def what_did_summaries_lose(agent: Agent, conversation: str) -> Answer:
    """List the exact terms that the last five summaries lost and the assistant has needed again."""
    known = compactions_now(agent.visible(conversation), QUICK_MESSAGES)
    count, found = len(known.compactions), shown_compactions(known, SUMMARIES)
    lines, rows = [_counted(known, count, "compaction")], []
    for each in found:
        terms, level = each.terms, each.level
        lost = [term for term in each.listed if term.counts_at(level)][:SIZE]
        needed = wording.counted(len(terms.needed(level)), f"{level} term")
        lines.append(
            f"Step {each.evidence.step}: the summary #{each.evidence.summary} replaced "
            f"{each.evidence.replaced:,} messages. Of {needed} needed again, the summary "
            f"holds {terms.held(level):,}."
        )
        lines += [
            f"  lost: {term.term}, said in #{term.said}, used again in #{term.used}: "
            f"{words.came_back(term.back)}"
            for term in lost
        ]
        fields = EvidenceSerializer({**evidence_fields(each), "lost": lost}).data
        step, summary = each.evidence.step, each.evidence.summary
        url = agent.page_of(conversation, at=step)
        rows.append({"step": step, "seq": summary, **fields, "url": url})
    at = found[-1].evidence.step if found else None
    return Answer(
        lines,
        agent.page_of(conversation, at=at),
        summaries=rows,
        known_until=known.step,
        is_current=known.is_current,
    )


def _incident_words(conversation: str, incident: Incident) -> str:
    """Describe an incident, how its fact left memory, and the message in which the assistant had
    asked for the fact.
    """
    first = incident.shown
    left = steps.step(conversation, first.left_step).change
    request = (
        f"The assistant had asked for it in {named(incident.asked)}. " if incident.asked else ""
    )
    how = how_it_left(left, first.last)
    return f"{incident_words(incident)}. {request}How it left: {how}."


def _counted(known: IncidentsUntil | CompactionsUntil, count: int, what: str) -> str:
    """Return a count with the step up to which it is known, or that nothing is known yet."""
    if not _is_known(known):
        return "Not examined yet."
    until = "" if known.is_current else f" The conversation is known up to step {known.step:,}."
    return f"{wording.counted(count, what)}.{until}"


def _is_known(known: IncidentsUntil | CompactionsUntil) -> bool:
    return known.is_current or known.step > 0
