"""The replacement of the window by a whole new list, as a numbered transition.

Messages that stay in order keep their stays. The others arrive, return after they had left, or
move. The stay of a moved message ends with the reason MOVED and a new one begins in the same step,
so that the order of past windows does not change.

Lists come from two kinds of callers. A client of the bare store protocol sends the list after each
of its own changes, so its list is compared as a slide first (see `alignment.align`) and the changes
are inferred. The caller of `set_messages` means the list as a whole, so every message in both lists
stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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


class Returning(NamedTuple):
    """A message that is in the history, had left the window, and comes back."""

    seq: int
    origin: str


@dataclass(frozen=True)
class Replacement:
    """The replacement of the window `old` by a new list.

    `by_client` is True for a list of the bare store protocol. The messages of `old` are loaded. The
    arrivals of `transition` are the whole list, and its evictions what the policy trims.
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
        """The positions of the new list that match no entry of the old list."""
        matched = self.alignment.kept.keys() | self.alignment.moved.keys()
        return [position for position in range(len(self.payloads)) if position not in matched]

    def may_return(self, is_first: bool) -> list[int]:
        """Return the unmatched positions whose message may be one that left earlier.

        In a client's list, all messages behind the last known one are new: a user who says "yes"
        again has said it twice. An earlier position may hold a message that the client restored.
        """
        if is_first:
            return []
        if not self.by_client:
            return self.unmatched
        return [j for j in self.unmatched if j < self._last_known and not self._is_system(j)]

    def numbered(
        self, counters: Counters, returning: Mapping[int, Returning], policy: Policy | None
    ) -> Transition:
        """Return the transition with numbers for all messages and stays.

        `returning` maps positions to the seqs of messages that left earlier. `policy` is the one in
        force, from which the reasons of a client's departures are inferred.
        """
        origins = self._origins(returning, is_first=counters.last_seq == 0)
        seqs = self._seqs(counters.last_seq, returning)
        entries = self._entries(counters, seqs, origins)
        departures = self._departures(policy, entries)
        moves = [
            Eviction(self.old[i], Reason.MOVED)
            for i in (*self.alignment.moved.values(), *self._reranked(entries))
        ]
        by_arrival: dict[Entry, Entry] = dict(zip(self.transition.arrivals, entries, strict=True))
        trims = self.transition.with_entries(by_arrival).evictions
        trimmed = {eviction.entry for eviction in trims}
        return replace(
            self.transition,
            arrivals=tuple(entries),
            evictions=(*departures, *moves, *trims),
            after=total(entry for entry in entries if entry not in trimmed),
        )

    def is_add(self, transition: Transition) -> bool:
        """Whether a client's list did what adding one message does; `transition` is numbered."""
        arrived = len(self.unmatched)
        return arrived == 1 and all(e.reason is not Reason.SET for e in transition.evictions)

    @property
    def _last_known(self) -> int:
        """The last position that matches an entry of the old list; -1 if none does."""
        return max((*self.alignment.kept, *self.alignment.moved), default=-1)

    def _is_system(self, position: int) -> bool:
        return self.transition.arrivals[position].type is MessageType.SYSTEM

    def _departures(
        self, policy: Policy | None, entries: Sequence[StayEntry]
    ) -> Iterator[Eviction]:
        """Yield the entries of the old list that are not in the new one, with their reasons.

        A result left because of the evicted call before it, a system message because of the new
        one.
        """
        left = [self.old[i] for i in self.alignment.left(len(self.old))]
        found: Mapping[Entry, Reason] = dict.fromkeys(left, Reason.SET)
        if self.by_client:
            found = reasons(self.old, self.transition.arrivals, self.alignment, policy)
        systems = (entries[j] for j in self.unmatched if self._is_system(j))
        because = {Reason.REPLACED: next(systems, None), Reason.ORPHANED: None}
        for entry in (entry for entry in self.old if entry in found):
            if entry.has_calls and found[entry] is Reason.CAPACITY:
                because[Reason.ORPHANED] = entry
            yield Eviction(entry, found[entry], because.get(found[entry]))

    def _origins(self, returning: Mapping[int, Returning], is_first: bool) -> dict[int, str]:
        """Return the origin of each new message: SAID or SYNTHETIC.

        A conversation grows at its end. An unknown message before the last known one was therefore
        not said in the conversation, but put in by the client, such as a summary or injected
        context. It is stored as SYNTHETIC and is not part of the history.
        """
        last = self._last_known
        if not self.by_client:
            last = max([last, *returning])
        origins = {
            j: Message.Origin.SAID
            if is_first or j > last or self._is_system(j)
            else Message.Origin.SYNTHETIC
            for j in self.unmatched
        }
        return origins | {j: message.origin for j, message in returning.items()}

    def _seqs(self, last_seq: int, returning: Mapping[int, Returning]) -> dict[int, int]:
        """Return the seq for each position that begins a stay: moved, returning or new."""
        seqs = {j: self.old[i].seq for j, i in self.alignment.moved.items()}
        for position in self.unmatched:
            if position in returning:
                seqs[position] = returning[position].seq
            else:
                last_seq += 1
                seqs[position] = last_seq
        return seqs

    def _entries(
        self, counters: Counters, seqs: Mapping[int, int], origins: Mapping[int, str]
    ) -> list[StayEntry]:
        """Return the entries of the new list: kept ones if their rank can stay, else new stays."""
        kept = {j: self.old[i] for j, i in self.alignment.kept.items()}
        positions = range(len(self.payloads))
        ranks = place_ranks([None if j in seqs else kept[j].rank for j in positions])
        entries, n = [], counters.last_stay
        for j, rank in zip(positions, ranks, strict=True):
            if j in kept and rank == kept[j].rank:
                entries.append(kept[j])
                continue
            n += 1
            entry = kept.get(j, self.transition.arrivals[j])
            seq = seqs[j] if j in seqs else kept[j].seq
            rank = appended_rank(n) if rank is None else rank
            entries.append(numbered(entry, n, seq, rank, origins.get(j, "")))
        return entries

    def _reranked(self, entries: Sequence[StayEntry]) -> list[int]:
        """Return the old positions of kept messages that needed a new stay for a new rank."""
        return [i for j, i in self.alignment.kept.items() if entries[j] != self.old[i]]
