"""A policy made in Python costs what its estimator says, wherever it is given.

A request to o3-mini costs two tokens besides its messages, one to gpt-4o three.
"""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    UserMessage,
    policy_from_text,
    queries,
    recall,
    recall_curve,
    services,
)
from chatmemory.core.estimators import count_tokens, estimator_for
from chatmemory.core.written_policies import measured
from chatmemory.formats import Reading, Transcript
from chatmemory.ledger.verification import verify

ORDER = UserMessage("My order is A-1182.")
EXACT = count_tokens(estimator_for("o3-mini"), ORDER) + 2
GIVEN = TokenWindow(EXACT, estimator="o3-mini")
WRITTEN = policy_from_text(f"token_window:{EXACT},estimator=o3-mini")


READING = Reading("langchain4j", (Transcript("m", (ORDER,)),), ())


def adopted() -> None:
    services.create("m", MessageWindow(5))
    assert services.adopt_policy(queries.MemoryFilter(), GIVEN) == 1
    assert services.adopt_policy(queries.MemoryFilter(), GIVEN) == 0


WAYS = {
    "created": [lambda: services.create("m", GIVEN)],
    "changed": [
        lambda: services.create("m", MessageWindow(5)),
        lambda: services.change("m", policy=GIVEN),
    ],
    "adopted": [adopted],
    "created by default": [
        lambda: services.set_default_policy("", GIVEN),
        lambda: services.create("m"),
    ],
}
WITH_THE_ORDER = {
    "changed with an add": [
        lambda: services.create("m", MessageWindow(5)),
        lambda: services.change_and_add("m", [ORDER], policy=GIVEN),
    ],
    "branched": [
        lambda: services.create("source", MessageWindow(5)),
        lambda: services.branch("source", "m", [ORDER], policy=GIVEN),
    ],
    "imported": [lambda: services.import_conversation("m", [ORDER], GIVEN)],
    "imported from a file": [lambda: list(services.import_all(READING, GIVEN))],
}


@pytest.mark.parametrize("way", WAYS | WITH_THE_ORDER)
def test_what_fits_exactly_stays(db, way):
    for do in (WAYS | WITH_THE_ORDER)[way]:
        do()
    if way in WAYS:
        services.add("m", [ORDER])
    assert queries.window("m").messages == [ORDER]
    assert queries.memory("m").policy == WRITTEN
    assert verify("m") is None


def test_the_same_policy_again_is_no_step(db):
    services.create("m", WRITTEN)
    services.change("m", policy=GIVEN)
    assert queries.memory("m").last_step == 0
    assert queries.adopting(queries.MemoryFilter(), GIVEN).differing == 0


def test_a_long_import_goes_on_under_it(db):
    rejecting = TokenWindow(EXACT, estimator="o3-mini", oversized="reject")
    services.import_conversation("m", [ORDER] * 501, rejecting)
    assert queries.memory("m").said_count == 501
    assert queries.memory("m").policy == measured(rejecting)


def test_what_is_only_tried_costs_the_same(db):
    services.create("m", MessageWindow(5))
    simulation = queries.simulate("m", [ORDER], GIVEN)
    assert (simulation.policy, simulation.totals.count) == (WRITTEN, 1)
    (compared,) = queries.comparison("m", [GIVEN]).policies
    assert compared.policy == WRITTEN
    assert [scene.window.totals.count for scene in queries.rehearse(GIVEN, [ORDER])] == [0, 1]


def test_recall_takes_policies_of_both_kinds():
    conversation = [ORDER, AiMessage("I am looking for order A-1182.")]
    for limit in range(EXACT - 1, 3 * EXACT):
        given = TokenWindow(limit, estimator="o3-mini")
        written = policy_from_text(f"token_window:{limit},estimator=o3-mini")
        assert recall(conversation, [given]) == recall(conversation, [written])
    assert recall_curve(conversation, GIVEN).points == recall_curve(conversation, WRITTEN).points
