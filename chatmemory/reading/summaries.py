"""Reads which messages a summary replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from chatmemory import database
from chatmemory.models import Message, Stay, Step
from chatmemory.windows.eviction import Reason

GENERATIONS = 4  # generations of summaries that are followed one by one


class Coverage(NamedTuple):
    """The messages that a summary covers. If the summary covers an earlier summary, it also covers
    the messages of that summary.

    - `number`, `tokens`: how many messages are covered, and the sum of their tokens.
    - `runs`: ranges of seqs that contain all covered messages. They can also contain the covered
      summaries.
    - `seqs`: the seqs of the covered messages, if this summary is the argument `opened` of
      `coverage_by_summary`; otherwise empty.
    """

    runs: tuple[range, ...]
    number: int
    tokens: int
    seqs: tuple[int, ...] = ()


def coverage_by_summary(
    memory_id: str, summaries: Collection[int], opened: int | None = None
) -> dict[int, Coverage]:
    """Return what each summary covers, by the seq of the summary. Seqs in `summaries` that belong
    to other messages are left out.

    `opened` is the seq of a summary, or None. Only the `Coverage` of this summary has `seqs`.
    """
    covered: dict[int, dict[int, int]] = {}
    waiting = set(summaries)
    for generation in range(GENERATIONS + 1):
        if not waiting:
            break
        found = _covered(memory_id, waiting if generation < GENERATIONS else None)
        covered |= found
        waiting = {seq for by_seq in found.values() for seq in by_seq} - covered.keys()
    return {seq: _coverage_of(covered, seq, seq == opened) for seq in summaries if seq in covered}


def _coverage_of(
    covered: Mapping[int, Mapping[int, int]], summary: int, is_opened: bool
) -> Coverage:
    reached = _reached({summary}, covered)
    tokens = covered_by(covered, summary)
    runs: list[range] = []
    for seq in sorted(tokens.keys() | reached - {summary}):
        if runs and runs[-1].stop == seq:
            runs[-1] = range(runs[-1].start, seq + 1)
        elif seq in tokens:
            runs.append(range(seq, seq + 1))
    seqs = tuple(sorted(tokens)) if is_opened else ()
    return Coverage(tuple(runs), len(tokens), sum(tokens.values()), seqs)


def _covered(memory_id: str, seqs: Collection[int] | None) -> dict[int, dict[int, int]]:
    """Return the tokens of the messages that each summary covers directly, by seq. `seqs` are the
    summaries; None means all.
    """
    steps = Step.objects.filter(memory_id=memory_id, kind=Step.Kind.COMPACT)
    stays = Stay.objects.filter(memory_id=memory_id, reason=Reason.SUMMARIZED)
    if seqs is not None:
        steps = steps.filter(database.in_list("seq", list(seqs)))
    by_step = {step.n: step.seq or 0 for step in steps.only("n", "seq")}
    if seqs is not None:
        stays = stays.filter(database.in_list("left_step", list(by_step)))
    covered: defaultdict[int, dict[int, int]] = defaultdict(dict)
    rows = stays.values_list("left_step", "seq", "tokens") if by_step else ()
    for left_step, seq, tokens in rows:
        covered[by_step[left_step or 0]][seq] = tokens
    return dict(covered)


def covered_by(covered: Mapping[int, Mapping[int, int]], summary: int) -> dict[int, int]:
    """Return the tokens of each message that a summary covers, by the seq of the message. If the
    summary covers an earlier summary, the messages of the earlier summary are in the result. The
    earlier summary itself is not.

    `covered` maps each summary to the tokens of the messages that it covers directly. All keys are
    seqs, as in `{9: {1: 20, 2: 30}}`.
    """
    return {
        seq: tokens
        for each in _reached({summary}, covered)
        for seq, tokens in covered.get(each, {}).items()
        if seq not in covered
    }


def _reached(starts: Iterable[int], ways: Mapping[int, Iterable[int]]) -> set[int]:
    """Return `starts`, and every seq that can be reached by following `ways` from one of them."""
    found, waiting = set(starts), list(starts)
    while waiting:
        new = set(ways.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def summaries_covering(memory_id: str, seq: int) -> list[Message]:
    """Return the summaries that cover a message, sorted by seq. A later summary that covers one of
    these summaries is in the result, too. Empty if no summary covers the message.
    """
    found: set[int] = set()
    newest = {seq}
    for _ in range(GENERATIONS):
        newest = _covering(memory_id, newest) - found
        found |= newest
        if not newest:
            break
    else:
        covering: defaultdict[int, list[int]] = defaultdict(list)
        for summary, by_seq in _covered(memory_id, None).items():
            for each in by_seq:
                covering[each].append(summary)
        found |= _reached(newest, covering)
    rows = Message.objects.filter(database.in_list("seq", found), memory_id=memory_id)
    return list(rows.order_by("seq")) if found else []


def _covering(memory_id: str, seqs: Collection[int]) -> set[int]:
    """Return the seqs of the summaries that cover one of these messages directly."""
    stays = Stay.objects.filter(
        database.in_list("seq", seqs), memory_id=memory_id, reason=Reason.SUMMARIZED
    )
    left = {stay.left_step or 0 for stay in stays.only("left_step")}
    steps = Step.objects.filter(
        database.in_list("n", left), memory_id=memory_id, kind=Step.Kind.COMPACT
    )
    return {step.seq or 0 for step in steps.only("seq")} if left else set()
