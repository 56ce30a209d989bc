"""What a change does to a window: one pure function for each kind of change.

`admit` adds a message, `refill` replaces the whole list, `clear` empties it. Each returns a
`Transition` and changes nothing. Live adds, stores, simulation, replay and verification all apply
or compare the same transitions.

The rules are LangChain4j's (MessageWindowChatMemory and TokenWindowChatMemory, which share them):

- An add trims first, then appends, then trims again, asking for the limit both times.
- A system message equal to the first one in the window is ignored. A different one replaces it and
  goes to the end, or to the head where `always_keep_system_message_first` is set.
- A read is trimmed, and writes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from chatmemory.core.eviction import Eviction, Head, Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import Entry, Totals, Window


class Change(StrEnum):
    """What a transition does to the window."""

    ADD = "add"
    SET = "set"
    CLEAR = "clear"
    KEEP = "keep"


@dataclass(frozen=True)
class Transition:
    """What one change does to a window. `arrivals` is empty when an add was ignored.

    `evictions` come in the order in which they happen and may name an arrival: a message larger
    than the window leaves in the step that brought it. A SET's arrivals are the whole new list.
    `policy_before` bounded the trim that precedes an append, `policy` the one after it.
    """

    change: Change
    before: Totals
    after: Totals
    policy: Policy | None
    policy_before: Policy | None
    arrivals: tuple[Entry, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    at_head: bool = False

    @property
    def ignored(self) -> bool:
        return self.change is Change.ADD and not self.arrivals

    def with_entries(self, entries: Mapping[Entry, Entry]) -> Transition:
        """The same transition about other entries: those that the mapping names are replaced."""
        evictions = (
            replace(
                eviction,
                entry=entries.get(eviction.entry, eviction.entry),
                because=eviction.because and entries.get(eviction.because, eviction.because),
            )
            for eviction in self.evictions
        )
        return replace(
            self,
            arrivals=tuple(entries.get(entry, entry) for entry in self.arrivals),
            evictions=tuple(evictions),
        )

    def apply_to(self, window: Window) -> None:
        """Move `window` along; the transition must have been decided on this window."""
        if self.ignored or self.change is Change.KEEP:
            return
        if self.change is Change.ADD:
            window.place(self.arrivals[0], self.at_head)
        else:
            window.refill(self.arrivals)
        if self.change is not Change.CLEAR:
            for eviction in self.evictions:
                window.discard(eviction.entry)
        window.totals = self.after


def admit(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None = None,
) -> Transition:
    """Decide what adding `arrival` does to `window`.

    `policy_again` is asked after the append, as LangChain4j asks its limit provider twice.
    """
    head = Head(window)
    evictions = list(policy.evict(head))
    if arrival.type is MessageType.SYSTEM:
        in_force = head.first_of(window.systems())
        if in_force is not None and in_force.message == arrival.message:
            return Transition(Change.ADD, window.totals, window.totals, policy, policy)
        if in_force is not None:
            head.remove(in_force)
            evictions.append(Eviction(in_force, Reason.REPLACED, because=arrival))
    at_head = arrival.type is MessageType.SYSTEM and policy.always_keep_system_message_first
    head.place(arrival, at_head)
    policy_after = policy_again() if policy_again else policy
    evictions += policy_after.evict(head)
    return Transition(
        Change.ADD,
        before=window.totals,
        after=head.totals,
        policy=policy_after,
        policy_before=policy,
        arrivals=(arrival,),
        evictions=tuple(evictions),
        at_head=at_head,
    )


def refill(window: Window, arrivals: Iterable[Entry], policy: Policy | None) -> Transition:
    """Decide what replacing the whole list does: all of it stands, then the policy trims it.

    Without a policy the caller decides, and nothing is trimmed.
    """
    arrivals = tuple(arrivals)
    head = Head(Window(arrivals))
    evictions = tuple(policy.evict(head)) if policy else ()
    return Transition(
        Change.SET,
        before=window.totals,
        after=head.totals,
        policy=policy,
        policy_before=policy,
        arrivals=arrivals,
        evictions=evictions,
    )


def clear(window: Window, policy: Policy | None) -> Transition:
    """Decide that everything leaves."""
    evictions = tuple(Eviction(entry, Reason.CLEARED) for entry in window)
    return Transition(Change.CLEAR, window.totals, Totals(), policy, policy, evictions=evictions)


def keep(window: Window, policy: Policy | None) -> Transition:
    """Decide that the window stays as it is."""
    return Transition(Change.KEEP, window.totals, window.totals, policy, policy)


def over_limit(window: Window, policy: Policy | None) -> list[Eviction]:
    """What a read under `policy` leaves out, and the next add evicts first."""
    return list(policy.evict(Head(window))) if policy else []


def visible(window: Window, policy: Policy | None) -> list[Entry]:
    """The window as a read gives it: trimmed by the policy, nothing written back."""
    hidden = {eviction.entry for eviction in over_limit(window, policy)}
    return [entry for entry in window if entry not in hidden]


def fold(window: Window, arrivals: Iterable[Entry], policy: Policy) -> Iterator[Transition]:
    """Add one after the other, moving `window` along; one transition each."""
    for arrival in arrivals:
        transition = admit(window, arrival, policy)
        transition.apply_to(window)
        yield transition
