"""Computes, in one pass over a history, when messages leave under a policy that clears old tool
results. Results become placeholders before any message leaves (see `windows.clearing`).

The window is the system message and all messages from some position on; this position only moves
forward (see `firsts`). A test compares the results with those of `windows.clearing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.recall.firsts import Places, is_common
from chatmemory.windows.clearing import SHORT, stub_of
from chatmemory.windows.policies import WHOLE, Policy
from chatmemory.windows.window import Entry

_RESULT = MessageType.TOOL_EXECUTION_RESULT


def clears_commonly(policy: Policy) -> bool:
    """Return whether a policy clears old tool results, and otherwise evicts by the common rule: the
    oldest messages first (see `firsts.is_common`).
    """
    return policy.whole_results > 0 and is_common(policy, clears=True)


class Clearable:
    """The tool results of a history that a policy can clear, and their placeholders.

    `results` are the positions of all tool results. `are_known` says whether this module can
    compute when messages leave. For this, the entry of every tool result must have its message. No
    message may be pinned, and none may already be a placeholder.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self.results = [place for place, entry in enumerate(entries) if entry.type is _RESULT]
        self.are_known = not any(entry.pinned or entry.is_stub for entry in entries) and all(
            entries[place].message is not None for place in self.results
        )
        self._stubs: dict[tuple[str, int], Entry] = {}

    def is_long(self, place: int) -> bool:
        return self._entries[place].tokens > SHORT

    def stub(self, place: int, estimator: str, count: Callable[[ChatMessage], int]) -> Entry:
        """Return the placeholder for the tool result at a position, as an entry.

        `estimator` is the name of an estimator, and `count` counts tokens by this estimator.
        """
        if (estimator, place) not in self._stubs:
            entry = self._entries[place]
            assert entry.message is not None
            stub = stub_of(entry.message)
            new = replace(entry, message=stub, tokens=count(stub), is_stub=True)
            self._stubs[estimator, place] = new
        return self._stubs[estimator, place]


class Gone(NamedTuple):
    """When messages left, and when tool results were cleared.

    - `left`: for each message, the position of the message at whose arrival it left. For a message
      that never left, the number of all messages.
    - `stubs`: maps the position of each cleared result to two numbers. The first is the position of
      the message at whose arrival the result was cleared. The second is the tokens of the
      placeholder.
    """

    left: list[int]
    stubs: dict[int, tuple[int, int]]


class ClearingWindow:
    """A window under a policy that clears tool results. `departures` adds the messages of a history
    one by one. All costs are in the policy's unit.

    - `costs[i]`: the cost of all messages before position i. The last item is the cost of all
      messages.
    - `base`: the cost of what is always in the window: the system message and the overhead.
    - `first`: the position of the first message after the system message; 0 without a system
      message.
    """

    def __init__(
        self,
        costs: Sequence[int],
        places: Places,
        base: int,
        first: int,
        policy: Policy,
        clearable: Clearable,
        count: Callable[[ChatMessage], int],
    ) -> None:
        self._costs, (self._ends, self._users) = costs, places
        self._policy, self._count = policy, count
        self._room, self._mark = policy.limit - base, policy.low_mark - base
        self._has_mark, self._snaps = policy.low_water != WHOLE, policy.takes_whole_turns
        self._first, self._saved = first, 0
        self._clearable, self._results = clearable, clearable.results
        self._looked_at = self._before = 0  # results that are stubs or too short, and all so far
        self._savings: dict[int, int] = {}
        self.left = [len(costs) - 1] * (len(costs) - 1)
        self.stubs: dict[int, tuple[int, int]] = {}

    def departures(self) -> Gone:
        """Add all messages. Returns when each message left, and when tool results were cleared."""
        for place in range(len(self.left)):
            self._add(place)
        return Gone(self.left, self.stubs)

    def _add(self, place: int) -> None:
        """Add the message at a position. Clears tool results for it, and trims before and after."""
        is_result = self._before < len(self._results) and self._results[self._before] == place
        if self._costs[place + 1] - self._costs[self._first] - self._saved > self._room:
            self._clear(place, self._before - self._policy.whole_results + is_result)
            has_left = self._trim(place, place)
            has_left |= self._trim(place + 1, place)
            if has_left and self._snaps and self._users[self._first] <= place:
                self._leave(self._users[self._first], place)
        self._before += is_result

    def _clear(self, at: int, until: int) -> None:
        """Clear the tool results in the window, up to the result with the number `until`."""
        for number in range(self._looked_at, max(self._looked_at, until)):
            place = self._results[number]
            if place >= self._first and self._clearable.is_long(place):
                stub = self._clearable.stub(place, self._policy.estimator, self._count)
                whole = self._costs[place + 1] - self._costs[place]
                self._savings[place] = whole - self._policy.weigh(stub)
                self._saved += self._savings[place]
                self.stubs[place] = at, stub.tokens
        self._looked_at = max(self._looked_at, until)

    def _trim(self, behind: int, at: int) -> bool:
        """Trim the window that ends before position `behind`. Returns whether a message has
        left.
        """
        before = self._first
        if self._load(behind) > self._room:
            while self._first < behind and self._load(behind) > self._room:
                self._leave(min(self._ends[self._first], behind), at)
            while (
                self._has_mark
                and self._load(behind) > self._mark
                and self._ends[self._first] < behind
            ):
                self._leave(self._ends[self._first], at)
        return self._first > before

    def _load(self, behind: int) -> int:
        return self._costs[behind] - self._costs[self._first] - self._saved

    def _leave(self, until: int, at: int) -> None:
        """Let all messages before position `until` leave."""
        for place in range(self._first, until):
            self.left[place] = at
            self._saved -= self._savings.get(place, 0)
        self._first = until
