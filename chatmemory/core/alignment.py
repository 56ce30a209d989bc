"""Alignment of two lists of messages: which messages stayed, moved, arrived and left.

LangChain4j's `updateMessages` passes only the new list. A comparison with the previous list
recovers the changes, so that the history is complete and every departure has a reason.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.transitions import fold
from chatmemory.core.window import Entry, Window


@dataclass(frozen=True)
class Alignment:
    """Two mappings from positions in the new list to positions in the old list.

    `kept` messages are in the same order in both lists; `moved` ones are not. New positions in
    neither mapping are arrivals; old positions in neither mapping have left.
    """

    kept: dict[int, int]
    moved: dict[int, int]

    def left(self, old_length: int) -> list[int]:
        """Return the positions of the old list whose messages have left."""
        stayed = {*self.kept.values(), *self.moved.values()}
        return [position for position in range(old_length) if position not in stayed]


def align(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads as a slide if possible, else by longest common subsequence.

    In a slide, messages leave the head of the old list, the rest stays, and messages are appended;
    a message at the head of both lists (a system message) may be kept apart from the slide. Equal
    messages are matched from the end.
    """
    # The slide comes first because it is what a sliding window does to its list. A longest common
    # subsequence may keep as many messages in another way: with repeated messages ("ok", "ok") it
    # can match a new message with one that left, and then the history would miss what was said.
    for leading in (0, 1):
        shift = _slide(old[leading:], new[leading:]) if old[:leading] == new[:leading] else None
        if shift is not None:
            first = leading + shift
            slid = {leading + i: first + i for i in range(len(old) - first)}
            return Alignment({**{i: i for i in range(leading)}, **slid}, {})
    return rearrange(old, new)


def rearrange(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads so that as many messages as possible stay.

    Use it for a list that was set as a whole, where no slide is expected.
    """
    kept = {j: i for i, j in _common_subsequence(old, new)}
    return Alignment(kept, _moves(old, new, kept))


def reasons(
    old: Sequence[Entry],
    new: Sequence[Entry],
    alignment: Alignment,
    policy: Policy | None,
) -> dict[Entry, Reason]:
    """Return the reason for each entry of the old list that left.

    If adding the new entries under the policy gives exactly this list, the reasons are those of the
    policy. If no policy is in force and something was appended, entries that left the head have the
    reason CAPACITY, and tool results behind their call ORPHANED. A system message is REPLACED if
    another one arrived. All others are SET.
    """
    left = [old[position] for position in alignment.left(len(old))]
    explained = _by_policy(old, new, alignment, policy) if can_decide(policy) else None
    if explained is not None:
        return explained
    found = dict.fromkeys(left, Reason.SET)
    if not can_decide(policy) and _appends(alignment, len(new)):
        found |= _head_run(old, set(left))
    arrived = (new[j] for j in range(len(new)) if j not in alignment.kept | alignment.moved)
    if any(entry.type is MessageType.SYSTEM for entry in arrived):
        found |= {e: Reason.REPLACED for e in left if e.type is MessageType.SYSTEM}
    return found


def _by_policy(
    old: Sequence[Entry], new: Sequence[Entry], alignment: Alignment, policy: Policy
) -> dict[Entry, Reason] | None:
    """Return the policy's reasons if adding the new entries under it gives the new list."""
    if alignment.moved:
        return None
    window = Window(old)
    arrivals = [e for j, e in enumerate(new) if j not in alignment.kept]
    found = {
        eviction.entry: eviction.reason
        for transition in fold(window, arrivals, policy)
        for eviction in transition.evictions
    }
    stayed = [old[alignment.kept[j]] if j in alignment.kept else e for j, e in enumerate(new)]
    return found if list(window) == stayed else None


def _appends(alignment: Alignment, new_length: int) -> bool:
    return new_length > 0 and new_length - 1 not in alignment.kept | alignment.moved


def _head_run(old: Sequence[Entry], left: set[Entry]) -> dict[Entry, Reason]:
    """Return the reasons of the entries that left the head of the list without a gap."""
    found: dict[Entry, Reason] = {}
    start = 1 if old and old[0].type is MessageType.SYSTEM and old[0] not in left else 0
    behind_call = False
    for entry in old[start:]:
        if entry not in left:
            break
        orphaned = behind_call and entry.type is MessageType.TOOL_EXECUTION_RESULT
        found[entry] = Reason.ORPHANED if orphaned else Reason.CAPACITY
        behind_call = entry.has_calls or orphaned
    return found


def _slide(old: Sequence[str], new: Sequence[str]) -> int | None:
    """Return the smallest k for which old[k:] is not empty and is a prefix of `new`.

    Return None if there is no such k. Knuth-Morris-Pratt: O(old + new).
    """
    borders = _borders(new)
    matched = 0
    for payload in old:
        while matched and (matched == len(new) or payload != new[matched]):
            matched = borders[matched - 1]
        if new and payload == new[matched]:
            matched += 1
    return len(old) - matched if matched else None


def _borders(pattern: Sequence[str]) -> list[int]:
    """Return for each prefix the length of its longest proper prefix that is also its suffix."""
    borders = [0] * len(pattern)
    matched = 0
    for i in range(1, len(pattern)):
        while matched and pattern[i] != pattern[matched]:
            matched = borders[matched - 1]
        if pattern[i] == pattern[matched]:
            matched += 1
        borders[i] = matched
    return borders


def _common_subsequence(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of positions of a longest common subsequence, matched from the end.

    Hunt-Szymanski: O((n + pairs of equal messages) log n), which is fast because messages seldom
    repeat. The lists are walked backwards, so that equal messages match those nearest the end.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for j in range(len(new)):
        places[new[j]].append(-j)
    ends: list[int] = []
    chains: list[tuple[int, int, object]] = []
    for i in reversed(range(len(old))):
        for mirrored in places.get(old[i], ()):
            length = bisect_left(ends, mirrored)
            link = (i, -mirrored, chains[length - 1] if length else None)
            if length == len(ends):
                ends.append(mirrored)
                chains.append(link)
            elif mirrored < ends[length]:
                ends[length] = mirrored
                chains[length] = link
    link = chains[-1] if chains else None  # type: ignore[assignment]
    while link:
        i, j, link = link  # type: ignore[assignment]
        yield i, j


def _moves(old: Sequence[str], new: Sequence[str], kept: dict[int, int]) -> dict[int, int]:
    """Match the remaining equal messages, from the end: they are in both lists, out of order."""
    free: dict[str, list[int]] = defaultdict(list)
    stayed = set(kept.values())
    for i in range(len(old)):
        if i not in stayed:
            free[old[i]].append(i)
    candidates = (j for j in reversed(range(len(new))) if j not in kept)
    return {j: free[new[j]].pop() for j in candidates if free.get(new[j])}
