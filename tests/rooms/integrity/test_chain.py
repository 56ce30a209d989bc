"""Digests are the same in every version, because people keep them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from chatmemory.columns import columns_of
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.windows.eviction import Reason
from inspector.rooms.integrity import chain

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
MICROSECONDS = 1_767_323_045_000_678


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


def digest_of_json(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def test_the_digests_of_all_versions_do_not_change(message, step):
    memory = Memory(id="m", created_at=AT, first_labels=b"l")
    stay = Stay(n=5, seq=5, rank=5 << 20, type="USER", tokens=4, size=40)
    first = chain.first_digest(memory)
    assert first.hex() == digest_of_json(f'[3,"conversation","m",{MICROSECONDS},"6c",null]')
    commitment = chain.commitment_of(message)
    message.salt = memoryview(b"s")  # as some databases return it
    assert chain.commitment_of(message) == commitment
    assert commitment.hex() == digest_of_json(
        f'[3,"message",5,"USER","na\\u00efve","{{}}",null,4,"SAID",{MICROSECONDS},null,"73"]'
    )
    assert chain.commitment_of_labels({"b": "c", "a": ""}, b"s").hex() == digest_of_json(
        '[3,"labels",{"a":"","b":"c"},"73"]'
    )
    step.load = 13
    wrote = [commitment], [stay], [(4, Reason.CAPACITY)]
    columns = (
        f'"step","{first.hex()}",5,"add",{MICROSECONDS},"ada",false,0,1,2,3,4,5,6,7,8,null,'
        '"","frugal",9,"gpt-4o",{"first":true,"share":0.5},null,'
        f'["{commitment.hex()}"],[[5,5,5242880,"USER",false,false,4,40]],[[4,"CAPACITY"]]'
    )
    digest, earlier = (chain.digest_of(first, step, *wrote, version) for version in (4, 3))
    assert digest.hex() == digest_of_json(f"[4,{columns},13]")
    assert earlier.hex() == digest_of_json(f"[3,{columns}]")


# What the chain itself is made of, and what the ledger writes later: the step that ends a stay, or
# redacts a message, covers that end or that redaction.
NOT_SEALED = {
    Message: {"memory_id", "redacted_step", "commitment"},
    Stay: {"memory_id", "entered_step", "left_step", "reason", "overrides"},
    Step: {"memory_id", "digest"},
}


@pytest.mark.parametrize("sealed", [chain.MESSAGES, chain.STAYS, chain.STEPS])
def test_each_column_is_sealed_or_says_why_not(sealed):
    model = sealed.model
    declared = {*columns_of(model)}
    columns = {field.attname for field in model._meta.concrete_fields}
    assert {*sealed.first, *NOT_SEALED[model]} == columns - declared


@pytest.mark.parametrize(
    ("labels", "others"),
    [
        ({"a": "b", "c": "d"}, {"a": "b1:c1:d"}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {"a": True}),
        ({"a": ["b", "c"]}, {"a": ["bc"]}),
    ],
)
def test_no_two_values_have_the_same_encoding(labels, others):
    assert chain.commitment_of_labels(labels, b"") != chain.commitment_of_labels(others, b"")
