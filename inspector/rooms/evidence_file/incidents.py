"""The incidents in an evidence file: facts that were repeated after they left memory, each with the
limit that would have kept the fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from chatmemory import Policy, can_decide
from chatmemory.explain.reasons import how_it_left
from chatmemory.explain.wording import in_unit
from chatmemory.messages import texts
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.texts import question_in
from chatmemory.reading.rows import MessageDetail, StepDetail
from chatmemory.recall.incidents import Incident, IncidentKind, call_words, incident_words
from chatmemory.rooms import known_incidents
from inspector.conversation.as_test import copied_incident
from inspector.rooms.evidence_file.masking import Masker
from inspector.shell.advice import AdviceCard, advice_on

LISTED = 50  # incidents, the newest ones
WHOLE = "[redacted message]"


class Shown(NamedTuple):
    """What an evidence file shows: `rows` are its messages by seq, and `steps` its steps by number.

    `whole` has the seqs of messages whose whole text is masked. `masker` masks terms in all other
    texts.
    """

    memory_id: str
    rows: Mapping[int, MessageDetail]
    steps: Mapping[int, StepDetail]
    whole: frozenset[int]
    masker: Masker


def incident_cards(shown: Shown, advice: AdviceCard | None) -> list[JsonDict]:
    """Return cards for the newest incidents, at most 50, with masked texts. Incidents in which the
    assistant used a fact that was not in memory get no card.

    An incident gets a card only if the file has the message that repeats the fact, the step of this
    message, and the step at which the fact left memory.
    """
    found = [each for each in known_incidents(shown.memory_id) if _is_in(shown, each)]
    return [_card(shown, each, advice) for each in found[-LISTED:]]


def step_of_incident(memory_id: str) -> int | None:
    """Return the step of the newest known incident that can get a card (see `incident_cards`). None
    if there is no such incident.
    """
    steps = [each.step for each in known_incidents(memory_id) if _has_card(each)]
    return steps[-1] if steps else None


def _has_card(incident: Incident) -> bool:
    return incident.kind is not IncidentKind.USED_UNSEEN


def advice_in(memory_id: str, masker: Masker) -> tuple[AdviceCard | None, dict[str, str]]:
    """Return the advice about a conversation, and the sentences of this advice with masked texts.
    Return `(None, {})` if no room measures conversations.

    The keys of the sentences are:

    - `title`: what to do.
    - `cost`: the cost of today's policy.
    - `effect`: the effect of the advice.
    - `why`: the reason.
    - `measured`: on which conversations the advice was measured.
    """
    card = advice_on(memory_id)
    if card is None:
        return None, {}
    told = {
        "title": card.title,
        "cost": card.cost_of_today,
        "effect": card.effect,
        "why": card.why,
        "measured": card.measured_on,
    }
    return card, {name: masker.without_words(text) for name, text in told.items()}


def _is_in(shown: Shown, incident: Incident) -> bool:
    has_steps = {incident.shown.left_step, incident.step} <= shown.steps.keys()
    return has_steps and incident.again in shown.rows and _has_card(incident)


def _price(advice: AdviceCard | None, limit: int | None) -> str:
    """Return the cost of the limit that would have kept a fact, as the card of the advice says it.
    Return "" if the cost is unknown.
    """
    today = advice.advice.today.policy if advice and advice.advice.today else None
    if advice is None or today is None or today.meters_only or limit is None:
        return ""
    return advice.beside(advice.advice.at(replace(today, limit=limit))).keeps


def _card(shown: Shown, incident: Incident, advice: AdviceCard | None) -> JsonDict:
    is_masked = incident.again in shown.whole
    policy = shown.steps[incident.step].row.policy
    limit = incident.shown.keeping.limit if incident.shown.keeping else None
    text = shown.masker.text
    return {
        "what": "A masked term" if is_masked else text(incident.what),
        "happened": incident.words.happened if is_masked else incident.happened,
        "cost": "" if is_masked else text(call_words(incident)),
        "forced": incident.is_forced,
        "left": incident.shown.left_step,
        "step": incident.step,
        "path": list(_path(shown, incident)),
        "enough": in_unit(limit, policy) if limit and policy else "",
        "price": _price(advice, limit),
        "today": f"{policy.limit:,}" if policy and can_decide(policy) else "",
        "test": "" if is_masked else _test(shown, incident, policy),
    }


def _path(shown: Shown, incident: Incident) -> Iterator[JsonDict]:
    named = incident.messages
    label = "result" if incident.result else "said"
    yield _stop(shown, label, named.said, incident.fact)
    how = how_it_left(shown.steps[named.left_step].change, incident.shown.last)
    yield {"label": "left memory", "step": named.left_step, "text": how, "out": True}
    if named.asked:
        request = _text(shown, named.asked)
        yield {
            "label": "asked for",
            "seq": named.asked,
            "text": question_in(request),
            "out": True,
        }
    yield _stop(shown, incident.words.repeated, named.again, incident.fact)


def _stop(shown: Shown, label: str, seq: int, fact: str) -> JsonDict:
    quote = texts.quoted(_text(shown, seq), shown.masker.text(fact))
    return {"label": label, "seq": seq, "text": quote, "out": False}


def _text(shown: Shown, seq: int) -> str:
    """Return the masked text of a message. The text is masked before it is shortened."""
    row = shown.rows.get(seq)
    if row is None:
        return "…"
    return WHOLE if seq in shown.whole else shown.masker.text(row.readable)


def _test(shown: Shown, incident: Incident, policy: Policy | None) -> str:
    """Return Python code that tests for an incident. Return "" if the file lacks the first step, or
    if masking would change the code.
    """
    if min(shown.steps) != 1:
        return ""
    message_count = sum(
        row.origin == "SAID" for seq, row in shown.rows.items() if seq < incident.again
    )
    fact, why = incident.fact if incident.facts else "", incident_words(incident)
    about = incident.kind.value, fact, message_count, why
    test = copied_incident(shown.memory_id, policy, *about)
    return test if shown.masker.text(test) == test else ""
