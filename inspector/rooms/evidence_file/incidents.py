"""The incidents of an evidence file: facts that left memory and came up again, and a limit that
would have kept each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from chatmemory import CorruptRow, Policy, can_decide
from chatmemory.conf import fact_words
from chatmemory.explain import receipts
from chatmemory.explain.reasons import why_left
from chatmemory.explain.receipts import NEEDED
from chatmemory.explain.wording import in_unit
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages import texts
from chatmemory.messages.estimators import count_overhead, estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.texts import asked_for
from chatmemory.reading.rows import MessageDetail, StepDetail
from chatmemory.recall.history import History, history_from
from chatmemory.recall.incidents import (
    Incident,
    IncidentKind,
    MemoryTime,
    StepMessage,
    call_words,
    incident_words,
    incidents_of,
    with_limits,
)
from inspector.conversation.as_test import copied_incident
from inspector.rooms.evidence_file.masking import Masker

LISTED = 50  # incidents, the newest ones
WHOLE = "[redacted message]"


class Shown(NamedTuple):
    """The parts of a file from which its sentences are made: messages by seq, steps by number, and
    the mask. `whole` are the messages whose text is left out.
    """

    memory_id: str
    rows: Mapping[int, MessageDetail]
    steps: Mapping[int, StepDetail]
    whole: frozenset[int]
    masker: Masker


def incident_cards(shown: Shown) -> list[dict[str, Any]]:
    """Return the incidents of users and tools as masked cards."""
    found = [each for each in _found(shown) if each.shown.left_step in shown.steps]
    return [_card(shown, each) for each in found[-LISTED:]]


def _found(shown: Shown) -> list[Incident]:
    """Return the incidents among the messages of the file, with their limits if the file
    begins with step 1.
    """
    read = [(row, message) for row in shown.rows.values() if (message := _message(row))]
    if not read:
        return []
    history = _history(read)
    each = zip(read, history.read, strict=True)
    arrivals = [
        StepMessage(row.seq, row.visits[0][0], message, facts, row.origin == "SAID")
        for (row, message), facts in each
        if row.visits
    ]
    times = [MemoryTime(row.seq, *visit) for row, _ in read for visit in row.visits]
    found = incidents_of(arrivals, times)
    found = [each for each in found if each.kind is not IncidentKind.USED_UNSEEN]
    is_all = min(shown.steps) == 1
    return _with_limits(found, history, shown.steps) if is_all else found


def _message(row: MessageDetail) -> ChatMessage | None:
    with suppress(CorruptRow):
        return row.message
    return None


def _history(read: Sequence[tuple[MessageDetail, ChatMessage]]) -> History:
    seqs, tokens = [row.seq for row, _ in read], [row.tokens for row, _ in read]
    overhead = count_overhead(estimator_for("gpt-4o"))
    return history_from([each for _, each in read], tokens, overhead, seqs, fact_words())


def _with_limits(
    found: Sequence[Incident], history: History, steps: Mapping[int, StepDetail]
) -> list[Incident]:
    """Return incidents with the limits of the policies in force at their steps."""
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    for place, each in enumerate(found):
        policy = steps[each.step].row.policy if each.step in steps else None
        if policy is not None and can_decide(policy) and not _by_client(each, steps):
            by_policy[policy].append(place)
    limited = list(found)
    for policy, places in by_policy.items():
        some = [found[place] for place in places]
        for place, each in zip(places, with_limits(some, history, policy), strict=True):
            limited[place] = each
    return limited


def _by_client(incident: Incident, steps: Mapping[int, StepDetail]) -> bool:
    left = steps.get(incident.shown.left_step)
    return left is None or left.change.by_client


def _card(shown: Shown, incident: Incident) -> dict[str, Any]:
    is_masked = incident.again in shown.whole
    policy = shown.steps[incident.step].row.policy if incident.step in shown.steps else None
    limit = incident.shown.keeping.limit if incident.shown.keeping else None
    text = shown.masker.text
    return {
        "what": "A masked term" if is_masked else text(incident.what),
        "happened": incident.words.happened,
        "cost": "" if is_masked else text(call_words(incident)),
        "forced": incident.is_forced,
        "left": incident.shown.left_step,
        "step": incident.step,
        "path": list(_path(shown, incident)),
        "enough": in_unit(limit, policy) if limit and policy else "",
        "today": f"{policy.limit:,}" if policy and can_decide(policy) else "",
        "test": "" if is_masked else _test(shown, incident, policy),
    }


def _path(shown: Shown, incident: Incident) -> Iterator[dict[str, Any]]:
    first = incident.shown
    label = "result" if incident.result else "said"
    yield _stop(shown, label, first.said, incident.fact)
    how = _how_it_left(shown.steps[first.left_step].change, first.last)
    yield {"label": "left", "step": first.left_step, "text": how, "out": True}
    if incident.asked:
        request = _text(shown, incident.asked)
        yield {
            "label": "asked for",
            "seq": incident.asked,
            "text": asked_for(request),
            "out": True,
        }
    yield _stop(shown, incident.words.short, incident.again, incident.fact)


def _how_it_left(change: ChangeResult, seq: int) -> str:
    """Return `when #43 arrived: 55 over the limit`, or the cause if there was room."""
    arrived = [each.seq for each in change.arrived if each.seq != seq]
    when = f"when {texts.named(arrived[0])} arrived: " if len(arrived) == 1 else ""
    over = next((line.label for line in receipts.receipt(change) if line.kind == "over"), "")
    return f"{when}{over.removeprefix(NEEDED).strip() or why_left(change, seq).cause}"


def _stop(shown: Shown, label: str, seq: int, fact: str) -> dict[str, Any]:
    quote = texts.quoted(_text(shown, seq), shown.masker.text(fact))
    return {"label": label, "seq": seq, "text": quote, "out": False}


def _text(shown: Shown, seq: int) -> str:
    """Return the masked text of a message. It is masked before it is shortened."""
    row = shown.rows.get(seq)
    if row is None:
        return "…"
    return WHOLE if seq in shown.whole else shown.masker.text(row.readable)


def _test(shown: Shown, incident: Incident, policy: Policy | None) -> str:
    """Return the incident as a test, or "" if a part of it is masked."""
    if min(shown.steps) != 1:
        return ""
    said_before = sum(
        row.origin == "SAID" for seq, row in shown.rows.items() if seq < incident.again
    )
    fact, why = incident.fact if incident.facts else "", incident_words(incident)
    about = incident.kind.value, fact, said_before, why
    test = copied_incident(shown.memory_id, policy, *about)
    return test if shown.masker.text(test) == test else ""
