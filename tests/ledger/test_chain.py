"""Digests are the same in every version, because people keep them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chatmemory.ledger import chain
from chatmemory.models import Memory, Message, Stay, Step

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


@pytest.fixture
def message() -> Message:
    return Message(seq=5, type="USER", text="naïve", frame="{}", tokens=4, said_at=AT, salt=b"s")


@pytest.fixture
def step() -> Step:
    counters = ("count_before", "tokens_before", "count_after", "tokens_after", "history_tokens")
    numbers = (*counters, "last_seq", "said_count", "last_stay", "oldest")
    return Step(
        n=5,
        kind="add",
        at=AT,
        actor="ada",
        policy_kind="frugal",
        policy_limit=9,
        policy_options={"share": 0.5, "first": True},
        **{name: number for number, name in enumerate(numbers)},
    )


def test_the_encoding_of_version_1_does_not_change(message, step):
    memory = Memory(id="m", created_at=AT, first_labels=b"l")
    stay = Stay(n=5, seq=5, rank=5 << 20, type="USER", tokens=4)
    digest = chain.digest_of(
        chain.first_digest(memory),
        step,
        [chain.commitment_of(message), None],
        [chain.encoded_stay(stay)],
        [(4, "CAPACITY")],
    )
    assert digest.hex() == "47958623762ade94d55059d4f599972d9b40f1cd909aa9106b5763a89a327655"


@pytest.mark.parametrize(
    ("labels", "others"),
    [
        ({"a": "b", "c": "d"}, {"a": "b1:c1:d"}),
        ({"a": ""}, {}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {"a": "n"}),
        ({"a": ["b", "c"]}, {"a": ["bc"]}),
        ({"a": 1.5}, {"a": "1.5"}),
    ],
)
def test_no_two_values_have_the_same_encoding(labels, others):
    assert chain.commitment_of_labels(labels, b"") != chain.commitment_of_labels(others, b"")


def test_a_database_may_return_bytes_in_another_type(message):
    expected = chain.commitment_of(message)
    message.salt = memoryview(b"s")
    assert chain.commitment_of(message) == expected
