"""Transitions: the effect of each kind of change on a window, as pure functions.

`admit` adds a message, `refill` replaces the whole list, `clear` empties it. Each returns a
`Transition` and changes nothing. Live adds, stores, simulation, replay and verification all use the
same transitions.

The rules are those of LangChain4j's MessageWindowChatMemory and TokenWindowChatMemory:

- An add trims the window, appends the message and trims again. The limit is read again for the
  second trim.
- An added system message replaces the first system message in the window. If the two messages are
  equal, the add is ignored. The new system message goes to the end, or to the head if
  `always_keep_system_message_first` is set.
- A read returns the trimmed window and writes nothing back.
- With `auto_recover_orphaned_tool_messages`, a read leaves out interrupted tool calls, and an add
  evicts these calls. The add of a tool result is an exception: interrupted tool calls stay, and the
  window is trimmed only after the append.

Options of policies add rules. With `snap_to_user`, the rest of a turn that lost its beginning is
evicted after the last trim. An add can be refused, and then changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice, takewhile
from typing import NamedTuple, NoReturn

from chatmemory.exceptions import NoRoomBesidePins, OversizedMessage
from chatmemory.messages.message import MessageType
from chatmemory.windows.eviction import (
    CannotFit,
    Eviction,
    Head,
    Reason,
    group_of,
    oldest_first,
)
from chatmemory.windows.policies import Policy, has_own_rule
from chatmemory.windows.recovery import in_interrupted_calls, interrupted_calls
from chatmemory.windows.stored_policies import can_decide, total_under
from chatmemory.windows.window import NOTHING, Entry, Totals, Weighable, Window


class Change(StrEnum):
    """The kind of change that a transition makes to a window.

    - ADD adds a message.
    - SET replaces the whole list.
    - CLEAR empties the window.
    - KEEP leaves the window as it is, such as in the step of a new policy.
    - PIN pins or unpins messages.
    - COMPACT replaces messages by a summary.
    - CLEAR_RESULTS replaces old tool results by placeholders.
    - INDEX renews the index message, which lists terms of evicted messages.
    """

    ADD = "add"
    SET = "set"
    CLEAR = "clear"
    KEEP = "keep"
    PIN = "pin"
    COMPACT = "compact"
    CLEAR_RESULTS = "stub"
    INDEX = "index"


# Wide: every add makes a transition, and a value inside it would cost another object.
class Transition(NamedTuple):
    """The effect of one change on a window: the messages that come and leave, and the totals
    `before` and `after` the change.

    - `arrivals` has the added message of an ADD, or the whole new list of a change such as SET,
      COMPACT or PIN. It is empty for CLEAR and KEEP, and if the change is ignored. For an add that
      was inferred from a client's list, it can be empty as well (see `lists.inferred_add`).
    - `evictions` are in the order in which they happen. An arrival may be among them: a message
      larger than the limit can leave in the step that added it.
    - `policy` trims the window. In an add, `policy_before` trims the window before the message is
      appended, and `policy` afterwards. Both are None without a policy.
    - `at_head` is True if the arrival goes to the head of the window.
    - `pinned` are the totals of pinned messages, set only for an add. Only the part of the window
      that the add has read is counted.
    - `is_oversized` is True if the added message does not fit the limit even if only the system
      message stays beside it.
    - `note` is for readers of the ledger, and decides nothing.
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
        """Whether the transition is an add, or a clearing of tool results, that changes nothing."""
        can_be = self.change in (Change.ADD, Change.CLEAR_RESULTS)
        return can_be and not self.arrivals and not self.evictions

    @property
    def has_room(self) -> bool:
        """Whether all arrivals stay and the resulting window is within the limit. A limit that only
        measures is not checked.
        """
        policy = self.policy
        if policy is not None and not policy.meters_only and policy.is_exceeded_by(self.after):
            return False
        return all(eviction.entry not in self.arrivals for eviction in self.evictions)

    @property
    def cannot_fit(self) -> CannotFit | None:
        """The reason why an added message left at once for lack of room; None if the message
        stayed, or if the change is no add.
        """
        if self.change is not Change.ADD or not self.evictions or not can_decide(self.policy):
            return None
        left = {each.entry.key for each in self.evictions if each.reason is Reason.CAPACITY}
        arrival = next((entry for entry in self.arrivals if entry.key in left), None)
        if arrival is None:
            return None
        remaining = self.after.without(self.pinned)
        return why_it_cannot_fit(self.policy, remaining, arrival, self.pinned)

    def with_entries(self, entries: Mapping[Entry, Entry]) -> Transition:
        """Return the same transition with other entry objects, such as entries with loaded
        messages. `entries` maps each entry to an equal entry that takes its place.
        """
        return self._replace(
            arrivals=tuple([entries.get(entry, entry) for entry in self.arrivals]),
            evictions=tuple([eviction.with_entries(entries) for eviction in self.evictions]),
        )

    def apply_to(self, window: Window) -> None:
        """Apply this transition to a window. The transition must have been made for this window."""
        if self.ignored or self.change is Change.KEEP:
            return
        if self.change is Change.ADD:
            for arrival in self.arrivals:
                window.place(arrival, self.at_head)
            for eviction in self.evictions:
                window.discard(eviction.entry)
            if self.policy is None:
                left = [eviction.entry for eviction in self.evictions]
                cost = window.cost_after(self.arrivals, left)
                window.totals = self.after._replace(cost=cost)
                return
            window.measured_by = self.policy
        else:
            gone = {eviction.entry.key for eviction in self.evictions}
            window.refill([entry for entry in self.arrivals if entry.key not in gone])
            window.measured_by = self.policy if can_decide(self.policy) else None
        window.totals = self.after


