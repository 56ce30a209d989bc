"""The replacement of the window by a whole new list, as a numbered transition.

Messages that stay in order keep their stays. The others arrive, return after they had left, or
move. The stay of a moved message ends with the reason MOVED and a new one begins in the same step,
so that the order of past windows does not change. What is not in the new list left with the reason
SET.

Lists come from two kinds of callers. A client of the bare store protocol sends the list after each
of its own changes: if one add explains it, it is that add (see `core.client_lists`). The caller of
`set_messages` means the list as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from chatmemory.core.client_lists import Alignment, align, inferred_add, rearrange
from chatmemory.core.codec import message_to_json
from chatmemory.core.eviction import Eviction, Reason
from chatmemory.core.messages import MessageType, text_of
from chatmemory.core.transitions import Transition, refill
from chatmemory.core.window import Entry, Window, total
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.entries import StayEntry, numbered
from chatmemory.ledger.ranks import appended_rank, place_ranks
from chatmemory.models import Message

ANY = tuple(Reason)
DISPLACED = (Reason.SET,)
EVICTED = (Reason.SET, Reason.CAPACITY, Reason.ORPHANED, Reason.TURN)


class Returning(NamedTuple):
    """A message that is in the history, had left the window, and comes back.

    A redacted one has the `tokens` with which it left, which its words had; None if they were
    counted otherwise than others are now.
    """

    seq: int
    origin: str
    tokens: int | None = None


@dataclass(frozen=True)
class Replacement:
    """The replacement of the window `old` by a new list.

    `by_client` is True for a list of the bare store protocol. The messages of `old` are loaded. The
    arrivals of `transition` are the whole list, and its evictions what the policy trims. `before`
    and `payloads` are the payloads of both lists.
    """

    old: Sequence[StayEntry]
    transition: Transition
    before: Sequence[str]
    payloads: Sequence[str]
    by_client: bool

    @classmethod
    def of(cls, old: Sequence[StayEntry], transition: Transition, by_client: bool) -> Replacement:
        before = [message_to_json(entry.message) for entry in old]
        payloads = [message_to_json(entry.message) for entry in transition.arrivals]
        return cls(old, transition, before, payloads, by_client)

    def as_it_was(self, window: Window) -> Replacement:
        """Return the replacement in which a message that stays in the list has its pin and tokens.

        The tokens of a redacted message are those of the words that it had. What leaves is decided
        again, because nothing pinned does.
        """
        arrivals = self.transition.arrivals
        counted = {
            payload: entry.tokens for payload, entry in zip(self.payloads, arrivals, strict=True)
        }
        if not any(
            entry.pinned or entry.tokens != counted.get(payload, entry.tokens)
            for payload, entry in zip(self.before, self.old, strict=True)
        ):
            return self
        stayed = {**self.alignment.kept, **self.alignment.moved}
        was = {position: self.old[i] for position, i in stayed.items()}
        changed = {
            position: replace(arrivals[position], pinned=entry.pinned, tokens=entry.tokens)
            for position, entry in was.items()
        }
        return self._with_arrivals(changed, window)

    def as_they_left(self, returning: Mapping[int, Returning], window: Window) -> Replacement:
        """Return the replacement in which redacted messages that return have their tokens again."""
        changed = {
            position: replace(self.transition.arrivals[position], tokens=message.tokens)
            for position, message in returning.items()
            if message.tokens is not None
        }
        return self._with_arrivals(changed, window) if changed else self

    def _with_arrivals(self, changed: Mapping[int, Entry], window: Window) -> Replacement:
        arrivals = [changed.get(j, entry) for j, entry in enumerate(self.transition.arrivals)]
        return replace(self, transition=refill(window, arrivals, self.transition.policy))

    def text(self, position: int) -> str:
        """Return the text of the message at a position of the new list."""
        message = self.transition.arrivals[position].message
        assert message is not None
        return text_of(message)

    @property
    def changes_nothing(self) -> bool:
        return self.before == self.payloads and not self.transition.evictions

    def as_add(self, window: Window) -> Transition | None:
        """Return the one add by which a client made its list; None if it set the list."""
        if not self.by_client:
            return None
        return inferred_add(window, self.before, self.transition.arrivals, self.payloads)

    @cached_property
    def alignment(self) -> Alignment:
        match = align if self.by_client else rearrange
        return match(self.before, self.payloads)

    @cached_property
    def unmatched(self) -> list[int]:
        """The positions of the new list that match no entry of the old list."""
        matched = self.alignment.kept.keys() | self.alignment.moved.keys()
        return [position for position in range(len(self.payloads)) if position not in matched]

    def may_return(self, is_first: bool) -> dict[int, Collection[Reason]]:
        """Return the positions whose message may be one that left earlier, and for which reasons.

        Every unmatched position of a list that `set_messages` gave. For a client's list, see
        `_returns_after`.
        """
        if is_first or self.alignment.slides:
            return {}
        return {j: self._returns_after(j) if self.by_client else ANY for j in self.unmatched}

    def numbered(self, counters: Counters, returning: Mapping[int, Returning]) -> Transition:
        """Return the transition with numbers for all messages and stays.

        `returning` maps positions to messages that left earlier.
        """
        origins = self._origins(returning, is_first=counters.last_seq == 0)
        seqs = self._seqs(counters.last_seq, returning)
        entries = self._entries(counters, seqs, origins)
        departures = (Eviction(self.old[i], Reason.SET) for i in self.alignment.left(len(self.old)))
        moves = (
            Eviction(self.old[i], Reason.MOVED)
            for i in (*self.alignment.moved.values(), *self._reranked(entries))
        )
        by_arrival: dict[Entry, Entry] = dict(zip(self.transition.arrivals, entries, strict=True))
        trims = self.transition.with_entries(by_arrival).evictions
        trimmed = {eviction.entry for eviction in trims}
        return self.transition._replace(
            arrivals=tuple(entries),
            evictions=(*departures, *moves, *trims),
            after=total(entry for entry in entries if entry not in trimmed),
        )

    def written(self) -> dict[int, str]:
        """Return the payloads of the new list by the `id` of each message."""
        arrivals = zip(self.transition.arrivals, self.payloads, strict=True)
        return {id(entry.message): payload for entry, payload in arrivals}

    def _returns_after(self, position: int) -> Collection[Reason]:
        """Return the reasons for which a message of a client's list may have left to return.

        A message before the last known one may be restored, for whatever reason it left. A message
        behind it is new, such as a second "yes", unless the list of another writer had displaced it
        (SET). A list without any known message comes from a writer with an older one: all but its
        last message may have been known then.
        """
        if self._is_system(position):
            return DISPLACED
        if position < self._last_known:
            return ANY
        is_older = self._last_known < 0 and any(not _is_system(entry) for entry in self.old)
        return EVICTED if is_older and position < len(self.payloads) - 1 else DISPLACED

    @cached_property
    def _last_known(self) -> int:
        """The last position that matches an entry of the old list; -1 if none does.

        System messages do not count: wherever they stand, what is before them may be new.
        """
        known = (*self.alignment.kept, *self.alignment.moved)
        return self._last_of(known)

    def _last_of(self, positions: Iterable[int]) -> int:
        return max((j for j in positions if not self._is_system(j)), default=-1)

    def _is_system(self, position: int) -> bool:
        return _is_system(self.transition.arrivals[position])

    def _origins(self, returning: Mapping[int, Returning], is_first: bool) -> dict[int, str]:
        """Return the origin of each new message: SAID or SYNTHETIC.

        A conversation grows at its end. An unknown message before the last known one was therefore
        not said in the conversation, but put in by the client, such as a summary or injected
        context. It is stored as SYNTHETIC and is not part of the history.
        """
        last = self._last_known
        if not self.by_client:
            last = max(last, self._last_of(returning))
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


def _is_system(entry: Entry) -> bool:
    return entry.type is MessageType.SYSTEM
