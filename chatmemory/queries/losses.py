"""What the summaries of a stored conversation lost, measured as in the sessions of agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chatmemory.conf import fact_words
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.recall.compactions import Evidence, NeededTerm, compaction_evidence
from chatmemory.core.sessions import Compaction, Session
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message, stays_at
from chatmemory.models import Memory, Message, Stay, Step

MEASURED_MAX = 20_000  # messages


@dataclass(frozen=True)
class SummaryLoss:
    """What the summary `seq`, which came at `step`, lost of the exact terms that were needed again.

    `replaced` messages left for it. `terms` are those that were needed, in the order of their use;
    their `said`, `used` and `came` are seqs.
    """

    step: int
    seq: int
    trigger: str
    tokens_before: int
    tokens_after: int
    replaced: int
    terms: tuple[NeededTerm, ...]

    @property
    def lost(self) -> list[NeededTerm]:
        return [each for each in self.terms if not each.is_held]


@one_snapshot()
def summary_losses(memory_id: str) -> list[SummaryLoss]:
    """Return what each summary of a conversation lost so far, in the order of their steps.

    Raises MemoryNotFound, and InvalidValue for a conversation of more than 20,000 messages.
    """
    memory = find_memory(memory_id)
    steps = list(Step.objects.filter(memory=memory, kind=Step.Kind.COMPACT).order_by("n"))
    if not steps:
        return []
    if memory.last_seq > MEASURED_MAX:
        raise InvalidValue(
            f"{memory_id!r} has {memory.last_seq:,} messages, of which {MEASURED_MAX:,} can be "
            "measured"
        )
    messages = list(Message.objects.filter(memory=memory).order_by("seq"))
    seqs = [message.seq for message in messages]
    places = {seq: place for place, seq in enumerate(seqs)}
    compactions = tuple(_compactions(memory, steps, places))
    session = Session(tuple(map(read_message, messages)), compactions)
    found = compaction_evidence(session, words=fact_words())
    return [_loss(step, each, seqs) for step, each in zip(steps, found, strict=True)]


def _compactions(
    memory: Memory, steps: Sequence[Step], places: dict[int, int]
) -> Iterator[Compaction]:
    """Yield the compactions of steps, whose messages are positions."""
    for step in steps:
        covered = Stay.objects.filter(memory=memory, left_step=step.n, reason=Reason.SUMMARIZED)
        yield Compaction(
            summary=places[step.seq or 0],
            covered=tuple(places[seq] for (seq,) in covered.order_by("rank").values_list("seq")),
            window=tuple(places[seq] for (seq,) in stays_at(step).values_list("seq")),
            trigger=step.note,
        )


def _loss(step: Step, found: Evidence, seqs: Sequence[int]) -> SummaryLoss:
    terms = (
        replace(
            each,
            said=seqs[each.said],
            used=seqs[each.used],
            came=None if each.came is None else seqs[each.came],
        )
        for each in found.terms
    )
    return SummaryLoss(
        step=step.n,
        seq=step.seq or 0,
        trigger=step.note,
        tokens_before=step.tokens_before,
        tokens_after=step.tokens_after,
        replaced=len(found.compaction.covered),
        terms=tuple(terms),
    )
