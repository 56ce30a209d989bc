"""What a client meant when it handed over a whole list: which messages stayed, moved, came and
left.

LangChain4j's `updateMessages` says only what the list is now. Comparing it with the list before
gives back the changes, so that history stays complete and every departure keeps its reason.
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
    """For positions of the new list: the position in the old list of the same message.

    `kept` messages keep their order among each other; `moved` ones changed it. Positions in neither
    are new; old positions that nothing points at have left.
    """

    kept: dict[int, int]
    moved: dict[int, int]

    def left(self, old_length: int) -> list[int]:
        stayed = {*self.kept.values(), *self.moved.values()}
        return [position for position in range(old_length) if position not in stayed]


def align(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads: as a slide where possible, else by longest common subsequence.

    A slide is what a window does: the head leaves, the rest stays, something is appended; a message
    that heads both lists (a pinned system message) may stay aside. Equal messages are matched from
    the end.
    """
    for aside in (0, 1):
        shift = _slide(old[aside:], new[aside:]) if old[:aside] == new[:aside] else None
        if shift is not None:
            first = aside + shift
            slid = {aside + i: first + i for i in range(len(old) - first)}
            return Alignment({**{i: i for i in range(aside)}, **slid}, {})
    return rearrange(old, new)


def rearrange(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads where the new one was meant as a whole: what is in both stays."""
    kept = {j: i for i, j in _common_subsequence(old, new)}
    return Alignment(kept, _moves(old, new, kept))


def reasons(
    old: Sequence[Entry],
    new: Sequence[Entry],
    alignment: Alignment,
    policy: Policy | None,
) -> dict[Entry, Reason]:
    """Why each entry of the old list that left did so.

    With a policy: what the policy does when the new entries are added, if that gives just this
    list. Without: entries that leave from the head while something is appended left for want of
    room, and tool results behind a call went with it. A system message that another one supersedes
    was replaced. Everything else was SET by the client.
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
    """The smallest k for which old[k:] is not empty and begins `new` (Knuth, Morris, Pratt)."""
    borders = _borders(new)
    matched = 0
    for payload in old:
        while matched and (matched == len(new) or payload != new[matched]):
            matched = borders[matched - 1]
        if new and payload == new[matched]:
            matched += 1
    return len(old) - matched if matched else None


def _borders(pattern: Sequence[str]) -> list[int]:
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
    """Pairs of a longest common subsequence, matched from the end (Hunt and Szymanski)."""
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
    free: dict[str, list[int]] = defaultdict(list)
    stayed = set(kept.values())
    for i in range(len(old)):
        if i not in stayed:
            free[old[i]].append(i)
    candidates = (j for j in reversed(range(len(new))) if j not in kept)
    return {j: free[new[j]].pop() for j in candidates if free.get(new[j])}
