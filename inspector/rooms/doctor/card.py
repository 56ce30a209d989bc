"""What the doctor shows on other pages. The conversation page gets the answers of providers in use,
and a warning at the top. The overview gets badges for messages that left memory before the model
saw them, and sentences about the newest cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from chatmemory.exceptions import CorruptRow
from chatmemory.explain.wording import capitalized, decapitalized, in_unit
from chatmemory.messages.texts import named
from chatmemory.models import Stay, Step
from chatmemory.reading.clients import ids_of_clients
from chatmemory.reading.rows import MemoryRow
from chatmemory.testing.snippets import accepted_by
from chatmemory.windows.stored_policies import can_decide
from inspector import demo
from inspector.conversation.as_test import copied_test
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import Choices, choices
from inspector.rooms.doctor.diagnosing import (
    NOT_KNOWN,
    KnownDiagnosis,
    diagnosis_of_rows,
    kept_diagnosis,
    known_diagnosis,
    stay_of_system,
)
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.providers import LATELY_STEPS
from inspector.rooms.doctor.reads import (
    conversations_by_provider,
    missed_steps,
    would_find_beside,
)
from inspector.rooms.doctor.using import InUse
from inspector.shell.room import Badge, Fragment, Part, Place
from inspector.shell.state import ConversationState

SECTION = "providers"  # the name of the folded section


def known(view: ConversationState) -> KnownDiagnosis:
    """Return the diagnosis of the window that a page shows. The result is cached in `view`, so that
    each page reads it only once.
    """
    if "doctor" not in view.read:
        view.read["doctor"] = _known(view)
    found: KnownDiagnosis = view.read["doctor"]
    return found


def _known(view: ConversationState) -> KnownDiagnosis:
    if view.is_simulated:
        known = {draft.seq: draft.message for draft in view.simulation.drafts}
        if view.contents.index and view.is_index_new:
            known[view.contents.index.seq] = view.contents.index.index.message()
        return diagnosis_of_rows(view.memory.id, view.step.n, view.window.seqs, known)
    is_shown = view.is_live or view.selection.row or not view.shown.marks.phrase
    return known_diagnosis(view.stored) if is_shown else NOT_KNOWN


def _made(view: ConversationState) -> Choices:
    if "providers" not in view.read:
        view.read["providers"] = choices()
    found: Choices = view.read["providers"]
    return found


def use_of(view: ConversationState) -> InUse:
    return _made(view).of(view.memory.id)


def parts(view: ConversationState) -> Iterator[Part]:
    """Yield a section for the answers of the providers. While the section is folded, the answers
    are not computed.

    On a live page, which shows the newest step, also yield a warning if a provider in use would
    reject the window. There is no warning while nobody has chosen the providers in use.
    """
    place = Place.BELOW_TEXT if view.selection.row else Place.BELOW_STEP
    is_open, use = SECTION in view.query.open, use_of(view)
    is_flagged = view.is_live and use.is_chosen
    is_awaited = (is_open or is_flagged) and not known(view).is_current
    context = _answers(view) if is_open else {}
    yield Part("rooms/doctor/_providers.html", context, place, awaits=is_awaited)
    refusing = known(view).under(use) if is_flagged else NOT_KNOWN
    if refusing.refused_by:
        context = {
            "refused": words.refused(refusing),
            "memory": view.memory,
            "by_client": bool(ids_of_clients([view.memory.id])),
        }
        yield Part("rooms/doctor/_refused.html", context, Place.FLAG)
        if refusing.diagnosis:
            report = {**context, "say": words.refusal(refusing)}
            yield Part("rooms/doctor/_report.html", report, Place.REPORT)


def _answers(view: ConversationState) -> dict[str, object]:
    found, use = known(view), use_of(view)
    answers = words.answers(found.diagnosis, use) if found.diagnosis else []
    return {"answers": answers, "known": found, "use": use, "test": _test(view, found)}


def _test(view: ConversationState, found: KnownDiagnosis) -> str:
    """Return the code of a test that the chosen providers accept the conversation; "" if none of
    them rejects it now.
    """
    use = use_of(view)
    refused = found.under(use).refused_by if use.is_chosen and not view.is_simulated else ()
    if not refused:
        return ""
    asserted = [accepted_by(refused)]
    return copied_test(view.memory.id, view.memory.policy, "is accepted", asserted)


def badges(rows: Sequence[MemoryRow]) -> Mapping[str, Iterable[Badge]]:
    missed = missed_steps([row.id for row in rows], LATELY_STEPS)
    return {
        memory_id: [Badge("rooms/doctor/_missed.html", {"id": memory_id, "step": step})]
        for memory_id, step in missed.items()
    }


def who_refuses(memory_id: str) -> str:
    """Say which providers reject the memory of a conversation, and why: `OpenAI rejects this
    memory: a tool call without its result (#5)`. "" if no provider does.
    """
    found = _kept_findings(memory_id)
    if found is None or not found.refused_by:
        return ""
    problem = next(each for each in found.listed if each.refused_by)
    verb = "rejects" if len(found.refused_by) == 1 else "reject"
    title = decapitalized(words.problem_title(problem.rule))
    place = f" ({named(problem.seq)})" if problem.seq else ""
    return (
        f"{capitalized(words.provider_names(found.refused_by))} {verb} this memory: {title}{place}"
    )


def refused_at(rule: str, memory_id: str) -> str:
    """Return the words `message #5 breaks the rule` for the message by which memory breaks a rule;
    "" if there is no such message.
    """
    found = _kept_findings(memory_id)
    broken = (each for each in found.listed if each.refused_by) if found else ()
    seq = next((each.seq for each in broken if each.rule == rule), None)
    return f"message {named(seq)} breaks the rule" if seq else ""


def _kept_findings(memory_id: str) -> Diagnosis | None:
    """Return the stored diagnosis of a conversation, limited to its providers in use. None if no
    diagnosis is stored, or if it cannot be read.
    """
    row = KeptDiagnosis.objects.filter(pk=memory_id).first()
    with suppress(CorruptRow):
        return kept_diagnosis(row).under(choices().of(memory_id)) if row else None
    return None


def never_reached(memory_id: str) -> str:
    """Describe the newest message that left memory in the step that added it. Return "" if no
    recent step has such a message.

    Example: `#12 (1,427 tokens) left memory in the step that added it: the limit is 300 tokens`.
    """
    row = KeptDiagnosis.objects.filter(pk=memory_id, missed_step__isnull=False).first()
    if row is None:
        return ""
    step = Step.objects.filter(memory_id=memory_id, n=row.missed_step or 0).first()
    if step is None or not can_decide(step.policy):
        return ""
    missed = Stay.objects.filter(memory_id=memory_id, left_step=step.n, entered_step=step.n)
    stay = missed.order_by("-n").first()
    if stay is None:
        return ""
    limit = in_unit(step.policy.limit, step.policy)
    if step.policy.unit != "tokens":
        return f"{named(stay.seq)} left memory in the step that added it: the limit is {limit}"
    system = stay_of_system(step)
    beside = f", and the system message has {system.tokens:,}" if system else ""
    left = f"{named(stay.seq)} ({stay.tokens:,} tokens) left memory in the step that added it"
    return f"{left}: the limit is {limit}{beside}"


def questions() -> Iterator[Fragment]:
    """Yield the form that asks which providers are in use. Yield nothing if the providers are
    already chosen, or if no provider would reject any conversation.

    Example conversations do not count.
    """
    if not choices().is_made and (refused := would_find_beside(demo.ids())):
        rows = words.provider_rows(None, refused, conversations_by_provider())
        yield Fragment("rooms/doctor/_question.html", {"rows": rows})
