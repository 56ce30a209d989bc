"""Keeping: the limits under which a message would be in the window.

The messages that were said are replayed from an empty window under one limit throughout. Holding a
message is not monotone in the limit: a tool result whose call left before it arrived stays, while a
larger limit may keep the call long enough to take the result with it.

For policies that evict by `oldest_first` the limits are computed from loads, in one pass. Such a
window is the system message in force and the messages from some position on. So a message leaves as
the oldest exactly when the load of the window that begins at it exceeds the limit, and a result
leaves with its call exactly when the load of the window that begins at the call exceeds it for the
first time while the result is directly behind the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, has_own_rule
from chatmemory.core.transitions import fold
from chatmemory.core.window import Entry, Window, total

# How many messages are added in all when limits are tried one by one, and how few limits are too
# few for an answer.
MOST_ADDS = 20_000
FEWEST_TRIED = 20


@dataclass(frozen=True)
class Keeping:
    """The smallest limit from which every larger one keeps a message; None if no limit does.

    `tried_every` is the distance of the limits that were tried; 1 is exact.
    """

    limit: int | None
    tried_every: int = 1


def smallest_limit(
    said: Sequence[Entry], position: int, policy: Policy, most_adds: int = MOST_ADDS
) -> Keeping | None:
    """Return the limit that keeps the message at a position to the end of `said`.

    The limit of `policy` is ignored. A policy with a rule of its own is replayed under every limit,
    or on a grid of limits so that at most `most_adds` messages are added; None if the grid would be
    too coarse for an answer.
    """
    if not evicts_oldest_first(policy):
        return _tried(said, position, policy, most_adds)
    dropped = limits_that_drop(said, position, policy)
    if dropped is None:
        return Keeping(None)
    return Keeping(max((limits.stop for limits in dropped), default=1))


def evicts_oldest_first(policy: Policy) -> bool:
    """Return whether a policy evicts by the rule that all policies share, and by no other."""
    return not has_own_rule(type(policy)) and not policy.has_window_options


def limits_that_drop(said: Sequence[Entry], position: int, policy: Policy) -> list[range] | None:
    """Return the limits under which the message at a position is not in the window after `said`.

    None means all limits. Only for policies that evict oldest first, and whose load does not fall
    when a message is added.
    """
    if said[position].type is MessageType.SYSTEM:
        return [] if _system_in_force(said) == position else None
    loads = (load for _, load, _ in _windows_from(said, position, policy))
    dropped = [range(1, max(loads))]
    call = _call_of(said, position)
    if call is not None:
        dropped += _limits_that_sweep(said, call, position, policy)
    return [limits for limits in dropped if limits]


def _limits_that_sweep(
    said: Sequence[Entry], call: int, result: int, policy: Policy
) -> Iterator[range]:
    """Yield the limits under which a call leaves while its result is directly behind it.

    The call leaves when the load of the window that begins at it exceeds the limit for the first
    time. A system message between the two keeps the result from leaving with it.
    """
    highest = 1
    for arrival, load, system in _windows_from(said, call, policy):
        is_between = system is not None and call < system < result
        is_apart = is_between and not policy.always_keep_system_message_first
        if load > highest and arrival >= result and not is_apart:
            yield range(highest, load)
        highest = max(highest, load)


def _windows_from(
    said: Sequence[Entry], start: int, policy: Policy
) -> Iterator[tuple[int, int, int | None]]:
    """Yield, after each arrival from `start` on, the load of the window that begins at `start`.

    Each item is the arrival's position, the load, and the position of the system message in force.
    """
    count = tokens = 0
    system: int | None = None
    for position, entry in enumerate(said):
        if entry.type is MessageType.SYSTEM:
            if system is not None and said[system].message == entry.message:
                continue
            count += system is None
            tokens += entry.tokens - (0 if system is None else said[system].tokens)
            system = position
        elif position >= start:
            count += 1
            tokens += entry.tokens
        if position >= start:
            yield position, policy.load(count, tokens), system


def _system_in_force(said: Sequence[Entry]) -> int | None:
    system: int | None = None
    for position, entry in enumerate(said):
        if entry.type is MessageType.SYSTEM and (
            system is None or said[system].message != entry.message
        ):
            system = position
    return system


def _call_of(said: Sequence[Entry], position: int) -> int | None:
    """Return the position of the call whose unbroken run of results contains the message."""
    if said[position].type is not MessageType.TOOL_EXECUTION_RESULT:
        return None
    skipped = (MessageType.TOOL_EXECUTION_RESULT, MessageType.SYSTEM)
    before = (i for i in range(position - 1, -1, -1) if said[i].type not in skipped)
    nearest = next(before, None)
    return nearest if nearest is not None and said[nearest].has_calls else None


def _tried(said: Sequence[Entry], position: int, policy: Policy, most_adds: int) -> Keeping | None:
    """Replay under limits from one that everything fits in downwards, until one drops the message.

    Limits above the first one keep what it keeps, because nothing has to leave.
    """
    most = max(1, policy.load(*total(said)))
    step = max(1, -(-most * len(said) // most_adds))
    if step > 1 and most // step < FEWEST_TRIED:
        return None
    kept = None
    least = policy.least_limit
    for limit in chain([max(most, least)], range(most - 1 - (most - 1) % step, least - 1, -step)):
        if not _keeps(said, position, replace(policy, limit=limit)):
            break
        kept = limit
    return Keeping(kept, step)


def _keeps(said: Sequence[Entry], position: int, policy: Policy) -> bool:
    """Return whether the message is in the window after `said`."""
    window = Window()
    for _ in fold(window, said, policy):
        pass
    return said[position] in list(window)
