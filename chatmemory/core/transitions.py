"""Transitions: the effect of each kind of change on a window, as pure functions.

`admit` adds a message, `refill` replaces the whole list, `clear` empties it. Each returns a
`Transition` and changes nothing. Live adds, stores, simulation, replay and verification all apply
or compare the same transitions.

The rules are those of LangChain4j's MessageWindowChatMemory and TokenWindowChatMemory:

- An add trims the window, appends the message and trims again; it reads the limit both times.
- A system message equal to the first one in the window is ignored. A different one replaces it and
  goes to the end, or to the head where `always_keep_system_message_first` is set.
- A read is trimmed and writes nothing back.

Options of policies add to them: after its last trim, a change or a read of a policy that snaps
takes the rest of a turn that lost its beginning. An add can be refused, and then changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice, takewhile
from typing import NamedTuple

from chatmemory.core.eviction import Eviction, Head, Reason, group_of, oldest_first
from chatmemory.core.exceptions import OversizedMessage
from chatmemory.core.fitting import (
    CannotFit,
    check_list,
    check_oversized,
    is_oversized,
    refuse_beside_pins,
    why_it_cannot_fit,
)
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import WHOLE, Policy, has_own_rule
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import NOTHING, Entry, Totals, Window, total


class Change(StrEnum):
    """The kind of a transition."""

    ADD = "add"
    SET = "set"
    CLEAR = "clear"
    KEEP = "keep"
    PIN = "pin"
    COMPACT = "compact"


class Transition(NamedTuple):
    """The effect of one change on a window. `arrivals` is empty if an add was ignored.

    It is also empty if nobody saw the message of a client's add, which left at once (see
    `client_lists`).

    `evictions` are in the order in which they happen and may contain an arrival: a message larger
    than the window leaves in the step that added it. The arrivals of a SET or COMPACT are the
    whole new list.
    `policy_before` is the policy of the trim before an append, `policy` that of the trim after it.
    `pinned` is the part of `after` that pinned messages hold, as far as the decision came to them.
    The arrival of an add `is_oversized` if the limit has no room for it even alone. A `note` is for
    those who read the ledger, and decides nothing.
    """

    change: Change
    before: Totals
    after: Totals
    policy: Policy | None
    policy_before: Policy | None
    arrivals: Sequence[Entry] = ()
    evictions: tuple[Eviction, ...] = ()
    at_head: bool = False
    pinned: Totals = NOTHING
    is_oversized: bool = False
    note: str = ""

    @property
    def ignored(self) -> bool:
        return self.change is Change.ADD and not self.arrivals and not self.evictions

    @property
    def has_room(self) -> bool:
        """Whether what arrived stays, and within the limit if the policy enforces it."""
        policy = self.policy
        if policy is not None and not policy.meters_only and policy.is_exceeded_by(self.after):
            return False
        arrived = {arrival.key for arrival in self.arrivals}
        return arrived.isdisjoint([eviction.entry.key for eviction in self.evictions])

    @property
    def cannot_fit(self) -> CannotFit | None:
        """Why an add evicted its own message; None if it did not."""
        if self.change is not Change.ADD or not self.evictions or not can_decide(self.policy):
            return None
        left = {each.entry.key for each in self.evictions if each.reason is Reason.CAPACITY}
        arrival = next((entry for entry in self.arrivals if entry.key in left), None)
        if arrival is None:
            return None
        return why_it_cannot_fit(self.policy, self.after.without(self.pinned), arrival.tokens)

    def with_entries(self, entries: Mapping[Entry, Entry]) -> Transition:
        """Return the transition with entries replaced by those of the mapping."""
        return self._replace(
            arrivals=tuple([entries.get(entry, entry) for entry in self.arrivals]),
            evictions=tuple([eviction.with_entries(entries) for eviction in self.evictions]),
        )

    def apply_to(self, window: Window) -> None:
        """Apply the transition to the window on which it was decided."""
        if self.ignored or self.change is Change.KEEP:
            return
        if self.change is Change.ADD:
            for arrival in self.arrivals:
                window.place(arrival, self.at_head)
            for eviction in self.evictions:
                window.discard(eviction.entry)
        else:
            gone = {eviction.entry.key for eviction in self.evictions}
            window.refill([entry for entry in self.arrivals if entry.key not in gone])
        window.totals = self.after


def admit(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None = None,
) -> Transition:
    """Return the transition that adds `arrival`.

    `policy_again` is called after the append, because LangChain4j calls its limit provider twice.
    Raises OversizedMessage and NoRoomBesidePins.
    """
    transition = _added(window, arrival, policy, policy_again)
    if transition.pinned.count and not transition.has_room:
        entries = list(window)
        unpinned = Window(entry for entry in entries if not entry.pinned)
        if _added(unpinned, arrival, policy, policy_again).has_room:
            entries.insert(0 if transition.at_head else len(entries), arrival)
            refuse_beside_pins(transition.policy or policy, arrival, entries, transition.evictions)
    return transition


def _added(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None,
) -> Transition:
    head = Head(window, window.totals)
    evictions = policy.trim(head)
    is_trimmed = bool(evictions)
    if arrival.type is MessageType.SYSTEM:
        gone = {eviction.entry for eviction in evictions}
        in_force = next((each for each in window.systems() if each not in gone), None)
        if in_force is not None and in_force.message == arrival.message:
            return Transition(Change.ADD, window.totals, window.totals, policy, policy)
        if in_force is not None:
            head.remove(in_force)
            evictions.append(Eviction(in_force, Reason.REPLACED, because=arrival))
    at_head = arrival.type is MessageType.SYSTEM and policy.always_keep_system_message_first
    head.place(arrival, at_head)
    policy_after = policy_again() if policy_again else policy
    trimmed = policy_after.trim(head)
    evictions += trimmed
    if is_trimmed or trimmed:
        evictions += policy_after.evict_partial_turn(head)
    transition = Transition(
        Change.ADD,
        before=window.totals,
        after=head.totals,
        policy=policy_after,
        policy_before=policy,
        arrivals=(arrival,),
        evictions=tuple(evictions),
        at_head=at_head,
        pinned=head.pinned,
    )
    if transition.has_room:
        return transition
    system = head.leading_system
    if policy_after.rejects_oversized:
        check_oversized(policy_after, system, arrival)
    return transition._replace(is_oversized=is_oversized(policy_after, system, arrival))


def append(window: Window, arrival: Entry) -> Transition:
    """Return the transition that adds `arrival` at the end, where no policy decides."""
    after = window.totals.plus(arrival)
    return Transition(Change.ADD, window.totals, after, None, None, arrivals=(arrival,))


def refill(
    window: Window,
    arrivals: Sequence[Entry],
    policy: Policy | None,
) -> Transition:
    """Return the transition that replaces the whole list, and trims it by the policy.

    Without a policy, nothing is trimmed. Raises OversizedMessage.
    """
    head = Head(arrivals, total(arrivals))
    evictions = trim(head, policy) if policy else []
    if policy and policy.rejects_oversized:
        check_list(policy, head.leading_system, arrivals)
    return Transition(
        Change.SET,
        before=window.totals,
        after=head.totals,
        policy=policy,
        policy_before=policy,
        arrivals=arrivals,
        evictions=tuple(evictions),
    )


def clear(window: Window, policy: Policy | None) -> Transition:
    """Return the transition by which all messages leave."""
    left = tuple(Eviction(entry, Reason.CLEARED) for entry in window)
    return Transition(Change.CLEAR, window.totals, Totals(), policy, policy, evictions=left)


def set_pinned(
    window: Window, entry: Entry, policy: Policy | None, pinned: bool = True
) -> Transition:
    """Return the transition that pins or unpins a message, in its place.

    A tool call and the results directly behind it are pinned together.
    """
    systems = {each: each for each in window.systems()}
    entries = [systems.get(each, each) for each in window]
    chosen = group_of(entries, entries.index(entry))
    changed = {each: replace(each, pinned=pinned, key=object()) for each in chosen}
    return Transition(
        Change.PIN,
        before=window.totals,
        after=window.totals,
        policy=policy,
        policy_before=policy,
        arrivals=tuple(changed.get(each, each) for each in entries),
        evictions=tuple(Eviction(each, Reason.MOVED) for each in chosen),
    )


def unchanged(window: Window, policy: Policy | None) -> Transition:
    """Return the transition that leaves the window as it is."""
    return Transition(Change.KEEP, window.totals, window.totals, policy, policy)


def trim(head: Head, policy: Policy) -> list[Eviction]:
    """Trim once, and take the rest of a turn that lost its beginning by it."""
    evictions = policy.trim(head)
    return [*evictions, *policy.evict_partial_turn(head)] if evictions else []


def hidden_by_limit(
    entries: Iterable[Entry], totals: Totals, policy: Policy | None
) -> list[Eviction]:
    """Return the evictions that a read under `policy` hides and the next add makes.

    The entries may be the first ones of a window with these totals.
    """
    return trim(Head(entries, totals), policy) if policy else []


def next_to_leave(entries: Iterable[Entry], totals: Totals, policy: Policy) -> list[Eviction]:
    """Return the evictions that come first when the next message finds no room.

    They are one message and the tool results that leave with it, and with a low mark all that
    leaves on the way to it. How full the window is now does not matter.
    """
    if policy.meters_only:
        return []
    arrival = Entry(MessageType.AI, has_calls=False, tokens=2)
    head = Head(entries, totals)
    head.place(arrival, at_head=False)
    limit = max(1, policy.load(*head.totals) - 1)
    leaving = _first_to_leave(head, replace(policy, limit=limit, low_water=WHOLE))
    if not leaving or leaving[0].entry is arrival:
        return []
    if not policy.has_window_options:
        return leaving
    mark = limit - (policy.limit - policy.low_mark)
    leaving += oldest_first(head, lambda totals: policy.load(*totals) > mark, spares_newest=True)
    return [*leaving, *policy.evict_partial_turn(head)]


def _first_to_leave(head: Head, policy: Policy) -> list[Eviction]:
    """Evict the first message that the policy takes, with the results that leave with it."""
    if not has_own_rule(type(policy)):
        return head.evict_at(head.oldest) if head.at(head.oldest) else []
    evictions = iter(policy.evict(head))
    leaving = list(islice(evictions, 1))
    return [*leaving, *takewhile(lambda each: each.reason is Reason.ORPHANED, evictions)]


def visible(window: Window, policy: Policy | None) -> list[Entry]:
    """Return the entries that a read gives: trimmed by the policy, without changing the window."""
    hidden = {eviction.entry for eviction in hidden_by_limit(window, window.totals, policy)}
    return [entry for entry in window if entry not in hidden]


def fold(window: Window, arrivals: Iterable[Entry], policy: Policy) -> Iterator[Transition]:
    """Add entries one by one, applying each transition to the window; yield the transitions.

    The transition of a message that the policy rejects changes nothing.
    """
    for arrival in arrivals:
        try:
            transition = admit(window, arrival, policy)
        except OversizedMessage:
            transition = Transition(Change.ADD, window.totals, window.totals, policy, policy)
        transition.apply_to(window)
        yield transition
