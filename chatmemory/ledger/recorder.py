"""Turns transitions into rows: the only module that writes conversations.

A `Ledger` is one conversation held open for change. Its `window` is what the core decides on; what
was decided is recorded as messages, stays and steps, and `flush` writes them at once. Not flushing
is how a simulation leaves no trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from chatmemory.core.alignment import Alignment, align, rearrange, reasons
from chatmemory.core.codec import message_to_json
from chatmemory.core.estimators import family_named
from chatmemory.core.eviction import Eviction, Reason
from chatmemory.core.exceptions import UnstorableText
from chatmemory.core.messages import ChatMessage, MessageType, text_of
from chatmemory.core.policies import Policy, load_of
from chatmemory.core.transitions import Change, Transition
from chatmemory.core.window import Entry, Totals, total
from chatmemory.ledger import flags
from chatmemory.ledger.redaction import redacted
from chatmemory.ledger.stored_window import (
    StayEntry,
    read_message,
    stays_at,
    stored_window,
)
from chatmemory.models import RANK_SPACING, Memory, Message, Stay, Step
from chatmemory.signals import Recorded

BATCH = 500
_RUNNING = ("last_seq", "last_stay", "said_count", "history_tokens", "oldest")


@dataclass(frozen=True)
class EvictedMessage:
    """A message that left in a step; `because_seq` is its tool call, or what replaced it."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    reason: Reason
    because_seq: int | None = None


@dataclass(frozen=True)
class ChangeResult:
    """What one change did. `step` is None when it changed nothing.

    `seq` and `tokens` are those of the message added, where it was one.
    """

    kind: str
    step: int | None
    seq: int | None
    tokens: int
    evicted: tuple[EvictedMessage, ...]
    before: Totals
    after: Totals
    policy: Policy | None

    @property
    def ignored(self) -> bool:
        return self.step is None


@dataclass(frozen=True)
class NewMessage:
    """A message on its way in, with what its sender says of it."""

    message: ChatMessage
    client_id: str | None = None
    said_at: datetime | None = None