def admit(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None = None,
) -> Transition:
    """Return the transition that adds the message `arrival` to the window.

    `policy` trims the window before the message is appended. The policy that `policy_again` returns
    trims the window afterwards; without `policy_again`, `policy` trims both times. LangChain4j,
    too, reads its limit twice per add.

    Raises OversizedMessage if the policy rejects the message as oversized. Raises NoRoomBesidePins
    if the message would fit only without the pinned messages.
    """
    transition = admit_beside_pins(window, arrival, policy, policy_again)
    if transition.pinned.count and not transition.has_room:
        # Messages that a read hides leave in any case: pins did not take their room
        entries = list(window) if keeps_interrupted(policy, arrival) else visible(window, policy)
        unpinned = Window(entry for entry in entries if not entry.pinned)
        if admit_beside_pins(unpinned, arrival, policy, policy_again).has_room:
            entries.insert(0 if transition.at_head else len(entries), arrival)
            refuse_beside_pins(transition.policy or policy, arrival, entries, transition.evictions)
    return transition


def admit_beside_pins(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None = None,
) -> Transition:
    """Return the transition that adds a message, like `admit`, but never raise NoRoomBesidePins.

    If pinned messages leave no room, the added message leaves at once, unless the policy keeps
    oversized messages. Some stored steps of earlier versions followed this rule.

    Raises OversizedMessage if the policy rejects the message as oversized.
    """
    head, evictions = _without_interrupted(window, arrival, policy)
    trimmed = [] if keeps_interrupted(policy, arrival) else policy.trim(head)
    evictions += trimmed
    is_trimmed = bool(trimmed)
    is_system = arrival.type is MessageType.SYSTEM
    if is_system and (in_force := _system_in_force(window, evictions)):
        if in_force.message == arrival.message:
            return Transition(Change.ADD, window.totals, window.totals, policy, policy)
        head.remove(in_force)
        evictions.append(Eviction(in_force, Reason.REPLACED, because=arrival))
    at_head = is_system and policy.always_keep_system_message_first
    head.place(arrival, at_head)
    policy_after = policy_again() if policy_again else policy
    if not policy_after.costs_like(policy):
        head.measure_with(policy_after)
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


def keeps_interrupted(policy: Policy, arrival: Entry) -> bool:
    """Return whether interrupted tool calls stay at the add of `arrival`, although the policy
    removes them at other adds. This is so if `arrival` is a tool result, which may complete a call.
    """
    return policy.recovers and arrival.type is MessageType.TOOL_EXECUTION_RESULT


