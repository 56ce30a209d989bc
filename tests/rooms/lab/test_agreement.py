"""The lab, commands and comparisons count the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given

from inspector.rooms.lab import reads, writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.stored import recall_of_stored
from inspector.rooms.simulation.comparison import comparison
from tests.conversations import create_and_add
from tests.properties import examples
from tests.recall.test_incidents import conversations, installed_policies
from tests.rooms.evidence.test_incidents import without_ignored

pytestmark = pytest.mark.django_db
NUMBERS = count()


@given(conversations.filter(bool), installed_policies)
@examples(30)
def test_the_lab_and_commands_count_what_is_compared(messages, policy):
    messages, memory_id = list(without_ignored(messages)), f"counted-{next(NUMBERS)}"
    create_and_add(memory_id, policy, messages)
    asked = FleetAddress.read(
        {"prefix": memory_id, "kind": policy.kind, "limit": str(policy.limit)}
    )
    query = replace(asked.query, kind=replace(policy, limit=10**9))
    writes.compute_figures(query, 60)
    fleet = reads.fleet(query)
    (known,) = (each.measured for each in fleet.known)
    (found,) = comparison(memory_id, [policy]).policies
    (told,) = recall_of_stored(query.which, [policy]).rows
    assert (known.figures.recalls, known.today.held) == (found.recalls, found.held)
    assert (told.recalls, told.held) == (found.recalls, found.held)
    assert known.today.again == len(found.incidents) == told.user_repeated + told.call_repeated
    at = known.tally(policy)
    assert (at.held, at.again) == (found.held, len(found.incidents))