class Ledger:
    """One conversation and the rows that its changes will add; every method records one step."""

    def __init__(
        self, memory: Memory, actor: str = "", now: datetime | None = None, at: Step | None = None
    ) -> None:
        self.memory = memory
        self._is_past = at is not None
        if at is not None:
            self._go_back(at)
        self.window = stored_window(memory, stays_at(at) if at is not None else None)
        self._actor = actor
        self._now = now or timezone.now()
        self._messages: list[Message] = []
        self._stays: list[Stay] = []
        self._steps: list[Step] = []
        self._newest: dict[object, Stay] = {}
        self._ended: dict[tuple[int, Reason], list[int]] = defaultdict(list)
        self._is_changed = False

    def keep(self, transition: Transition, said: NewMessage | None = None) -> ChangeResult:
        """Record a transition decided on `window`, under the policy that decided it."""
        if transition.ignored:
            return self._outcome(transition, None, None, ())
        self.adopt(transition.policy_before)
        if transition.change is Change.ADD:
            return self._add(transition, said)
        if transition.change is Change.SET:
            return self.replace(transition)
        return self._clear(transition)

    def adopt(
        self, policy: Policy | None, estimator: str | None = None, note: str = ""
    ) -> Step | None:
        """Put a policy in force: a step of its own, with a recount when the token family changes.

        Without a policy the client decides, and `estimator` counts. The window must have been
        counted by the new family. A conversation to which nothing has happened takes its first
        policy silently, as part of being made.
        """
        memory = self.memory
        estimator = policy.estimator if policy else estimator or memory.policy_estimator
        if policy == memory.policy and estimator == memory.policy_estimator:
            return None
        recount = family_named(estimator) != family_named(memory.policy_estimator)
        is_first = memory.policy is None and memory.last_step == 0
        memory.policy = policy
        memory.policy_estimator = estimator
        memory.window_load = load_of(policy, self.window.totals)
        self._is_changed = True
        if is_first:
            return None
        before = Totals(memory.window_count, memory.window_tokens)
        if recount:
            self._reenter(self._next_step, list(self.window))
        after = total(self.window) if recount else before
        return self._record(Step.Kind.POLICY, before, after, note=note)

    def again(self, seq: int) -> ChangeResult:
        """A message that was said before and is sent once more: nothing changes."""
        totals, policy = self.window.totals, self.memory.policy
        return ChangeResult(Change.ADD, None, seq, 0, (), totals, totals, policy)

    def label(self, labels: dict[str, str]) -> Step | None:
        """Change the labels, as a step; the same labels again are none."""
        if labels == self.memory.labels:
            return None
        self.memory.labels = labels
        totals = self.window.totals
        return self._record(Step.Kind.LABELS, totals, totals)

    def redact(self, row: Message) -> Step | None:
        """Take a message's words away, for good; a second time changes nothing.

        The step says who did it, and when.
        """
        if row.redacted_step is not None:
            return None
        shape = redacted(read_message(row), row.seq)
        row.text, row.payload = text_of(shape), message_to_json(shape)
        row.redacted_step = self._next_step
        row.save(update_fields=["text", "payload", "redacted_step"])
        totals = self.window.totals
        return self._record(Step.Kind.REDACT, totals, totals, seq=row.seq)

    def weighed(self, arrivals: Sequence[Entry]) -> list[Entry]:
        """The entries of a whole new list; a tombstone keeps the weight that its words had."""
        steps = Step.objects.filter(memory=self.memory, kind=Step.Kind.REDACT)
        if not steps.exists():
            return list(arrivals)
        stood = {message_to_json(e.message): e.tokens for e in self.window.with_messages()}
        return [
            replace(entry, tokens=stood.get(message_to_json(entry.message), entry.tokens))
            for entry in arrivals
        ]

    def replace(self, transition: Transition, by_client: bool = False) -> ChangeResult:
        """Record a whole new list: what stayed keeps its stay, the rest comes, leaves or moves.

        With `by_client` the caller decided alone (`update_messages`), and departures get the reason
        that explains them; otherwise they were SET.
        """
        old = self.window.with_messages()
        new = transition.arrivals
        payloads = [message_to_json(entry.message) for entry in new]
        match = align if by_client else rearrange
        alignment = match([message_to_json(entry.message) for entry in old], payloads)
        if len(alignment.kept) == len(old) == len(new) and not transition.evictions:
            return self._outcome(transition, None, None, ())
        why = dict.fromkeys((old[i] for i in alignment.left(len(old))), Reason.SET)
        if by_client:
            why = reasons(old, new, alignment, self.memory.policy)
        return self._replace(transition, old, payloads, alignment, why, by_client)

    @property
    def recorded(self) -> Recorded:
        """What was done here so far."""
        left = Counter(stay.reason for stay in self._stays if stay.left_step is not None)
        left.update({reason: len(numbers) for (_, reason), numbers in self._ended.items()})
        memory, policy = self.memory, self.memory.policy
        load = load_of(policy, Totals(memory.window_count, memory.window_tokens))
        return Recorded(
            memory_id=memory.pk,
            actor=self._actor,
            steps=tuple((step.n, str(step.kind)) for step in self._steps),
            said=sum(row.origin == Message.Origin.SAID for row in self._messages),
            left={str(reason): count for reason, count in left.items() if count},
            fill=load / policy.limit if policy and load is not None else None,
        )

    def flush(self) -> bool:
        """Write everything that was recorded; whether there was anything.

        Must run inside the transaction that locked the row.
        """
        assert not self._is_past, "the past cannot be changed"
        if not self._is_changed:
            return False
        for (step, reason), numbers in self._ended.items():
            for start in range(0, len(numbers), BATCH):
                Stay.objects.filter(
                    memory=self.memory, n__in=numbers[start : start + BATCH]
                ).update(left_step=step, reason=reason)
        Message.objects.bulk_create(self._messages, batch_size=BATCH)
        Stay.objects.bulk_create(self._stays, batch_size=BATCH)
        Step.objects.bulk_create(self._steps, batch_size=BATCH)
        self.memory.updated_at = self._now
        self.memory.save(force_update=True)
        return True

    # Going back

    def _go_back(self, step: Step) -> None:
        """Be the conversation as it was after a step: for trying, never to be flushed."""
        memory = self.memory
        memory.policy, memory.policy_estimator = step.policy, step.policy_estimator
        memory.window_count, memory.window_tokens = step.count_after, step.tokens_after
        for name in _RUNNING:
            setattr(memory, name, getattr(step, name))
        memory.last_step = step.n

    # Recording

    def _add(self, transition: Transition, said: NewMessage | None) -> ChangeResult:
        (arrival,) = transition.arrivals
        step = self._next_step
        row = self._say(arrival, said=said)
        self._enter(step, arrival, row.seq, self._edge_rank(transition.at_head))
        left = self._leave_all(step, transition.evictions)
        self._flag(transition, row.seq, left)
        transition.apply_to(self.window)
        self.memory.policy = transition.policy
        self._record(Step.Kind.ADD, transition.before, transition.after)
        return self._outcome(transition, step, row.seq, left)

    def _clear(self, transition: Transition) -> ChangeResult:
        if not transition.evictions:
            return self._outcome(transition, None, None, ())
        step = self._next_step
        left = self._leave_all(step, transition.evictions)
        flags.replaced(self.memory, ())
        transition.apply_to(self.window)
        self._record(Step.Kind.CLEAR, transition.before, transition.after)
        return self._outcome(transition, step, None, left)

    def _flag(self, transition: Transition, seq: int, gone: Sequence[EvictedMessage]) -> None:
        seqs = {each.seq for each in gone}
        flags.left(self.memory, seqs)
        if seq in seqs:
            self.memory.oversized_step = self._next_step
        elif not transition.at_head:
            flags.arrived(self.memory, transition.arrivals[0], seq)

    def _replace(
        self,
        transition: Transition,
        old: Sequence[Entry],
        payloads: Sequence[str],
        alignment: Alignment,
        why: dict[Entry, Reason],
        by_client: bool,
    ) -> ChangeResult:
        step = self._next_step
        gone = [(entry, self.seq(entry)) for entry in old]
        moved = [old[i] for i in alignment.moved.values()]
        left = self._leave_all(step, [Eviction(entry, reason) for entry, reason in why.items()])
        self._leave_all(step, [Eviction(entry, Reason.MOVED) for entry in moved])
        seqs = {j: gone[i][1] for j, i in alignment.moved.items()}
        seqs |= self._arrive(transition.arrivals, payloads, alignment, by_client)
        standing = [
            old[alignment.kept[j]] if j in alignment.kept else entry
            for j, entry in enumerate(transition.arrivals)
        ]
        self._enter_between(step, standing, seqs)
        stands = dict(zip(transition.arrivals, standing, strict=True))
        evictions = tuple(
            replace(e, entry=stands[e.entry], because=stands.get(e.because) if e.because else None)
            for e in transition.evictions
        )
        left += self._leave_all(step, evictions)
        trimmed = {eviction.entry for eviction in evictions}
        after = total(entry for entry in standing if entry not in trimmed)
        replace(transition, arrivals=tuple(standing), evictions=evictions, after=after).apply_to(
            self.window
        )
        flags.replaced(self.memory, ((entry, self.seq(entry)) for entry in self.window))
        said = [j for j in seqs if j not in alignment.moved]
        self.memory.ordered_from = self.memory.last_stay
        self.memory.oldest = self._lowest()
        kind = Step.Kind.ADD if by_client and _is_an_add(said, left) else Step.Kind.SET
        self._record(kind, transition.before, self.window.totals, by_client=by_client)
        return self._outcome(transition, step, seqs[said[0]] if len(said) == 1 else None, left)

    def _arrive(
        self,
        arrivals: Sequence[Entry],
        payloads: Sequence[str],
        alignment: Alignment,
        by_client: bool,
    ) -> dict[int, int]:
        """Give every new position its message: one that returns, or one that is said now.

        Before the last message that was there already, what nobody ever said is SYNTHETIC: a
        summary or injected context, not part of the history.
        """
        there = {*alignment.kept, *alignment.moved}
        news = [j for j in range(len(arrivals)) if j not in there]
        last = max(there, default=-1)
        first_ever = self.memory.last_seq == 0
        inside = [j for j in news if j < last and arrivals[j].type is not MessageType.SYSTEM]
        back = {} if first_ever else self._returning(inside if by_client else news, payloads)
        last = last if by_client else max([last, *back])
        seqs = {}
        for j in news:
            if j in back:
                seqs[j] = back[j]
                continue
            said = first_ever or j > last or arrivals[j].type is MessageType.SYSTEM
            origin = Message.Origin.SAID if said else Message.Origin.SYNTHETIC
            seqs[j] = self._say(arrivals[j], origin=origin).seq
        return seqs

    def _returning(self, positions: Sequence[int], payloads: Sequence[str]) -> dict[int, int]:
        """For positions whose message left earlier: its seq, the latest first, each used once."""
        wanted = {payloads[j] for j in positions}
        for payload in wanted:
            _check_unicode(payload)
        if not wanted:
            return {}
        present = {self.seq(entry) for entry in self.window}
        away: dict[str, list[int]] = defaultdict(list)
        rows = Message.objects.filter(memory=self.memory, payload__in=wanted).order_by("seq")
        for payload, seq in rows.values_list("payload", "seq"):
            if seq not in present:
                away[payload].append(seq)
        return {j: away[payloads[j]].pop() for j in reversed(positions) if away[payloads[j]]}

    def _say(
        self,
        entry: Entry,
        said: NewMessage | None = None,
        origin: str = Message.Origin.SAID,
    ) -> Message:
        assert entry.message is not None
        self.memory.last_seq += 1
        row = Message(
            memory=self.memory,
            seq=self.memory.last_seq,
            type=entry.type,
            text=text_of(entry.message),
            payload=message_to_json(entry.message),
            tokens=entry.tokens,
            origin=origin,
            said_at=(said.said_at if said else None) or self._now,
            client_id=said.client_id if said else None,
        )
        check_storable(row)
        self._messages.append(row)
        if origin == Message.Origin.SAID:
            self.memory.said_count += 1
            self.memory.history_tokens += entry.tokens
        return row

    def _enter(self, step: int, entry: Entry, seq: int, rank: int) -> None:
        self.memory.last_stay += 1
        stay = Stay(
            memory=self.memory,
            n=self.memory.last_stay,
            seq=seq,
            entered_step=step,
            rank=rank,
            type=entry.type,
            has_calls=entry.has_calls,
            tokens=entry.tokens,
        )
        self._stays.append(stay)
        self._newest[entry.key] = stay

    def _enter_between(self, step: int, standing: Sequence[Entry], seqs: dict[int, int]) -> None:
        """Enter new positions among kept ones: midpoints where ranks are free, else re-enter."""
        ranks = place_ranks([None if j in seqs else self._rank(e) for j, e in enumerate(standing)])
        for j, (entry, rank) in enumerate(zip(standing, ranks, strict=True)):
            rank = rank if rank is not None else (self.memory.last_stay + 1) * RANK_SPACING
            if j in seqs:
                self._enter(step, entry, seqs[j], rank)
            elif rank != self._rank(entry):
                seq = self.seq(entry)
                self._leave(step, entry, Reason.MOVED)
                self._enter(step, entry, seq, rank)

    def _reenter(self, step: int, entries: Sequence[Entry]) -> None:
        """End every stay and begin another in its place, so that past steps keep their tokens."""
        for entry in entries:
            seq, rank = self.seq(entry), self._rank(entry)
            self._leave(step, entry, Reason.MOVED)
            self._enter(step, entry, seq, rank)

    def _leave_all(self, step: int, evictions: Iterable[Eviction]) -> tuple[EvictedMessage, ...]:
        left = tuple(self._left(eviction) for eviction in evictions)
        for eviction in evictions:
            self._leave(step, eviction.entry, eviction.reason)
        return left

    def _leave(self, step: int, entry: Entry, reason: Reason) -> None:
        stay = self._newest.get(entry.key)
        if stay is None:
            self._ended[step, reason].append(self._number(entry))
        else:
            stay.left_step, stay.reason = step, reason

    def _left(self, eviction: Eviction) -> EvictedMessage:
        entry, because = eviction.entry, eviction.because
        return EvictedMessage(
            seq=self.seq(entry),
            type=entry.type,
            has_calls=entry.has_calls,
            tokens=entry.tokens,
            reason=eviction.reason,
            because_seq=self.seq(because) if because else None,
        )

    def _record(
        self,
        kind: str,
        before: Totals,
        after: Totals,
        by_client: bool = False,
        note: str = "",
        seq: int | None = None,
    ) -> Step:
        memory = self.memory
        self._is_changed = True
        memory.last_step += 1
        memory.window_count, memory.window_tokens = after
        memory.window_load = load_of(memory.policy, after)
        if after.count <= before.count or not before.count:
            memory.oldest = self._oldest()
        step = Step(
            memory=memory,
            n=memory.last_step,
            kind=kind,
            at=self._now,
            actor=self._actor,
            by_client=by_client,
            count_before=before.count,
            tokens_before=before.tokens,
            count_after=after.count,
            tokens_after=after.tokens,
            history_tokens=memory.history_tokens,
            last_seq=memory.last_seq,
            said_count=memory.said_count,
            last_stay=memory.last_stay,
            oldest=memory.oldest,
            note=note,
            seq=seq,
        )
        step.policy = memory.policy
        step.policy_estimator = memory.policy_estimator
        self._steps.append(step)
        return step

    def _outcome(
        self,
        transition: Transition,
        step: int | None,
        seq: int | None,
        left: tuple[EvictedMessage, ...],
    ) -> ChangeResult:
        return ChangeResult(
            transition.change,
            step,
            seq,
            transition.arrivals[0].tokens if len(transition.arrivals) == 1 else 0,
            left,
            transition.before,
            self.window.totals,
            self.memory.policy,
        )

    # Places

    @property
    def _next_step(self) -> int:
        return self.memory.last_step + 1

    def _number(self, entry: Entry) -> int:
        stay = self._newest.get(entry.key)
        return stay.n if stay else _stored(entry).key  # type: ignore[return-value]

    def seq(self, entry: Entry) -> int:
        """The message of an entry of `window`."""
        stay = self._newest.get(entry.key)
        return stay.seq if stay else _stored(entry).seq

    def _rank(self, entry: Entry) -> int:
        stay = self._newest.get(entry.key)
        return stay.rank if stay else _stored(entry).rank

    def _edge_rank(self, at_head: bool) -> int:
        first = next(iter(self.window), None) if at_head else None
        if first is None:
            return (self.memory.last_stay + 1) * RANK_SPACING
        return self._rank(first) - RANK_SPACING

    def _lowest(self) -> int:
        """The lowest number of an open stay behind a leading system message: O(window)."""
        entries = list(self.window)
        if entries and entries[0].type is MessageType.SYSTEM:
            del entries[0]
        return min(map(self._number, entries), default=self.memory.last_stay + 1)

    def _oldest(self) -> int:
        """The lowest number of an open stay behind a leading system message, or a bound below it.

        Where stays were last set in an order of the client's own, numbers and ranks disagree up to
        `ordered_from`, and the bound stays where it was.
        """
        entries = iter(self.window)
        first = next(entries, None)
        if first is not None and first.type is MessageType.SYSTEM:
            first = next(entries, None)
        if first is None:
            return self.memory.last_stay + 1
        number = self._number(first)
        return number if number > self.memory.ordered_from else self.memory.oldest