def _without_interrupted(
    window: Window, arrival: Entry, policy: Policy
) -> tuple[Head, list[Eviction]]:
    """Return the head of a window without the interrupted tool calls that an add removes, and the
    evictions of these calls.
    """
    totals = window.measure_with(policy)
    if not policy.recovers or keeps_interrupted(policy, arrival):
        return Head(window, totals, policy), []
    entries, evictions = recovered(window.with_tool_messages(), policy, because=arrival)
    if not evictions:
        return Head(window, totals, policy), []
    gone = policy.total(evictions)
    return Head(entries, totals.without(gone), policy), evictions


def leaving_interrupted(window: Window, arrival: Entry, policy: Policy) -> set[Entry]:
    """Return the entries of interrupted tool calls, and of their results, that an add of `arrival`
    removes. Empty if the policy does not remove interrupted tool calls, or if `arrival` is a tool
    result.
    """
    if not policy.recovers or keeps_interrupted(policy, arrival):
        return set()
    return in_interrupted_calls(interrupted_calls(window.with_tool_messages()))


def recovered(
    entries: Sequence[Entry], policy: Policy | None, because: Entry | None = None
) -> tuple[list[Entry], list[Eviction]]:
    """Return the entries without interrupted tool calls and their results, and the evictions of
    these calls and results.

    Nothing is removed without a policy that removes interrupted tool calls (see `Policy.recovers`).
    The messages of tool calls and results must be loaded. `because` is the message whose add
    removes the calls; None if there is no add.
    """
    calls = interrupted_calls(entries) if policy is not None and policy.recovers else []
    gone = in_interrupted_calls(calls)
    evictions = [eviction for call in calls for eviction in call.evictions(because)]
    return [entry for entry in entries if entry not in gone], evictions


def _system_in_force(window: Window, evictions: Sequence[Eviction]) -> Entry | None:
    """Return the first system message of a window that is not among the evictions, or None."""
    gone = {eviction.entry for eviction in evictions}
    return next((each for each in window.systems() if each not in gone), None)


def append(window: Window, arrival: Entry) -> Transition:
    """Return the transition that adds a message at the end without any policy, so that nothing
    leaves.
    """
    after = window.totals.plus(arrival)
    return Transition(Change.ADD, window.totals, after, None, None, arrivals=(arrival,))


def refill(
    window: Window,
    arrivals: Sequence[Entry],
    policy: Policy | None,
) -> Transition:
    """Return the transition that replaces the whole list by `arrivals`, trimmed by the policy.

    Without a policy, nothing is trimmed. Raises OversizedMessage if the policy rejects one of the
    arrivals as oversized.
    """
    after, evictions = total_under(policy, arrivals), list[Eviction]()
    if policy:
        head = Head(arrivals, after, policy)
        evictions, after = trim(head, policy), head.totals
        if policy.rejects_oversized:
            check_list(policy, head.leading_system, arrivals)
    return Transition(
        Change.SET,
        before=window.totals,
        after=after,
        policy=policy,
        policy_before=policy,
        arrivals=arrivals,
        evictions=tuple(evictions),
    )


def clear(window: Window, policy: Policy | None) -> Transition:
    """Return the transition in which all messages leave the window."""
    left = tuple(Eviction(entry, Reason.CLEARED) for entry in window)
    before = totals_under(policy, window)
    return Transition(Change.CLEAR, before, Totals(), policy, policy, evictions=left)


def set_pinned(
    window: Window, entry: Entry, policy: Policy | None, pinned: bool = True
) -> Transition:
    """Return the transition that pins or unpins a message. Its position is unchanged.

    A tool call and the results directly after it are pinned together.
    """
    entries = window.with_system_messages()
    chosen = group_of(entries, entries.index(entry))
    changed = {each: replace(each, pinned=pinned, key=object()) for each in chosen}
    totals = totals_under(policy, window)
    return Transition(
        Change.PIN,
        before=totals,
        after=totals,
        policy=policy,
        policy_before=policy,
        arrivals=tuple(changed.get(each, each) for each in entries),
        evictions=tuple(Eviction(each, Reason.MOVED) for each in chosen),
    )


def unchanged(window: Window, policy: Policy | None) -> Transition:
    """Return a transition that changes nothing in the window, for steps such as a new policy."""
    totals = totals_under(policy, window)
    return Transition(Change.KEEP, totals, totals, policy, policy)


def totals_under(policy: Policy | None, window: Window) -> Totals:
    """Return the totals of a window under a policy. Without a policy, or if its kind or an option
    is not installed, return `window.totals` unchanged.
    """
    return window.measure_with(policy) if can_decide(policy) else window.totals


