"""What a trim takes from a long window, read from columns instead of entries.

`departures` decides what `transitions.over_limit` decides. A lowered limit can evict hundreds of
thousands of messages, and an entry, a place in the head and an eviction for each take seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from chatmemory.core.long_lists import HAS_CALLS, TOKENS, TYPE, Columns
from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy, can_decide, has_own_rule
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import Entry, Totals, Window

PINNED = 5  # the column of places behind `entered_step`
# The columns have plain strings, which are compared with others of their type several times faster.
_SYSTEM, _USER = MessageType.SYSTEM.value, MessageType.USER.value
_RESULT = MessageType.TOOL_EXECUTION_RESULT.value


@dataclass
class Departures:
    """The positions of rows that leave, in order; of some, the tool call with which they do."""

    positions: list[int] = field(default_factory=list)
    calls: dict[int, int] = field(default_factory=dict)


def departures(rows: Sequence[Columns], totals: Totals, policy: Policy | None) -> Departures:
    """Return what leaves a window that is over its limit; nothing without a policy.

    The rows may be the first ones of a window with these totals.
    """
    if not can_decide(policy) or not policy.is_exceeded_by(totals) or policy.meters_only:
        return Departures()
    decide = _by_own_rule if has_own_rule(type(policy)) else _oldest_first
    return decide(rows, totals, policy)


def leaving_ahead(
    rows: Sequence[Columns], totals: Totals, arrival: Columns, policy: Policy
) -> Departures:
    """Return what leaves a window when a message arrives, as far as little else decides that.

    It leaves before the message arrives, or because of it if the window was within its limit. The
    rest of a turn is not part of it, nor is the call that the message may answer.
    """
    depends_on_pins = arrival[TYPE] in (_SYSTEM, _RESULT) and any(row[PINNED] for row in rows)
    if has_own_rule(type(policy)) or depends_on_pins:
        return Departures()
    trimming, together = replace(policy, snap_to_user=False), [*rows, arrival]
    left = departures(rows, totals, trimming)
    if not left.positions and arrival[TYPE] != _SYSTEM:
        after = Totals(totals.count + 1, totals.tokens + arrival[TOKENS])
        left = departures(together, after, trimming)
    newest = _newest(together, range(len(together)))
    del left.positions[bisect_left(left.positions, newest) :]
    return left


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
    head.take_to(policy, policy.limit, policy.keeps_newest)
    if policy.low_mark < policy.limit:
        head.take_to(policy, policy.low_mark, spares_newest=True)
    head.snap(policy)
    return head.left


class _Head:
    """What `eviction.Head` is for entries: rows, from the first of which some leave.

    They are numbered here without the pinned ones.
    """

    def __init__(self, rows: Sequence[Columns], totals: Totals) -> None:
        free = [i for i, row in enumerate(rows) if not row[PINNED]]
        types = [rows[i][TYPE] for i in free]
        self._rows, self._totals, self._free = rows, totals, free
        self._system = types.index(_SYSTEM) if _SYSTEM in types else None
        self._tokens = [rows[i][TOKENS] for n, i in enumerate(free) if n != self._system]
        self._behind = 0  # where the next one would leave
        self.left = Departures()

    def take_to(self, policy: Policy, mark: int, spares_newest: bool) -> None:
        """Let rows leave until the load is a mark."""
        self.take(fewest_to_leave(self._tokens, self._totals, policy, mark), spares_newest)

    def take(self, number: int, spares_newest: bool) -> None:
        """Let rows leave until so many have left; the results behind the last leave with its call.

        With `spares_newest`, the newest message stays, and the call that it answers.
        """
        rows, free, first, system = self._rows, self._free, self._behind, self._system
        number -= len(self.left.positions)
        if number <= 0:
            return
        passes_system = system is not None and first <= system < first + number
        end = _newest(rows, free) if spares_newest else len(free)
        stop = min(end, first + number + passes_system)
        for n in [n for n in range(first, stop) if rows[free[n]][HAS_CALLS]]:
            behind = n + 1
            while behind < len(free) and rows[free[behind]][TYPE] == _RESULT:
                self.left.calls[free[behind]] = free[n]
                behind += 1
            stop = max(stop, behind)
        self.left.positions += [free[n] for n in range(first, stop) if n != system]
        self._behind = stop

    def snap(self, policy: Policy) -> None:
        """Let the rest of a turn that lost its beginning leave; see `eviction.before_next_user`."""
        if not self.left.positions or not policy.snap_to_user:
            return
        system = self._system
        passed = [] if system is None or system >= self._behind else [self._free[system]]
        self.left.positions += _rest_of_turn(self._rows, [*passed, *self._free[self._behind :]])


def _newest(rows: Sequence[Columns], free: Sequence[int]) -> int:
    """Return the first of the rows that stay as the newest message; see `Head.ends_with`."""
    if not free or free[-1] != len(rows) - 1:
        return len(free)
    n = len(free) - 1
    while n and rows[free[n]][TYPE] == _RESULT:
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


def _by_own_rule(rows: Sequence[Columns], totals: Totals, policy: Policy) -> Departures:
    entries = (
        Entry(TYPES[row[TYPE]], bool(row[HAS_CALLS]), row[TOKENS], key=i, pinned=bool(row[PINNED]))
        for i, row in enumerate(rows)
    )
    left = Departures()
    for eviction in over_limit(Window(entries, totals), policy):
        position, call = eviction.entry.key, eviction.because.key if eviction.because else None
        assert isinstance(position, int)
        left.positions.append(position)
        if isinstance(call, int):
            left.calls[position] = call
    return left
