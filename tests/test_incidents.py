"""Incidents of stored conversations: the ledger and a replay agree."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import given

from chatmemory import TokenWindow
from chatmemory.core.estimators import estimator_for
from chatmemory.core.recall.histories import history_of
from chatmemory.core.recall.incidents import incidents_of, replayed, with_limits
from chatmemory.formats import read_transcripts
from chatmemory.queries.incidents import computed_incidents
from inspector import demo

from .conversations import create_and_add
from .core.test_incidents import conversations, installed_policies
from .properties import examples

pytestmark = pytest.mark.django_db
NUMBERS = count()


def replayed_incidents(messages, policy):
    history = history_of(messages, estimator_for(policy.estimator))
    return list(with_limits(incidents_of(*replayed(messages, history, policy)), history, policy))


@given(conversations.filter(bool), installed_policies)
@examples(40)
def test_the_ledger_and_a_replay_agree(messages, policy):
    memory_id = f"incidents-{next(NUMBERS)}"
    create_and_add(memory_id, policy, messages)
    assert computed_incidents(memory_id) == replayed_incidents(messages, policy)


def test_the_incidents_of_the_tau_bench_runs(data_file):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    counts, with_any = Counter(), 0
    for n, run in enumerate(read_transcripts(content).transcripts):
        create_and_add(f"run-{n}", TokenWindow(2000), run.messages)
        found = computed_incidents(f"run-{n}")
        counts += Counter(each.kind for each in found)
        with_any += bool(found)
    assert (counts, with_any) == ({"said_again": 3, "used": 480}, 59)


def test_the_demo_had_to_be_told_its_order_number_again():
    demo.load()
    said_again = [each for each in computed_incidents("order-7741") if each.kind == "said_again"]
    (found,) = said_again
    assert (found.fact, found.said, found.left_step) == ("A-1182", 25, 43)
    assert (found.asked, found.again, found.keeping.limit) == (46, 47, 902)
