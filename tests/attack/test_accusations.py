"""A verification accuses nobody, whatever the services do, in any order."""

from __future__ import annotations

from collections import Counter

import pytest

from ..any_operations import accusation

pytestmark = [pytest.mark.database, pytest.mark.long]


def test_no_accusation_in_twenty_thousand_operations(db, record_property):
    done: Counter[str] = Counter()
    seed = 0
    found = []
    while done.total() < 20_000:
        if accused := accusation(seed, 60, done, recovers=0.3):
            found.append(accused)
        seed += 1
    record_property("attack: random operations, each verified", done.total())
    record_property("attack: archives imported again", seed)
    assert done["redact"] + done["redact_a_result"] > 1_000, done
    assert not found, found