def _stored(entry: Entry) -> StayEntry:
    assert isinstance(entry, StayEntry)
    return entry


def _is_an_add(said: Sequence[int], left: Sequence[EvictedMessage]) -> bool:
    return len(said) == 1 and all(each.reason is not Reason.SET for each in left)


def place_ranks(ranks: Sequence[int | None]) -> list[int | None]:
    """Fill the gaps (None) between ascending ranks: midpoints, evenly spaced; before the head,
    below it.

    From the first gap that has no room on, and at the end, None asks for the next free rank.
    """
    placed: list[int | None] = list(ranks)
    known = [j for j, rank in enumerate(ranks) if rank is not None]
    previous = -1
    for j in known:
        gap = j - previous - 1
        high = ranks[j]
        assert high is not None
        low = ranks[previous] if previous >= 0 else high - (gap + 1) * RANK_SPACING
        assert low is not None
        if high - low <= gap:
            return placed[: previous + 1] + [None] * (len(ranks) - previous - 1)
        for position in range(1, gap + 1):
            placed[previous + position] = low + (high - low) * position // (gap + 1)
        previous = j
    return placed


def check_storable(row: Message) -> None:
    """Raises UnstorableText for NUL and lone surrogates, which PostgreSQL cannot hold."""
    if "\x00" in row.text:
        raise UnstorableText("the text holds a NUL character, which no database stores: remove it")
    _check_unicode(row.payload)
    _check_unicode(row.text)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnstorableText(
            f"the text holds a lone surrogate (U+{ord(error.object[error.start]):04X}), "
            "which no database stores: send valid Unicode"
        ) from error
