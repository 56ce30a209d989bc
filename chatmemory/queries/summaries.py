"""What summaries stand for: the messages that left when one took their place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from chatmemory import database
from chatmemory.core.eviction import Reason
from chatmemory.models import Stay, Step


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
    for stay in stays.only("left_step", "seq", "tokens") if by_step else ():
        covered[by_step[stay.left_step or 0]][stay.seq] = stay.tokens
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