def trim(head: Head, policy: Policy) -> list[Eviction]:
    """Trim the window once by the policy, and return the evictions. If anything leaves and the
    policy takes whole turns, the rest of a turn that lost its beginning leaves as well.
    """
    evictions = policy.trim(head)
    return [*evictions, *policy.evict_partial_turn(head)] if evictions else []


def hidden_from_reads(entries: Iterable[Entry], policy: Policy | None) -> list[Eviction]:
    """Return the evictions of the messages that reads leave out. These messages stay in the window
    until an add evicts them.

    Interrupted tool calls come first. Then come the messages over the limit, such as after the
    limit was lowered. [] without a policy. If the policy hides interrupted tool calls, the messages
    of tool calls and results must be loaded.
    """
    if policy is None:
        return []
    remaining, evictions = recovered([*entries], policy)
    return [*evictions, *trim(Head(remaining, policy.total(remaining), policy), policy)]


def next_to_leave(entries: Iterable[Entry], totals: Totals, policy: Policy) -> list[Eviction]:
    """Return the evictions that will come first when the window is full, even if it is not full
    now.

    By default, these are the evictions of one message and its tool results. With an option such as
    `low_water`, one trim evicts more messages: then all evictions of this trim are returned. [] if
    the limit only measures, or if nothing can leave.
    """
    if policy.meters_only:
        return []
    arrival = taking_room(policy)
    head = Head(entries, totals, policy)
    head.place(arrival, at_head=False)
    limit = max(1, policy.load(head.totals) - 1)
    leaving = _first_to_leave(head, policy.sliding(limit))
    if not leaving or leaving[0].entry is arrival:
        return []
    if not policy.has_window_options:
        return leaving
    mark = limit - (policy.limit - policy.low_mark)
    leaving += oldest_first(head, lambda totals: policy.load(totals) > mark, spares_newest=True)
    return [*leaving, *policy.evict_partial_turn(head)]


def taking_room(policy: Policy, tokens: int = 2) -> Entry:
    """Return a made-up message of `tokens` tokens, with which callers find out what an add would
    evict. It is an assistant message, or a user message if assistant messages cost nothing under
    the policy.
    """
    of_model = Entry(MessageType.AI, has_calls=False, tokens=tokens)
    return of_model if policy.weigh(of_model) else replace(of_model, type=MessageType.USER)


def _first_to_leave(head: Head, policy: Policy) -> list[Eviction]:
    """Evict the first message by the policy's rule, with the results that leave with it."""
    if not has_own_rule(type(policy)):
        return head.evict_at(head.oldest) if head.at(head.oldest) else []
    evictions = iter(policy.evict(head))
    leaving = list(islice(evictions, 1))
    return [*leaving, *takewhile(lambda each: each.reason is Reason.ORPHANED, evictions)]


def visible(window: Window, policy: Policy | None) -> list[Entry]:
    """Return the entries that the model sees: those that remain after the policy's trim.
    Interrupted tool calls are left out if the policy hides them. The window itself does not change.

    If the policy hides interrupted calls, the returned entries of tool calls and results have their
    messages loaded.
    """
    if policy is None:
        return list(window)
    entries = window.with_tool_messages() if policy.recovers else list(window)
    if policy.recovers:
        hidden = {eviction.entry for eviction in hidden_from_reads(entries, policy)}
    else:
        head = Head(window, window.measure_with(policy), policy)
        hidden = {eviction.entry for eviction in trim(head, policy)}
    return [entry for entry in entries if entry not in hidden]


# Messages for which a limit has no room: they are refused or leave at once
#
# A message is *oversized* if the limit has no room for it even alone: beside the leading system
# message, and with what every request costs. Pinned messages do not count in that.


