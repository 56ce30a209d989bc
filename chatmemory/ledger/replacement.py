"""What a whole new list does to a conversation, as a numbered transition.

Messages that stay in their order keep their stays. The others arrive, return after they had left,
or move: a stay that changes its place ends MOVED and another begins in the same step, so that every
past order stays readable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory.core.alignment import Alignment, align, rearrange, reasons
from chatmemory.core.codec import message_to_json
from chatmemory.core.eviction import Eviction, Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, total
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.entries import StayEntry, numbered
from chatmemory.ledger.ranks import appended_rank, place_ranks
from chatmemory.models import Message


@dataclass(frozen=True)
class Replacement:
    """A list that replaces the window `old`; `by_client` says that the caller decided alone.

    Old entries carry their messages. `transition` is what the core decided: the whole list as its
    arrivals, and what its policy trims.
    """

    old: Sequence[StayEntry]
    transition: Transition
    payloads: Sequence[str]
    alignment: Alignment
    by_client: bool

    @classmethod
    def of(cls, old: Sequence[StayEntry], transition: Transition, by_client: bool) -> Replacement:
        before = [message_to_json(entry.message) for entry in old]
        payloads = [message_to_json(entry.message) for entry in transition.arrivals]
        match = align if by_client else rearrange
        return cls(old, transition, payloads, match(before, payloads), by_client)

    @property
    def changes_nothing(self) -> bool:
        kept = len(self.alignment.kept)
        return kept == len(self.old) == len(self.payloads) and not self.transition.evictions

    @property
    def unmatched(self) -> list[int]:
        """Positions of the new list that no entry of the old one stands for."""
        matched = self.alignment.kept.keys() | self.alignment.moved.keys()
        return [position for position in range(len(self.payloads)) if position not in matched]

    def may_return(self, is_first: bool) -> list[int]:
        """Unmatched positions whose message may be one that left earlier.

        A client's own list says anew whatever stands behind its last known message.
        """
        if is_first:
            return []
        if not self.by_client:
            return self.unmatched
        return [j for j in self.unmatched if j < self._last_known and not self._is_system(j)]

    def numbered(
        self, counters: Counters, returning: Mapping[int, int], policy: Policy | None
    ) -> Transition:
        """The transition with a number for every message and stay.

        `returning` gives the seq of each position whose message left earlier; `policy` is the one
        in force, by which a client's departures are explained.
        """
        origins = self._origins(returning, is_first=counters.last_seq == 0)
        seqs = self._seqs(counters.last_seq, returning)
        standing = self._standing(counters, seqs, origins)
        departures = self._departures(policy)
        moves = [
            Eviction(self.old[i], Reason.MOVED)
            for i in (*self.alignment.moved.values(), *self._reranked(standing))
        ]
        now: dict[Entry, Entry] = dict(zip(self.transition.arrivals, standing, strict=True))
        trims = self.transition.with_entries(now).evictions
        trimmed = {eviction.entry for eviction in trims}
        return replace(
            self.transition,
            arrivals=tuple(standing),
            evictions=(*departures, *moves, *trims),
            after=total(entry for entry in standing if entry not in trimmed),
        )

    def is_add(self, transition: Transition) -> bool:
        """Whether a client's list did what adding one message does; `transition` is numbered."""
        arrived = len(self.unmatched)
        return arrived == 1 and all(e.reason is not Reason.SET for e in transition.evictions)

    @property
    def _last_known(self) -> int:
        """The last position that an entry of the old list stands for; -1 for none."""
        return max((*self.alignment.kept, *self.alignment.moved), default=-1)

    def _is_system(self, position: int) -> bool:
        return self.transition.arrivals[position].type is MessageType.SYSTEM

    def _departures(self, policy: Policy | None) -> list[Eviction]:
        """What is in the old list and not in the new one, with the reason that explains it."""
        left = [self.old[i] for i in self.alignment.left(len(self.old))]
        why: Mapping[Entry, Reason] = dict.fromkeys(left, Reason.SET)
        if self.by_client:
            why = reasons(self.old, self.transition.arrivals, self.alignment, policy)
        return [Eviction(entry, reason) for entry, reason in why.items()]

    def _origins(self, returning: Mapping[int, int], is_first: bool) -> dict[int, str]:
        """Whether each new message was said, or put in.

        Before the last message that was there already, what nobody ever said is SYNTHETIC: a
        summary or injected context, not part of the history.
        """
        last = self._last_known
        if not self.by_client:
            last = max([last, *returning])
        return {
            j: Message.Origin.SAID
            if is_first or j > last or self._is_system(j)
            else Message.Origin.SYNTHETIC
            for j in self.unmatched
        }

    def _seqs(self, last_seq: int, returning: Mapping[int, int]) -> dict[int, int]:
        """The message of every position that begins a stay: moved, returning or new."""
        seqs = {j: self.old[i].seq for j, i in self.alignment.moved.items()}
        for position in self.unmatched:
            if position in returning:
                seqs[position] = returning[position]
            else:
                last_seq += 1
                seqs[position] = last_seq
        return seqs

    def _standing(
        self, counters: Counters, seqs: Mapping[int, int], origins: Mapping[int, str]
    ) -> list[StayEntry]:
        """The whole new list: kept entries where a rank is free around them, else new stays."""
        kept = {j: self.old[i] for j, i in self.alignment.kept.items()}
        places = range(len(self.payloads))
        ranks = place_ranks([None if j in seqs else kept[j].rank for j in places])
        standing, n = [], counters.last_stay
        for j, rank in zip(places, ranks, strict=True):
            if j in kept and rank == kept[j].rank:
                standing.append(kept[j])
                continue
            n += 1
            entry = kept.get(j, self.transition.arrivals[j])
            seq = seqs[j] if j in seqs else kept[j].seq
            rank = appended_rank(n) if rank is None else rank
            standing.append(numbered(entry, n, seq, rank, origins.get(j, "")))
        return standing

    def _reranked(self, standing: Sequence[StayEntry]) -> list[int]:
        """Old positions of kept messages that had to begin a new stay to find a place."""
        return [i for j, i in self.alignment.kept.items() if standing[j] != self.old[i]]
