"""The terms that compactions of stored conversations lost, compared with sessions and incidents."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from itertools import count

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, MessageWindow, NotCompactable, UserMessage, services
from chatmemory.formats import Reading, Transcript, read_transcripts
from chatmemory.keeping import current
from chatmemory.ledger import protocol
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.models import Memory, Message, Step
from chatmemory.reading import history, windows
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.compactions import APPENDED, TAILS, Level, ReturnedBy, compaction_evidence
from chatmemory.recall.facts import facts_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.windows.eviction import Reason
from inspector.rooms.evidence import stretches
from inspector.rooms.evidence.compactions import CompactionKeeper, evidence_of
from inspector.rooms.evidence.flagged import COMPACTED_WITH_LOSS
from inspector.rooms.evidence.models import KeptCompactions
from inspector.rooms.transfer.imports import import_all
from tests.conversations import create_and_add, users
from tests.counting_calls import CountedLines
from tests.properties import examples
from tests.recall.test_compaction_evidence import sessions, tool

pytestmark = pytest.mark.django_db
NUMBERS = count()
LEVELS = (Level.ALL, Level.TOLD)


def figures(found):
    """All that is counted of a compaction, by level."""
    return {
        level: (
            len(found.needed(level)),
            [found.held(level, terms) for terms in (0, *APPENDED)],
            [found.in_tail(tokens, level) for tokens in TAILS],
        )
        for level in LEVELS
    }


def term_rows(terms, first=0):
    """Terms with their messages, counted from the first."""
    return [
        (
            each.term,
            each.said + first,
            each.used + first,
            each.back,
            each.came and each.came + first,
        )
        for each in terms
    ]


def kept_evidence(memory_id):
    """What is kept of each compaction of a conversation, in the order of steps."""
    services.keep(memory_id)
    steps = Step.objects.filter(memory=memory_id, kind="compact").order_by("n")
    found = [evidence_of(memory_id, n) for n in steps.values_list("n", flat=True)]
    return [each for each in found if each]


def check_same(memory_id, session):
    expected = compaction_evidence(session)
    found = kept_evidence(memory_id)
    assert len(found) == len(expected)
    for kept, each in zip(found, expected, strict=True):
        evidence = kept.evidence
        assert figures(kept.terms) == figures(each)
        assert evidence.why_left_out == each.why_left_out
        assert evidence.dropped_count == len(each.dropped)
        assert term_rows(kept.listed) == term_rows(each.lost()[:100], first=1)
    lost = sum(len(each.lost(Level.TOLD)) for each in expected if not each.why_left_out)
    assert KeptCompactions.objects.get(memory=memory_id).terms_lost == lost
    measured = [each for each in found if not each.evidence.why_left_out]
    assert is_flagged(memory_id) == any(each.terms.lost(each.level) for each in measured)


def is_flagged(memory_id):
    which = MemoryFilter(flag=COMPACTED_WITH_LOSS)
    return which.rows().filter(id=memory_id).exists()


@given(sessions().filter(lambda session: session.messages))
@examples(20)
def test_an_imported_session_has_the_evidence_of_its_file(session):
    """Also where a program wrote messages, and cleared results before a compaction."""
    name = f"s{next(NUMBERS)}"
    said = [each for n, each in enumerate(session.messages) if n not in session.summaries]
    transcript = Transcript(name, tuple(said), session=session)
    (result,) = import_all(Reading("codex", (transcript,), ()))
    assert result.refused == ""
    check_same(name, session)


some_texts = st.sampled_from(["A-11", "src/b22/c33.go", "1200", "A-11 src/b22/c33.go"])
some_summaries = st.sampled_from(["A-112", "b22/c33.go", "A-11", "None."])
some_messages = st.one_of(
    *(st.builds(kind, some_texts) for kind in (UserMessage, AiMessage, AiMessage, tool))
)


@st.composite
def changes(draw):
    """Messages between summaries, each with how many messages it keeps."""
    script = []
    for _ in range(draw(st.integers(1, 3))):
        script += [("add", each) for each in draw(st.lists(some_messages, min_size=2, max_size=4))]
        script.append(("compact", draw(some_summaries), draw(st.integers(0, 2))))
    return [*script, *(("add", each) for each in draw(st.lists(some_messages, max_size=4)))]


def session_of(memory_id):
    """The session of a conversation, as the windows before and after each compaction tell it."""
    rows = Message.objects.filter(memory=memory_id).order_by("seq")
    stored = [history.message(memory_id, row.seq).message for row in rows]
    compactions = []
    for step in Step.objects.filter(memory=memory_id, kind="compact").order_by("n"):
        before = [row.seq - 1 for row in windows.window(memory_id, step.n - 1).rows]
        after = tuple(row.seq - 1 for row in windows.window(memory_id, step.n).rows)
        covered = tuple(seq for seq in before if seq not in after)
        compactions.append(Compaction(step.seq - 1, covered, after))
    return Session(tuple(stored), tuple(compactions))


def created(memory_id, script):
    services.create(memory_id, MessageWindow(5))
    apply_script(memory_id, script)


def apply_script(memory_id, script):
    for kind, *given_ in script:
        if kind == "add":
            services.add(memory_id, given_)
        else:
            with suppress(NotCompactable):
                services.compact(memory_id, given_[0], keep_last=given_[1])


@given(changes())
@examples(40)
def test_of_any_conversation_it_is_the_evidence_of_its_session(script):
    name = f"c{next(NUMBERS)}"
    created(name, script)
    if Memory.objects.get(id=name).last_step:
        check_same(name, session_of(name))


@given(changes())
@examples(60)
def test_incidents_and_evidence_do_not_contradict_each_other(script):
    name = f"i{next(NUMBERS)}"
    created(name, script)
    found = services.current_incidents(name).incidents
    lost = {each.evidence.step: term_rows(each.listed) for each in kept_evidence(name)}
    used = {
        (fact.fact, each.again, fact.left_step)
        for each in found
        for fact in each.facts
        if each.kind is IncidentKind.USED_UNSEEN and fact.cause is Reason.SUMMARIZED
    }
    for fact, _, step in used:
        assert fact in {term for term, *_ in lost[step]}
    session = session_of(name)
    said = [facts_of(message) for message in session.messages]
    for step, terms in lost.items():
        summary = Step.objects.get(memory=name, n=step).seq
        for term, _, use, back, _ in terms:
            told = any(
                term in said[n] and not isinstance(session.messages[n], AiMessage)
                for n in range(summary - 1)
                if n not in session.summaries
            )
            later = any(term in said[n] for n in session.summaries if summary - 1 < n < use)
            if back is ReturnedBy.UNKNOWN and told and not later:
                assert (term, use, step) in used


def test_an_incident_whose_fact_a_summary_lost_has_the_cause_summarized():
    create_and_add("a", MessageWindow(9), users("A-1182 in src/app2/main.go", "well", "well"))
    services.compact("a", "It is in app2/main.go.", keep_last=1)
    services.add("a", [AiMessage("A-1182 in src/app2/main.go?"), *users("A-1182!")])
    services.compact("a", "None.", keep_last=0)
    services.add("a", users("src/app2/main.go"))
    found = [
        (each.kind, each.fact, each.shown.left_step, each.shown.cause)
        for each in services.current_incidents("a").incidents
    ]
    assert found == [
        ("used_unseen", "A-1182", 4, Reason.SUMMARIZED),
        ("user_repeated", "src/app2/main.go", 7, Reason.SUMMARIZED),
    ]
    first, second = kept_evidence("a")
    assert term_rows(first.listed) == [("A-1182", 1, 5, ReturnedBy.UNKNOWN, None)]
    assert first.terms.held() == 1
    assert second.evidence.terms == ()


def test_a_message_that_a_client_injected_uses_nothing():
    protocol.update_messages("a", users("A-11", "well", "more"))
    protocol.update_messages("a", [UserMessage("In short."), *users("more")])
    window = [UserMessage("In short."), AiMessage("A-11"), *users("more")]
    protocol.update_messages("a", window)
    (found,) = kept_evidence("a")
    assert found.evidence.terms == ()


def test_a_redaction_takes_the_evidence_along():
    create_and_add("a", MessageWindow(9), users("My order is A-1182.", "well"))
    services.compact("a", "They asked.", keep_last=0)
    services.add("a", [AiMessage("A-1182 is here.")])
    assert [each.term for each in kept_evidence("a")[0].listed] == ["A-1182"]
    services.redact("a", 1)
    assert evidence_of("a", 3) is None
    assert kept_evidence("a")[0].evidence.terms == ()
    assert not is_flagged("a")


def test_the_newest_hundred_compactions_are_looked_at(monkeypatch):
    monkeypatch.setattr("inspector.rooms.evidence.losses.NEWEST_COMPACTIONS", 2)
    services.create("a", MessageWindow(9))
    for n in range(3):
        services.add("a", [tool(f"A-{n}{n}"), UserMessage("well")])
        services.compact("a", "In short.", keep_last=0)
    services.add("a", [AiMessage("A-00 A-11 A-22")])
    assert [each.evidence.step for each in kept_evidence("a")] == [6, 9]


def test_kept_messages_before_the_bounds_hold_their_terms(monkeypatch):
    monkeypatch.setattr(import_module("inspector.rooms.evidence.messages"), "NEWEST_MESSAGES", 3)
    create_and_add("a", MessageWindow(9), users("A-11", "B-22", "C-33", "D-44"))
    services.compact("a", "In short.", covering=[2, 3])
    services.add("a", [AiMessage("A-11 B-22 C-33"), AiMessage("well")])
    (found,) = kept_evidence("a")
    assert [each.term for each in found.listed] == ["B-22", "C-33"]


def row_of(memory_id):
    row = current(CompactionKeeper(), memory_id)
    return {name: value for name, value in vars(row).items() if name not in ("_state", "kept_at")}


@given(changes())
@examples(10)
def test_a_row_kept_after_each_change_is_the_one_made_once_at_the_end(script):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH", 2)
        name = f"k{next(NUMBERS)}"
        services.create(name, MessageWindow(5))
        for one in script:
            apply_script(name, [one])
            row = row_of(name)
        KeptCompactions.objects.filter(memory=name).delete()
        assert row_of(name) == row


def test_a_use_long_after_its_compaction_is_found_once_a_stretch_is_full(monkeypatch):
    monkeypatch.setattr(stretches, "STRETCH", 4)
    create_and_add("a", MessageWindow(9), users("My order is A-1182.", "well"))
    services.compact("a", "They asked.", keep_last=0)
    services.add("a", users(*["well"] * 6))
    assert not kept_evidence("a")[0].listed
    services.add("a", [AiMessage("A-1182 is here.")])
    assert not kept_evidence("a")[0].listed
    services.add("a", users("well", "well"))
    assert term_rows(kept_evidence("a")[0].listed) == [("A-1182", 1, 10, ReturnedBy.UNKNOWN, None)]


def test_a_change_costs_the_same_in_a_conversation_twice_as_long(monkeypatch):
    monkeypatch.setattr(stretches, "STRETCH", 10)

    def lines(stretches_long):
        name = f"long{stretches_long}"
        create_and_add(name, MessageWindow(4), users("My order is A-1182.", "well"))
        services.compact(name, "They asked.", keep_last=0)
        services.add(name, users(*(f"B-11{n}" for n in range(10 * stretches_long))))
        services.keep(name)
        services.add(name, [AiMessage("A-1182 is here.")])
        memory = Memory.objects.get(id=name)
        before = KeptCompactions.objects.get(memory=name)
        with CountedLines() as counted:
            CompactionKeeper().make(memory, before)
        return counted.count

    assert lines(8) < 1.2 * lines(4)


@pytest.mark.long
def test_real_sessions_have_the_evidence_of_their_files(claude_sessions):
    """One session lacks most of the replaced messages, and one was compacted twice."""
    call_command("import_transcripts", *map(str, claude_sessions), verbosity=0)
    for file in claude_sessions:
        (transcript,) = read_transcripts(file.read_bytes()).transcripts
        assert transcript.session
        check_same(Memory.objects.get(id__startswith=file.stem).id, transcript.session)
