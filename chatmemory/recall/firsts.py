"""Finds where the window begins after each add, in one pass over a plain history.

In a plain history, only the first message can be a system message. The window is the system message
and all messages from some position on. This position moves forward when the window is over its
limit.

- With a `low_mark`, the position moves until the load is at most this mark.
- If the policy takes whole turns, the position moves to the next user message.
- A tool result directly after its tool call leaves with the call.

This module implements the rule of `windows.eviction` again, for `loads` and `tallies`. Tests
compare both modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chatmemory.messages.message import MessageType
from chatmemory.windows.policies import WHOLE, Oversized, Policy, has_own_rule
from chatmemory.windows.window import Entry

_SYSTEM, _USER = MessageType.SYSTEM, MessageType.USER
_RESULT = MessageType.TOOL_EXECUTION_RESULT


def is_plain(entries: Sequence[Entry]) -> bool:
    """Return whether a history has no system message after its first message."""
    return all(entry.type is not _SYSTEM for entry in entries[1:])


def is_common(policy: Policy, clears: bool = False) -> bool:
    """Return whether a policy evicts by the common rule: the oldest messages first.

    The policy may trim to a low mark, and take whole turns. With `clears`, it may also clear old
    tool results.
    """
    is_usual = policy.oversized is Oversized.EVICT and not policy.meters_only
    is_usual = is_usual and (clears or not policy.whole_results) and not policy.recovers
    is_usual = is_usual and not policy.indexed_terms
    return is_usual and not has_own_rule(type(policy))


class Places(NamedTuple):
    """The positions to which the beginning of the window can move, for each message of a history.

    - `ends`: the position after the message. For a tool call, the position after the tool results
      that directly follow the call.
    - `users`: the position of the first user message from this message on. If none follows, a
      number larger than all positions.
    """

    ends: Sequence[int]
    users: Sequence[int]


def places_of(entries: Sequence[Entry]) -> Places:
    return Places(_ends(entries), _next_users(entries))


def firsts(
    costs: Sequence[int], places: Places, policy: Policy, base: int, first: int = 0
) -> list[int]:
    """Return, for each message, the position at which the window begins after the message was
    added.

    - `costs[i]`: how much of the limit all messages before position i take. The last item is for
      all messages.
    - `base`: how much of the limit is always taken, such as by the system message.
    - `first`: the position at which the window begins before any message is added.
    """
    ends, users = places
    room, mark = policy.limit - base, policy.low_mark - base
    has_mark, snaps = policy.low_water != WHOLE, policy.takes_whole_turns
    found = []
    for newest, whole in enumerate(costs[1:]):
        if whole - costs[first] > room:
            behind = newest + 1
            while first < behind and whole - costs[first] > room:
                first = min(ends[first], behind)
            if has_mark:
                while whole - costs[first] > mark and ends[first] < behind:
                    first = ends[first]
            if snaps and users[first] < behind:
                first = users[first]
        found.append(first)
    return found


def _ends(entries: Sequence[Entry]) -> list[int]:
    ends = list(range(1, len(entries) + 1))
    end = len(entries)
    for place in reversed(range(len(entries))):
        entry = entries[place]
        if entry.has_calls:
            ends[place] = end
        if entry.type is not _RESULT:
            end = place
    return [*ends, len(entries) + 1]


def _next_users(entries: Sequence[Entry]) -> list[int]:
    found, last = [len(entries) + 1], len(entries) + 1
    for place in reversed(range(len(entries))):
        last = place if entries[place].type is _USER else last
        found.append(last)
    return found[::-1]