def why_it_cannot_fit(
    policy: Policy, remaining: Totals, message: Weighable, pinned: Totals = NOTHING
) -> CannotFit:
    """Return the reason why a message could not stay in the window.

    `remaining` are the totals of all other messages that stay, except the pinned messages. `pinned`
    are the totals of the pinned messages.
    """
    cost = policy.weigh(message)
    if pinned.count and not policy.is_exceeded_by(remaining.plus(message, cost)):
        return CannotFit.NO_ROOM_BESIDE_PINS
    if not remaining.count:
        return CannotFit.TOO_BIG
    if policy.is_exceeded_by(remaining):
        return CannotFit.SYSTEM_TOO_BIG
    empty = Entry(message.type, message.has_calls, tokens=0)
    if policy.is_exceeded_by(remaining.plus(empty, policy.weigh(empty))):
        return CannotFit.SYSTEM_FILLS
    if policy.is_exceeded_by(policy.total([message])):
        return CannotFit.TOO_BIG
    return CannotFit.TOO_BIG_BESIDE_SYSTEM


def is_oversized(policy: Policy, system: Entry | None, message: Entry) -> bool:
    """Return whether a message is too large for the limit even if everything but the leading system
    message (`system`) leaves.
    """
    return policy.is_exceeded_by(policy.total(_with(system, message)))


def check_oversized(
    policy: Policy, system: Entry | None, message: Entry, index: int | None = None
) -> None:
    """Raise OversizedMessage if the limit has no room for a message beside the system message.
    `index` is the message's position in a list, for the error.
    """
    if not is_oversized(policy, system, message):
        return
    beside = [each for each in _with(system, message) if each != message]
    parts = {"the message": [message], "the system message": beside}
    sums = _sums(policy, {name: policy.total(entries) for name, entries in parts.items()})
    raise OversizedMessage(
        f"the message is oversized, which the policy rejects: {sums}. Shorten it, or raise the "
        "limit",
        index,
    )


def check_list(policy: Policy, system: Entry | None, messages: Sequence[Entry]) -> None:
    """Check each message of a list with `check_oversized`, except pinned messages. Raises
    OversizedMessage for the first message that is too large.
    """
    for index, message in enumerate(messages):
        if not message.pinned:
            check_oversized(policy, system, message, index)


def refuse_beside_pins(
    policy: Policy, arrival: Entry, entries: Sequence[Entry], evictions: Sequence[Eviction]
) -> NoReturn:
    """Raise NoRoomBesidePins for a message that would fit the limit if nothing were pinned.

    `entries` are the messages in memory and the arriving message. `evictions` are the evictions
    that the add would make. The error shows the costs as a sum, such as `500 for the message + 400
    for what is pinned + 3 for every request = 903 of 800 tokens`.
    """
    gone = {eviction.entry for eviction in evictions}
    kept = [entry for entry in entries if entry not in gone]
    free = [entry for entry in kept if not entry.pinned]
    system = [entry for entry in free[:1] if entry.type is MessageType.SYSTEM and entry != arrival]
    others = [entry for entry in free[len(system) :] if entry != arrival]
    is_result = arrival.type is MessageType.TOOL_EXECUTION_RESULT
    parts = {
        "the message": [arrival],
        "what it answers": [*_left_with(arrival, evictions), *(others if is_result else [])],
        "the system message": system,
        "the newest message": [] if is_result else others,
        "what is pinned": [entry for entry in kept if entry.pinned],
    }
    sums = _sums(policy, {name: policy.total(entries) for name, entries in parts.items()})
    raise NoRoomBesidePins(
        f"the message fits the limit, but not beside what is pinned: {sums}. Unpin a message, or "
        "raise the limit"
    )


def _left_with(arrival: Entry, evictions: Sequence[Eviction]) -> list[Entry]:
    """Return the tool call with which an evicted result left, and the call's other results. [] if
    the result left alone.
    """
    call = next((each.because for each in evictions if each.entry == arrival), None)
    left = [each.entry for each in evictions if call in (each.entry, each.because)]
    return [entry for entry in left if entry != arrival] if call else []


def _with(system: Entry | None, message: Entry) -> list[Entry]:
    return [message] if system is None or system == message else [system, message]


def _sums(policy: Policy, parts: dict[str, Totals]) -> str:
    """Return the costs as a sum, such as `900 for the message + 3 for every request = 903 of 800
    tokens`.
    """
    needed = policy.overhead + sum(part.cost for part in parts.values())
    terms = [f"{part.cost:,} for {name}" for name, part in parts.items() if part.count]
    if policy.overhead:
        terms.append(f"{policy.overhead:,} for every request")
    return f"{' + '.join(terms)} = {needed:,} of {policy.limit:,} {policy.unit}"
