"""Alignment of two lists of messages: which messages stayed, moved, arrived and left.

LangChain4j's `updateMessages` passes only the new list. Where no single add explains it (see
`inference`), a comparison with the previous list recovers what changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.subsequence import common_subsequence


@dataclass(frozen=True)
class Alignment:
    """Two mappings from positions in the new list to positions in the old list.

    `kept` messages are in the same order in both lists; `moved` ones are not. New positions in
    neither mapping are arrivals; old positions in neither mapping have left. If the list `slides`,
    messages left its head and others were appended.
    """

    kept: dict[int, int]
    moved: dict[int, int]
    slides: bool = False

    def left(self, old_length: int) -> list[int]:
        """Return the positions of the old list whose messages have left."""
        stayed = {*self.kept.values(), *self.moved.values()}
        return [position for position in range(old_length) if position not in stayed]


def align(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads as a slide if possible, else by longest common subsequence.

    In a slide, messages leave the head of the old list, at least two stay (or all), and messages
    are appended; a message at the head of both lists (a system message) may be kept apart from the
    slide. Equal messages are matched from the end. A list that only lost its end is matched as it
    stands.
    """
    if list(new) == list(old[: len(new)]):
        return Alignment({i: i for i in range(len(new))}, {})
    # The slide comes first because it is what a sliding window does to its list. A longest common
    # subsequence may keep as many messages in another way: with repeated messages ("ok", "ok") it
    # can match a new message with one that left, and then the history would miss what was said.
    # One message in common is no sign of a slide: two lists often share an "ok".
    for leading in (0, 1):
        shift = _slide(old[leading:], new[leading:]) if old[:leading] == new[:leading] else None
        if shift is not None and (shift == 0 or len(old) - leading - shift > 1):
            first = leading + shift
            slid = {leading + i: first + i for i in range(len(old) - first)}
            return Alignment({**{i: i for i in range(leading)}, **slid}, {}, slides=shift > 0)
    return rearrange(old, new)


def rearrange(old: Sequence[str], new: Sequence[str]) -> Alignment:
    """Match two lists of payloads so that as many messages as possible stay.

    Use it for a list that was set as a whole, where no slide is expected.
    """
    kept = {j: i for i, j in common_subsequence(old, new)}
    return Alignment(kept, _moves(old, new, kept))


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


def _moves(old: Sequence[str], new: Sequence[str], kept: dict[int, int]) -> dict[int, int]:
    """Match the remaining equal messages, from the end: they are in both lists, out of order."""
    free: dict[str, list[int]] = defaultdict(list)
    stayed = set(kept.values())
    for i in range(len(old)):
        if i not in stayed:
            free[old[i]].append(i)
    candidates = (j for j in reversed(range(len(new))) if j not in kept)
    return {j: free[new[j]].pop() for j in candidates if free.get(new[j])}
