"""What summaries stand for: the messages that left when one took their place, and their terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from chatmemory import database
from chatmemory.conf import fact_words
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import MessageNotFound
from chatmemory.core.given import storable_id
from chatmemory.core.recall.facts import facts_of, said_texts
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message, Stay, Step


class StandsFor(NamedTuple):
    """The messages that a summary stands for, those of earlier summaries too, and their tokens."""

    seqs: tuple[int, ...]
    tokens: int


def stands_for(memory_id: str, summaries: Collection[int]) -> dict[int, StandsFor]:
    """Return what messages stand for by seq. Those that are no summary are left out.

    A summary that another one covered is followed to what was said, by one query for each
    generation of summaries.
    """
    covered: dict[int, dict[int, int]] = {}
    asked = set(summaries)
    while asked:
        found = _covered(memory_id, asked)
        covered |= found
        asked = {seq for by_seq in found.values() for seq in by_seq} - covered.keys()
    return {seq: _followed(covered, seq) for seq in summaries if seq in covered}


def _covered(memory_id: str, seqs: Collection[int]) -> dict[int, dict[int, int]]:
    """Return the tokens of what each summary covered itself, by seq."""
    steps = Step.objects.filter(
        database.in_list("seq", list(seqs)), memory_id=memory_id, kind=Step.Kind.COMPACT
    )
    by_step = {step.n: step.seq or 0 for step in steps.only("n", "seq")}
    stays = Stay.objects.filter(
        database.in_list("left_step", list(by_step)), memory_id=memory_id, reason=Reason.SUMMARIZED
    )
    covered: defaultdict[int, dict[int, int]] = defaultdict(dict)
    rows = stays.values_list("left_step", "seq", "tokens") if by_step else ()
    for left_step, seq, tokens in rows:
        covered[by_step[left_step or 0]][seq] = tokens
    return dict(covered)


def _followed(covered: dict[int, dict[int, int]], seq: int) -> StandsFor:
    tokens = dict(_said(covered, seq))
    return StandsFor(tuple(sorted(tokens)), sum(tokens.values()))


def _said(covered: dict[int, dict[int, int]], seq: int) -> Iterator[tuple[int, int]]:
    for inner, tokens in covered[seq].items():
        if inner in covered:
            yield from _said(covered, inner)
        else:
            yield inner, tokens


def summaries_holding(memory_id: str, seq: int) -> list[int]:
    """Return the summaries that stand for a message and hold one of its exact terms, by seq.

    There are none of a redacted message, whose terms are gone. Raises MessageNotFound,
    UnstorableText.
    """
    row = Message.objects.filter(memory_id=storable_id(memory_id), seq=seq).first()
    if row is None:
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    return [summary.seq for summary in holding_terms(row, standing_for(row.memory_id, row.seq))]


def standing_for(memory_id: str, seq: int) -> list[Message]:
    """Return the summaries that stand for a message, also through earlier ones, by seq.

    One query tells that no summary ever took its place.
    """
    found: set[int] = set()
    asked = {seq}
    while asked:
        asked = _covering(memory_id, asked) - found
        found |= asked
    rows = Message.objects.filter(database.in_list("seq", found), memory_id=memory_id)
    return list(rows.order_by("seq")) if found else []


def _covering(memory_id: str, seqs: Collection[int]) -> set[int]:
    """Return the summaries that took the place of messages themselves."""
    stays = Stay.objects.filter(
        database.in_list("seq", seqs), memory_id=memory_id, reason=Reason.SUMMARIZED
    )
    left = {stay.left_step or 0 for stay in stays.only("left_step")}
    steps = Step.objects.filter(
        database.in_list("n", left), memory_id=memory_id, kind=Step.Kind.COMPACT
    )
    return {step.seq or 0 for step in steps.only("seq")} if left else set()


def holding_terms(row: Message, summaries: Iterable[Message]) -> list[Message]:
    """Return those of some summaries whose text holds an exact term of a message.

    There are none of a redacted message, and a redacted summary holds none.
    """
    if row.redacted_step is not None:
        return []
    readable = [summary for summary in summaries if summary.redacted_step is None]
    terms = facts_of(read_message(row), fact_words()) if readable else ()
    return [
        summary
        for summary in readable
        if any(term in text for text in said_texts(read_message(summary)) for term in terms)
    ]
