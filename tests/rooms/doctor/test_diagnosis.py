"""A diagnosis has the linter's findings about the whole window, and depends on the ledger alone."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    CustomMessage,
    Image,
    ImageContent,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.ledger.windows import shown_message
from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import lint
from chatmemory.reading.windows import StoredState
from inspector.rooms.doctor.diagnosing import diagnosis_of
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.using import ALL
from inspector.rooms.doctor.words import answers

from ...conversations import CALL, RESULT, call, result
from ...ledger.test_any_changes import change, changes, create, undone
from ...ledger.test_any_changes import messages as plain_messages
from ...properties import examples

pytestmark = pytest.mark.database

ids = st.sampled_from(["a", "b", "c", None])
arguments = st.sampled_from(["{}", "{}", "[]", "{"])
requests = st.builds(ToolExecutionRequest, ids, st.just("find"), arguments)
messages = st.one_of(
    plain_messages,
    st.builds(UserMessage, st.sampled_from(["hi", "hi", " "])),
    st.builds(AiMessage, st.sampled_from(["hi", "", None])),
    st.builds(lambda each: AiMessage("see", each), st.lists(requests, min_size=1, max_size=3)),
    st.builds(lambda call: ToolExecutionResultMessage(call, "find", "found"), ids),
    st.just(UserMessage([ImageContent(Image(base64_data="AAAA", mime_type="image/tiff"))])),
)
lists = st.lists(messages, max_size=6)
adds = st.tuples(st.just("add"), lists)
repairs = st.tuples(st.just("repair"), st.sampled_from(list(PROVIDERS)))
all_changes = st.one_of(adds, adds, adds, changes, st.tuples(st.just("set"), lists), repairs)


def now() -> Diagnosis:
    return diagnosis_of(StoredState.of("m"))


def at_fault(step: int) -> set[tuple[str, int]]:
    """Return each rule that the window after a step breaks, with the messages named first."""
    stays = StoredState.of("m", step).stays.select_related("message")
    rows = [(stay.seq, shown_message(stay.message, stay.overrides)) for stay in stays]
    numbers, said = [seq for seq, _ in rows], [message for _, message in rows]
    return {
        (each.rule, numbers[each.positions[0]] if each.positions else 0)
        for provider in PROVIDERS
        for each in lint(said, provider=provider, numbers=numbers)
        if not each.is_pending
    }


APART = [CALL, CustomMessage({"a": 1}), RESULT, UserMessage("a"), UserMessage("a")]
COMBINED = [AiMessage("b"), result("x"), CustomMessage({"a": 1}), AiMessage("a"), call("x")]
IN_FRONT = [result("x"), AiMessage("a"), SystemMessage("b"), CustomMessage({"a": 1})]
BETWEEN = [AiMessage("a"), SystemMessage("b"), AiMessage("a"), SystemMessage("a")]


@examples(100)
@given(st.lists(all_changes, max_size=12))
@example([("add", BETWEEN)])
@example([("add", APART)])
@example([("add", COMBINED)])
@example([("client's list", IN_FRONT), ("client's list", [result("y"), *IN_FRONT])])
def test_after_any_changes_a_diagnosis_agrees_with_the_ledger(db, made):
    """What is found after each step is found at the end as of that step, unless words were redacted
    meanwhile; and a window breaks a rule from the step on that is named, not before. A diagnosis
    for answers gives the answers of the whole one.
    """
    with undone():
        create()
        found: dict[int, Diagnosis] = {}
        for kind, value in made:
            try:
                services.repair("m", value) if kind == "repair" else change(kind, value)
            except ChatMemoryError:
                continue
            if kind in ("make anew", "redact"):
                found.clear()
            diagnosis = now()
            assert Diagnosis.from_list(diagnosis.step, diagnosis.to_list()) == diagnosis
            found[diagnosis.step] = diagnosis
        for step, diagnosis in found.items():
            assert diagnosis_of(StoredState.of("m", step)) == diagnosis
            for_answers = diagnosis_of(StoredState.of("m", step), for_answers=True)
            assert answers(for_answers, ALL) == answers(diagnosis, ALL)
        for each in now().problems:
            if each.since is not None and each.rule != "shorter_than_a_turn":
                seq = each.seq
                assert (each.rule, seq) in at_fault(each.since), (each, made)
                assert (each.rule, seq) not in at_fault(each.since - 1), (each, made)
        assert verify("m") is None


@pytest.mark.long
def test_two_thousand_random_changes_verify_after_each(db):
    """Adds with repeated ids, sets, compactions and repairs, in sixty conversations."""
    random, done = Random(46), Counter[str]()
    kept = [UserMessage("a"), AiMessage("b"), SystemMessage("c"), call("x"), call("y"), result("x")]
    for _ in range(60):
        with undone():
            create()
            for _ in range(50):
                kind = random.choices(["add", "set", "compact", "repair"], [12, 1, 1, 2])[0]
                some = random.choices(kept, k=random.randint(1, 4))
                value = {"add": some, "set": some, "compact": 1, "repair": "openai"}[kind]
                try:
                    services.repair("m", value) if kind == "repair" else change(kind, value)
                except ChatMemoryError:
                    continue
                done[kind] += 1
                assert verify("m") is None
    assert done["add"] > 1_000
    assert min(done.values()) > 50, done
