"""Turns a client's new list into a transition of the window, with numbers for messages and stays.

There are two kinds of lists:

- A client that decides its window sends its list after each of its own changes. If a single add
  explains the list, an add is recorded (see `windows.lists`).
- A list for `set_messages` replaces the window as a whole. Then the policy trims the window.

A list does not say which of its messages are stored already. So each message is compared with the
old window, and then with the history (see `returning_messages`). A message without a match is new.

What happens to the stays of messages:

- A message that remains in the same order keeps its stay.
- If a message moves, its stay ends with the reason MOVED, and a new stay begins in the same step.
  So past windows keep their order.
- If the list has other attributes for a message, its stay ends (MOVED), and a new stay begins with
  the new attributes (see `overrides`). Attributes do not change if the message is redacted, or if
  the source of the list does not tell attributes (see `OpenPayload`).
- A message that is not in the list leaves with the reason SET.
- A message that returns from the history begins a new stay. The history does not change.
- An inserted message gets a rank between the ranks of its neighbors (see `numbers.place_ranks`). If
  no rank is free there, the stays of all later messages end (MOVED), and new stays begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from django.db.models import OuterRef, Subquery

from chatmemory import database
from chatmemory.exceptions import NotCompactable
from chatmemory.ledger.numbers import appended_rank, numbered, place_ranks
from chatmemory.ledger.overrides import is_of_stub, kept, overriding, text_of_stub
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.windows import shown_message
from chatmemory.messages.codec import attributes_beside, message_to_json, payload_of
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import ChatMessage, MessageType, has_open_attributes, text_of
from chatmemory.messages.tombstones import tombstone_of
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.tables import NamedRow
from chatmemory.windows.compaction import check_covered, compact, is_marked
from chatmemory.windows.eviction import FOR_ROOM, Eviction, Reason
from chatmemory.windows.lists import (
    Alignment,
    OpenPayload,
    Payload,
    align_payloads,
    inferred_add,
    summarized,
)
from chatmemory.windows.recovery import InterruptedCall, interrupted_calls
from chatmemory.windows.stored_policies import total_under
from chatmemory.windows.transitions import Transition, refill
from chatmemory.windows.window import SAID, Entry, Window

_COLUMNS = ("memory_id", "seq", "frame", "text", "attributes", "origin", "left_for", "overrides")

LATELY = 500  # stays that tell which policy a client has

# The reasons for leaving after which a message may return
ANY = tuple(Reason)
DISPLACED = (Reason.SET,)
EVICTED = (Reason.SET, *FOR_ROOM)


class _DepartedMessage(NamedTuple):
    """A message that left: its row, its stored payload, the payload that its last stay showed, and
    the reason why it left.
    """

    row: NamedRow
    stored: Payload
    shown: Payload
    reason: Reason

    def returning(self, sent: Entry, payload: Payload, tokens: int | None) -> Entry:
        """Return the entry for this message, which returns. `sent` is the entry of the client's
        list, with this payload.

        For a redacted message, `tokens` is the count of the erased text, else None.
        """
        row, overrides = self.row, kept(self.row.overrides)
        message = shown_message(row, overrides)
        if payload.changes(self.shown) and not is_redacted(message):
            assert sent.message is not None
            message = sent.message
            own = text_of_stub(overrides, row.text)
            overrides = None if payload == self.stored else overriding(message, own)
        elif payload == self.shown and sent.message is not None:
            message = sent.message  # which is counted already
        return replace(
            sent,
            message=message,
            tokens=sent.tokens if tokens is None else tokens,
            seq=row.seq,
            origin=row.origin,
            overrides=overrides,
            is_stub=is_of_stub(overrides),
        )


@dataclass(frozen=True)
class Replacement:
    """The replacement of a window by a new list.

    - `old`: the entries of the old window, with their messages.
    - `transition`: the change, before its new messages and stays get numbers. Its arrivals are the
      whole new list, and its evictions are the messages that the policy trims.
    - `before`: the contents of the messages of the old window, to compare with `payloads`.
    - `payloads`: the contents of the messages of the new list. Attributes that the list has for a
      redacted message are left out.
    - `by_client`: whether the list comes from a client that decides its window.
    """

    old: Sequence[Entry]
    transition: Transition
    before: Sequence[Payload]
    payloads: Sequence[Payload]
    by_client: bool

    @classmethod
    def of(cls, old: Sequence[Entry], transition: Transition, by_client: bool) -> Replacement:
        before, payloads = _payloads(old), _payloads(transition.arrivals)
        redacted = {
            payload
            for entry, payload in zip(old, before, strict=True)
            if entry.message is not None and is_redacted(entry.message)
        }
        if redacted:
            bare = map(Payload, (payload.bare for payload in payloads))
            payloads = [
                one if one in redacted else sent for one, sent in zip(bare, payloads, strict=True)
            ]
        return cls(old, transition, before, payloads, by_client)

    def as_it_was(self, window: Window) -> Replacement:
        """Return the replacement with the pins and token counts of the old window for all messages
        that remain. So a redacted message keeps the count of its erased text.

        The policy trims the new list again, because pinned messages do not leave. `window` is the
        old window.
        """
        arrivals = self.transition.arrivals
        counted = {
            payload.bare: entry.tokens
            for payload, entry in zip(self.payloads, arrivals, strict=True)
        }
        if not any(
            entry.pinned or entry.tokens != counted.get(payload.bare, entry.tokens)
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

    def _as_they_left(self, returning: Mapping[int, Entry], window: Window) -> Replacement:
        """Return the replacement with the attributes of returning messages, and with the token
        counts of redacted ones.
        """
        sent = self.transition.arrivals
        is_same = all(
            each.message is sent[position].message and each.tokens == sent[position].tokens
            for position, each in returning.items()
        )
        return self if is_same else self._with_arrivals(returning, window)

    def _with_arrivals(self, changed: Mapping[int, Entry], window: Window) -> Replacement:
        arrivals = [changed.get(j, entry) for j, entry in enumerate(self.transition.arrivals)]
        return replace(self, transition=refill(window, arrivals, self.transition.policy))

    def message(self, position: int) -> ChatMessage:
        """Return the message at a position of the new list."""
        message = self.transition.arrivals[position].message
        assert message is not None
        return message

    @property
    def changes_nothing(self) -> bool:
        is_as_long = len(self.before) == len(self.payloads)
        return (
            is_as_long
            and all(map(Payload.counts_as, self.payloads, self.before))
            and not self.transition.evictions
        )

    def as_add(self, memory: Memory) -> Transition | None:
        """Return the add that turns the old window into the client's list. None if no add does, if
        several different adds do, or if the list is not from a client.

        Pins are ignored, because a client does not know them.
        """
        if not self.by_client:
            return None
        unpinned = (replace(each, pinned=False) if each.pinned else each for each in self.old)
        window = Window(unpinned)
        lists = self.before, self.transition.arrivals, self.payloads
        recovers = _recovers(memory, self.old)
        add = inferred_add(window, *lists, is_same=Payload.counts_as, recovers=recovers)
        return add and add.with_entries({entry: entry for entry in self.old})

    @cached_property
    def has_marked_summary(self) -> bool:
        """Whether one of the first two messages of the new list has an attribute that marks it as a
        summary of this library or of LangChain.
        """
        return any(is_marked(entry.message) for entry in self.transition.arrivals[:2])

    def as_compaction(self, memory: Memory) -> Transition | None:
        """Return the compaction by which the client made its list from the old window. None if the
        list has no new summary, or is not from a client.

        Messages that the client appended after the summary are not part of the compaction.
        """
        if not self.by_client:
            return None
        arrivals = self.transition.arrivals
        types = [entry.type for entry in arrivals]
        before, after = ([each.bare for each in lst] for lst in (self.before, self.payloads))
        found = summarized(before, after, types, marked=self.has_marked_summary)
        if found is None or found.start in returning_messages(memory, self):
            return None
        covered = self.old[found.start : found.stop]
        with suppress(NotCompactable):
            check_covered(self.old, covered)
            return compact(Window(self.old), covered, arrivals[found.start], policy=None)
        return None

    @cached_property
    def alignment(self) -> Alignment:
        return align_payloads(self.before, self.payloads, self.by_client)

    def is_changed(self, position: int, i: int) -> bool:
        """Return whether the new list gives a message other attributes than the old list.
        `position` is the message's index in the new list, `i` in the old list.

        False if the source of the new list does not tell attributes.
        """
        return self.payloads[position].changes(self.before[i])

    @cached_property
    def unmatched(self) -> list[int]:
        """The positions of the new list whose messages are not in the old list."""
        matched = self.alignment.kept.keys() | self.alignment.moved.keys()
        return [position for position in range(len(self.payloads)) if position not in matched]

    def may_return(self, is_first: bool) -> dict[int, Collection[Reason]]:
        """Return the positions of the new list at which a message may return from the history. Each
        position maps to the reasons for which the message may have left.

        - In a list for `set_messages`, every message that is not in the old window may return, for
          whatever reason it left.
        - In a client's list, this holds for messages before the last known message (see
          `last_known`). Later messages and system messages are probably new, so only some reasons
          are allowed.
        - The result is empty if the conversation has no history yet (`is_first`).
        - The result is also empty if the new list only drops the first old messages and appends new
          messages.
        """
        if is_first or self.alignment.slides:
            return {}
        return {j: self._returns_after(j) if self.by_client else ANY for j in self.unmatched}

    def numbered(self, memory: Memory, window: Window) -> Transition:
        """Return the transition to the new list, with numbers for new messages (seq) and
        new stays.
        """
        returning = returning_messages(memory, self)
        as_they_left = self._as_they_left(returning, window)
        return Numbering(as_they_left, memory, returning).transition()

    def _returns_after(self, position: int) -> Collection[Reason]:
        """Return the reasons for leaving after which a message of a client's list may return.

        - A message before the last known message may return, for any reason.
        - A message after the last known message is new, such as a second "yes". It may only return
          if another writer's list had removed it (SET).
        - A list without any known message is probably an older list. All its messages except the
          last may return if they were evicted or removed.
        """
        if self.is_system(position):
            return DISPLACED
        if position < self.last_known:
            return ANY
        is_older = self.last_known < 0 and any(not _is_system(entry) for entry in self.old)
        return EVICTED if is_older and position < len(self.payloads) - 1 else DISPLACED

    @cached_property
    def last_known(self) -> int:
        """The last position of the new list whose message is also in the old list. System messages
        do not count. -1 if there is no such message.
        """
        known = (*self.alignment.kept, *self.alignment.moved)
        return self.last_of(known)

    def last_of(self, positions: Iterable[int]) -> int:
        return max((j for j in positions if not self.is_system(j)), default=-1)

    def is_system(self, position: int) -> bool:
        return _is_system(self.transition.arrivals[position])


@dataclass(frozen=True)
class Numbering:
    """Numbers the messages and stays of a client's list.

    `of` is the replacement of the window by this list. `returning` has the messages that return
    from the history, by their position in the list.
    """

    of: Replacement
    memory: Memory
    returning: Mapping[int, Entry]

    def transition(self) -> Transition:
        """Return the transition to the new list, with numbers for new messages and new stays."""
        old, alignment, unnumbered = self.of.old, self.of.alignment, self.of.transition
        entries = self._entries()
        departures = (Eviction(old[i], Reason.SET) for i in alignment.left(len(old)))
        moved = (*alignment.moved.values(), *self._renewed(entries))
        moves = (Eviction(old[i], Reason.MOVED) for i in moved)
        by_arrival: dict[Entry, Entry] = dict(zip(unnumbered.arrivals, entries, strict=True))
        trims = unnumbered.with_entries(by_arrival).evictions
        trimmed = {eviction.entry for eviction in trims}
        stayed = (each for each in entries if each not in trimmed)
        return unnumbered._replace(
            arrivals=tuple(entries),
            evictions=(*departures, *moves, *trims),
            after=total_under(unnumbered.policy, stayed),
        )

    def origins(self) -> dict[int, str]:
        """Return the origin, SAID or SYNTHETIC, of each message that is not in the old list, by its
        position in the new list.

        - A message that returns from the history keeps its origin.
        - All new messages of a conversation's first list, and all new system messages, are SAID.
        - Any other new message after the last known message is SAID, because a conversation grows
          at its end.
        - Any other new message before the last known message is SYNTHETIC, because the client
          inserted it, such as a summary.

        For the last known message, see `Replacement.last_known`. In a list for `set_messages`, a
        message that returns is known, too.
        """
        is_first, last = self.memory.last_seq == 0, self.of.last_known
        if not self.of.by_client:
            last = max(last, self.of.last_of(self.returning))
        origins = {
            j: Message.Origin.SAID
            if is_first or j > last or self.of.is_system(j)
            else Message.Origin.SYNTHETIC
            for j in self.of.unmatched
        }
        return origins | {j: message.origin for j, message in self.returning.items()}

    def _seqs(self) -> dict[int, int]:
        """Return the seq of the message at each position where a stay begins: of moved, returning
        and new messages.
        """
        last_seq = self.memory.last_seq
        seqs = {j: self.of.old[i].seq for j, i in self.of.alignment.moved.items()}
        for position in self.of.unmatched:
            if position in self.returning:
                seqs[position] = self.returning[position].seq
            else:
                last_seq += 1
                seqs[position] = last_seq
        return seqs

    def _entries(self) -> list[Entry]:
        """Return the entries of the new list. A message whose rank and attributes stay the same
        keeps its entry. Other messages get a new stay.
        """
        seqs, origins, n = self._seqs(), self.origins(), self.memory.last_stay
        old, alignment, arrivals = self.of.old, self.of.alignment, self.of.transition.arrivals
        positions_before = {**alignment.kept, **alignment.moved}
        kept = {j: old[i] for j, i in alignment.kept.items()}
        known = {j: old[i] for j, i in positions_before.items()}
        positions = range(len(arrivals))
        ranks = place_ranks([None if j in seqs else kept[j].rank for j in positions])
        entries = []
        for j, rank in zip(positions, ranks, strict=True):
            entry, returned = known.get(j, arrivals[j]), self.returning.get(j)
            own = returned.overrides if returned else None
            if j in known and self.of.is_changed(j, positions_before[j]):
                message = self.of.message(j)
                stub = text_of(message) if entry.is_stub else None
                entry, own = replace(entry, message=message), overriding(message, stub)
            elif j in kept and rank == kept[j].rank:
                entries.append(kept[j])
                continue
            n += 1
            seq = seqs[j] if j in seqs else kept[j].seq
            rank = appended_rank(n) if rank is None else rank
            entries.append(numbered(entry, n, seq, rank, origins.get(j, SAID), own))
        return entries

    def _renewed(self, entries: Sequence[Entry]) -> list[int]:
        """Return the indexes in the old list of messages that remain, but begin a new stay."""
        kept = self.of.alignment.kept
        return [i for j, i in kept.items() if entries[j] != self.of.old[i]]


def _recovers(memory: Memory, listed: Sequence[Entry]) -> bool | None:
    """Return whether the client's policy removes interrupted tool calls, as earlier lists of the
    client show. None if they do not show it.

    `listed` is the list that is stored now.
    """
    calls = interrupted_calls(listed)
    if not calls:
        return None
    if _was_added_behind(memory, calls, listed):
        return False
    lately = Stay.objects.filter(memory=memory, n__gt=memory.last_stay - LATELY)
    return True if lately.filter(reason=Reason.INTERRUPTED).exists() else None


def _was_added_behind(
    memory: Memory, calls: Iterable[InterruptedCall], listed: Iterable[Entry]
) -> bool:
    """Return whether the client added a message after an interrupted tool call. A policy that
    removes such calls would have removed the call then.
    """
    others = (each for each in listed if each.type is not MessageType.TOOL_EXECUTION_RESULT)
    newest = max(others, key=attrgetter("n"))
    if all(each.call.n >= newest.n for each in calls):
        return False
    stays = Stay.objects.filter(memory=memory, n=newest.n).values("entered_step")
    step = Step.objects.filter(memory=memory, n__in=stays)
    return step.filter(kind=Step.Kind.ADD, by_client=True).exists()


def _payloads(entries: Iterable[Entry]) -> list[Payload]:
    return [_payload(entry.message) for entry in entries if entry.message is not None]


def _payload(message: ChatMessage) -> Payload:
    known: Payload | None = message.__dict__.get("_payload")
    if known is not None:
        return known
    kind = OpenPayload if has_open_attributes(message) else Payload
    return kind.of(message_to_json(message), attributes_beside(message))


def remember_payload(message: ChatMessage) -> None:
    """Compute the `Payload` of a message, by which messages of lists are compared. The message
    object remembers it, so later comparisons need not compute it again.
    """
    if "_payload" not in message.__dict__:
        message.__dict__["_payload"] = _payload(message)


def _is_system(entry: Entry) -> bool:
    return entry.type is MessageType.SYSTEM


def returning_messages(memory: Memory, replacement: Replacement) -> dict[int, Entry]:
    """Return the messages that return from the history, as entries by their position in the new
    list. Each entry has the seq and origin of the stored message, and the overrides of its new
    stay.

    Each stored message returns only once. A message of the list can match several stored messages.
    Then the latest stored message with the same attributes returns. If none has the same
    attributes, the latest of all returns.
    """
    allowed = replacement.may_return(is_first=memory.last_seq == 0)
    if not allowed:
        return {}
    sent = replacement.transition.arrivals
    payloads = {position: replacement.payloads[position] for position in allowed}
    texts = {position: text_of(replacement.message(position)) for position in allowed}
    text_of_payload = {payloads[position].bare: texts[position] for position in allowed}
    left = _messages_that_left(memory, text_of_payload, {entry.seq for entry in replacement.old})
    returning = _latest(left, allowed, payloads)
    marked = [
        each.row.seq
        for position, each in returning.items()
        if tombstone_of(each.row.seq) in payloads[position].bare
    ]
    tokens = _tokens_of_redacted(memory, marked)
    return {
        position: each.returning(sent[position], payloads[position], tokens.get(each.row.seq))
        for position, each in returning.items()
    }


def _latest(
    left: Sequence[_DepartedMessage],
    allowed: Mapping[int, Collection[Reason]],
    payloads: Mapping[int, Payload],
) -> dict[int, _DepartedMessage]:
    """Return the latest message that left and matches the position, for each position. Messages are
    first compared with their attributes, then without.
    """
    found: dict[int, _DepartedMessage] = {}
    taken: set[int] = set()
    for is_whole in (True, False):
        free: dict[tuple[Payload | str, Reason], list[_DepartedMessage]] = defaultdict(list)
        for each in left:
            if each.row.seq not in taken:
                free[each.shown if is_whole else each.shown.bare, each.reason].append(each)
        for position in sorted(allowed.keys() - found.keys(), reverse=True):
            payload = payloads[position] if is_whole else payloads[position].bare
            rows = [free[payload, reason] for reason in allowed[position]]
            if any(rows):
                found[position] = max(filter(None, rows), key=_latest_seq).pop()
                taken.add(found[position].row.seq)
    return found


def _messages_that_left(
    memory: Memory, text_of_payload: Mapping[str, str], in_window: Collection[int]
) -> list[_DepartedMessage]:
    """Return the messages that left and have one of these payloads, in the order of the history.
    `text_of_payload` maps each payload to its text.
    """
    # By step first, because SQLite would look for the last number in the stays of all messages.
    stays = Stay.objects.filter(memory=memory, seq=OuterRef("seq"))
    last_stay = stays.order_by("-entered_step", "-n")
    rows = (
        Message.objects.filter(memory=memory)
        .annotate(
            left_for=Subquery(last_stay.values("reason")[:1]),
            overrides=Subquery(last_stay.values("overrides")[:1]),
        )
        .order_by("seq")
        .values_list(*_COLUMNS, named=True)
    )
    left = []
    for row in rows.filter(database.in_list("text", set(text_of_payload.values()))):
        stored = Payload.of(payload_of(row.frame, row.text), row.attributes)
        if stored.bare in text_of_payload and row.seq not in in_window:
            overrides = kept(row.overrides)
            shown = stored if overrides is None else _payload(shown_message(row, overrides))
            # Messages that the summary of the same list covers are not written yet
            reason = Reason(row.left_for or Reason.SUMMARIZED)
            left.append(_DepartedMessage(row, stored, shown, reason))
    return left


def _tokens_of_redacted(memory: Memory, seqs: Sequence[int]) -> dict[int, int]:
    """Return the token counts of redacted messages at the time when they left, by seq.

    Messages that were counted by another family of estimators are left out.
    """
    entered = Step.objects.filter(memory=memory, n=OuterRef("entered_step"))
    stays = (
        Stay.objects.filter(memory=memory, message__redacted_step__isnull=False)
        .annotate(estimator=Subquery(entered.values("policy_estimator")))
        .order_by("entered_step", "n")
        .values_list("seq", "tokens", "estimator")
    )
    found = stays.filter(database.in_list("seq", seqs)) if seqs else ()
    last = {seq: (tokens, estimator) for seq, tokens, estimator in found}
    family = family_named(memory.policy_estimator)
    return {
        seq: tokens
        for seq, (tokens, estimator) in last.items()
        if family_named(estimator) == family
    }


def _latest_seq(rows: list[_DepartedMessage]) -> int:
    seq: int = rows[-1].row.seq
    return seq
