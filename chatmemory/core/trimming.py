"""What a trim takes from a long window, read from columns instead of entries.

`departures` decides what `transitions.over_limit` decides. A lowered limit can evict hundreds of
thousands of messages, and an entry, a place in the head and an eviction for each take seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter

from chatmemory.core.departures import PINNED, Departures, OwnDepartures, by_own_rule
from chatmemory.core.long_lists import HAS_CALLS, TOKENS, TYPE, Columns
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, has_own_rule
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import Totals

FEW = 1_000  # rows from which an add takes some as quickly as columns are read
# The columns have plain strings, which are compared with others of their type several times faster.
_SYSTEM, _USER = MessageType.SYSTEM.value, MessageType.USER.value
_RESULT = MessageType.TOOL_EXECUTION_RESULT.value


def departures(rows: Sequence[Columns], totals: Totals, policy: Policy | None) -> Departures:
    """Return what leaves a window that is over its limit; nothing without a policy.

    The rows may be the first ones of a window with these totals.
    """
    if not can_decide(policy) or not policy.is_exceeded_by(totals) or policy.meters_only:
        return Departures()
    decide = by_own_rule if has_own_rule(type(policy)) else _oldest_first
    return decide(rows, totals, policy)


def leaving_ahead(
    rows: Sequence[Columns],
    totals: Totals,
    arrival: Columns,
    policy: Policy,
    same: Collection[int] = (),
    left: Departures | None = None,
) -> Departures:
    """Return what leaves a window when a message arrives, but a system message that it replaces.

    If the message has no room, it is what leaves as far as little else decides that: not the rest
    of a turn, nor the call that the message may answer. Nothing if only some of the first rows
    leave, which an add decides sooner. `same` are the positions of system messages equal to the
    arrival: it is ignored if the one in force is among them. `left` are the departures from these
    rows, if they are known.
    """
    if has_own_rule(type(policy)):
        return _ahead_by_own_rule(rows, totals, policy, left)
    if _leaves_little(rows, totals, arrival, policy):
        return Departures()
    left = _without_turns(rows, totals, policy, left)
    is_system = arrival[TYPE] == _SYSTEM
    gone = set(left.positions) if is_system else set()
    systems = (i for i, row in enumerate(rows) if row[TYPE] == _SYSTEM and i not in gone)
    replaced = next(systems, None) if is_system else None
    if replaced is None or replaced not in same:
        whole = _making_room(rows, totals, arrival, policy, (left, replaced))
        if whole is not None:
            return whole
    if arrival[TYPE] in (_SYSTEM, _RESULT) and any(row[PINNED] for row in rows):
        return Departures()
    together = [*rows, arrival]
    if not left.positions and not is_system:
        left = departures(together, _plus(totals, arrival), replace(policy, snap_to_user=False))
    newest = _newest(together, range(len(together)))
    del left.positions[bisect_left(left.positions, newest) :]
    left.calls = {result: call for result, call in left.calls.items() if result < newest}
    left.ahead = len(left.positions)
    return left


def _leaves_little(
    rows: Sequence[Columns], totals: Totals, arrival: Columns, policy: Policy
) -> bool:
    """Return whether only some of the first rows leave when a message arrives, if any does."""
    after = _plus(totals, arrival)
    if policy.meters_only or not policy.is_exceeded_by(after):
        return True
    first = [row for row in rows[:FEW] if not row[PINNED]]
    number = fewest_to_leave([row[TOKENS] for row in first], after, policy, policy.low_mark)
    behind = first[number:]
    return any([row[TYPE] == _USER for row in behind] if policy.snap_to_user else behind)


def _without_turns(
    rows: Sequence[Columns], totals: Totals, policy: Policy, left: Departures | None
) -> Departures:
    """Return what leaves, but not the rest of a turn; `left` are the departures, if known."""
    if left is None or policy.snap_to_user:
        return departures(rows, totals, replace(policy, snap_to_user=False))
    return Departures(list(left.positions), dict(left.calls))


def _making_room(
    rows: Sequence[Columns],
    totals: Totals,
    arrival: Columns,
    policy: Policy,
    left: tuple[Departures, int | None],
) -> Departures | None:
    """Return all that leaves, if the arrival then is within the limit.

    `left` is what has left before it arrives, and the system message that it replaces.
    """
    ahead, replaced = left
    gone = [*ahead.positions, *([] if replaced is None else [replaced])]
    kept = sorted(set(range(len(rows))).difference(gone))
    lost = _totals([rows[i] for i in gone])
    at_head = arrival[TYPE] == _SYSTEM and policy.always_keep_system_message_first
    place = 0 if at_head else len(kept)
    kept.insert(place, len(rows))
    together = [*rows, arrival]
    head = _Head([together[i] for i in kept], _plus(totals.without(lost), arrival))
    head.trim(policy)
    head.snap(policy, is_trimmed=bool(ahead.positions))
    if head.has_left(place) or policy.is_exceeded_by(head.totals):
        return None
    return Departures(
        [*ahead.positions, *[kept[n] for n in head.left.positions]],
        ahead.calls | {kept[n]: kept[call] for n, call in head.left.calls.items()},
        ahead=len(ahead.positions),
        rest=head.left.rest,
        is_all=True,
    )


def _plus(totals: Totals, arrival: Columns) -> Totals:
    return Totals(totals.count + 1, totals.tokens + arrival[TOKENS])


def fewest_to_leave(tokens: Sequence[int], totals: Totals, policy: Policy, mark: int) -> int:
    """Return how many messages of these tokens must leave a window, so that its load is the mark.

    All of them if that is not enough. A load does not fall when a message is added, so a few are
    computed.
    """
    left = [0, *accumulate(tokens)]

    def fits(number: int) -> bool:
        return policy.load(totals.count - number, totals.tokens - left[number]) <= mark

    return bisect_left(range(len(tokens)), True, key=fits)


def costs(policy: Policy, tokens: Iterable[int]) -> int:
    """Return the part of the load that messages of these tokens make up, without any overhead."""
    return sum(policy.cost(each) * number for each, number in Counter(tokens).items())


def next_departures(rows: Sequence[Columns], totals: Totals, policy: Policy) -> Departures:
    """Return what `transitions.next_to_leave` returns for a policy without a rule of its own."""
    together = [*rows, (0, MessageType.AI.value, False, 2, 0, False)]
    after = Totals(totals.count + 1, totals.tokens + 2)
    limit = max(1, policy.load(*after) - 1)
    if policy.meters_only or policy.load(*after) <= limit:
        return Departures()
    head = _Head(together, after)
    head.take(1, spares_newest=True)
    if head.left.positions and policy.has_window_options:
        head.take_to(policy, limit - (policy.limit - policy.low_mark), spares_newest=True)
        head.snap(policy)
    return head.left


def _oldest_first(rows: Sequence[Columns], totals: Totals, policy: Policy) -> Departures:
    """Return what `transitions.over_limit` takes by the rule that all kinds share."""
    head = _Head(rows, totals)
    head.trim(policy)
    head.snap(policy)
    return head.left


class _Head:
    """What `eviction.Head` is for entries: rows, from the first of which some leave.

    They are numbered here without the pinned ones.
    """

    def __init__(self, rows: Sequence[Columns], totals: Totals) -> None:
        free, unpinned = _unpinned(rows)
        types = [row[TYPE] for row in unpinned]
        self._rows, self._totals, self._free = rows, totals, free
        self._unpinned, self._types = unpinned, types
        self._system = types.index(_SYSTEM) if _SYSTEM in types else None
        self._tokens = [row[TOKENS] for row in unpinned]
        if self._system is not None:
            del self._tokens[self._system]
        self._behind = 0  # where the next one would leave
        self.left = Departures()

    @property
    def totals(self) -> Totals:
        """The totals of the rows that stay."""
        return self._totals.without(_totals([self._rows[i] for i in self.left.positions]))

    def has_left(self, position: int) -> bool:
        return position in self.left.positions

    def trim(self, policy: Policy) -> None:
        """Let rows leave that exceed the limit, and those above the low mark if any does."""
        if policy.is_exceeded_by(self._totals):
            self.take_to(policy, policy.limit, policy.keeps_newest)
            self.take_to(policy, policy.low_mark, spares_newest=True)

    def take_to(self, policy: Policy, mark: int, spares_newest: bool) -> None:
        """Let rows leave until the load is a mark."""
        self.take(fewest_to_leave(self._tokens, self._totals, policy, mark), spares_newest)

    def take(self, number: int, spares_newest: bool) -> None:
        """Let rows leave until so many have left; the results behind the last leave with its call.

        With `spares_newest`, the newest message stays, and the call that it answers.
        """
        free, first, system = self._free, self._behind, self._system
        number -= len(self.left.positions)
        if number <= 0:
            return
        passes_system = system is not None and first <= system < first + number
        end = _newest(self._rows, free) if spares_newest else len(free)
        stop = self._behind_results(first, min(end, first + number + passes_system))
        self.left.positions += free[first:stop]
        if system is not None and first <= system < stop:
            self.left.positions.remove(free[system])
        self._behind = stop

    def _behind_results(self, first: int, stop: int) -> int:
        """Note the calls of the results that leave from `first` on, also of those behind `stop`,
        and return where the last of them ends.
        """
        rows, types, free, calls = self._unpinned, self._types, self._free, self.left.calls
        is_whole = len(free) == len(self._rows)
        for n in [n for n in range(first + 1, stop) if types[n] == _RESULT]:
            before, here = free[n - 1], free[n]
            is_next = is_whole or here == before + 1  # else a pinned message is between
            if is_next and rows[n - 1][HAS_CALLS]:
                calls[here] = before
            elif is_next and before in calls:
                calls[here] = calls[before]
        while first < stop < len(types) and types[stop] == _RESULT:
            i = free[stop - 1]
            if free[stop] > i + 1 or not (rows[stop - 1][HAS_CALLS] or i in calls):
                break
            calls[free[stop]] = calls.get(i, i)
            stop += 1
        return stop

    def snap(self, policy: Policy, is_trimmed: bool = False) -> None:
        """Let the rest of a turn that lost its beginning leave; see `eviction.before_next_user`.

        It may have lost it before.
        """
        if not (is_trimmed or self.left.positions) or not policy.snap_to_user:
            return
        system = self._system
        passed = [] if system is None or system >= self._behind else [self._free[system]]
        rest = _rest_of_turn(self._rows, [*passed, *self._free[self._behind :]])
        self.left.positions += rest
        self.left.rest = len(rest)


def _unpinned(rows: Sequence[Columns]) -> tuple[Sequence[int], Sequence[Columns]]:
    """Return the positions of the rows that are not pinned, and these rows."""
    pins = [row[PINNED] for row in rows]
    if not any(pins):
        return range(len(rows)), rows
    free = [i for i, is_pinned in enumerate(pins) if not is_pinned]
    return free, [rows[i] for i in free]


def _newest(rows: Sequence[Columns], free: Sequence[int]) -> int:
    """Return the first of the rows that stay as the newest message; see `Head.ends_with`."""
    if not free or free[-1] != len(rows) - 1:
        return len(free)
    n = len(free) - 1
    while n and rows[free[n]][TYPE] == _RESULT and free[n] == free[n - 1] + 1:
        n -= 1
    return n if rows[free[n]][HAS_CALLS] else len(free) - 1


def _rest_of_turn(rows: Sequence[Columns], remaining: Sequence[int]) -> Sequence[int]:
    """Return the rows before the next user message, which may be a pinned one; none without one."""
    first = int(bool(remaining) and rows[remaining[0]][TYPE] == _SYSTEM)
    users = [i for i, row in enumerate(rows) if row[TYPE] == _USER]
    ahead = remaining[first:]
    # The first of the rows is not behind the turn that has lost its beginning.
    start = bisect_left(users, ahead[0]) if ahead else len(users)
    return ahead[: bisect_left(ahead, users[start])] if start < len(users) else ()


def _ahead_by_own_rule(
    rows: Sequence[Columns], totals: Totals, policy: Policy, left: Departures | None
) -> Departures:
    """Return what leaves before a message arrives, in order, as by the rule that all kinds share.

    Nothing if the rule takes more of what remains when it is asked again, gives other reasons, or
    evicts in another order, or if a message is pinned: an add then decides.
    """
    first = rows[: max(FEW, len(rows) // 8)]
    is_pinned = any(map(itemgetter(PINNED), rows))
    if is_pinned or not policy.is_exceeded_by(totals.without(_totals(first))):
        return Departures()
    if not isinstance(left, OwnDepartures):
        left = by_own_rule(rows, totals, policy)
    trimmed = left.positions[: len(left) - left.rest]
    gone = set(trimmed)
    remaining = [row for i, row in enumerate(rows) if i not in gone]
    is_settled = not by_own_rule(remaining, _totals(remaining), policy).positions
    if not left.is_usual or not is_settled or trimmed != sorted(trimmed):
        return Departures()
    return Departures(trimmed, left.calls, ahead=len(trimmed))


def _totals(rows: Sequence[Columns]) -> Totals:
    return Totals(len(rows), sum([row[TOKENS] for row in rows]))
