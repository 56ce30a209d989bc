"""Which providers would refuse each of many windows of one history, by the rules of `core.lint`.

A window is nearly always the system message and a part of the history without a gap. Whether such
a part breaks a rule is read from the first and the last message and the faults between them, which
are found once; any other window is read as a whole.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate, islice

from chatmemory.core.lint import Turn, verdicts
from chatmemory.core.messages import MessageType
from chatmemory.core.recall.histories import History

_SYSTEM, _RESULT = MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT


class Refusals:
    def __init__(self, history: History) -> None:
        self.providers = tuple(verdict.provider for verdict in verdicts([]))
        self._turns = [
            Turn(position + 1, entry.type, requests)
            for position, (entry, requests) in enumerate(
                zip(history.entries, history.requests, strict=True)
            )
        ]
        self._ordinary = [*accumulate(turn.type is not _SYSTEM for turn in self._turns)]
        self._find_faults()

    def _find_faults(self) -> None:
        """Count the faults of pairing up to each message, and the results awaited behind it."""
        self._faults: list[int] = []
        self._awaited: list[int] = []
        faults = awaited = 0
        for turn in self._turns:
            if turn.type is _RESULT:
                faults += not awaited
                awaited = max(0, awaited - 1)
            elif turn.type is not _SYSTEM:
                faults += awaited > 0
                awaited = turn.calls
            self._faults.append(faults)
            self._awaited.append(awaited)

    def of(self, window: Collection[int], newest: int) -> list[str]:
        """Return the providers that refuse a window of positions, given in its order.

        `newest` is the newest position in it.
        """
        head = list(islice(window, 2))
        is_led = bool(head) and self._turns[head[0]].type is _SYSTEM
        first = head[is_led] if len(head) > is_led else None
        if first is None or not self._is_one_part(first, newest, len(window) - is_led):
            found = verdicts([self._turns[position] for position in window])
            return [verdict.provider for verdict in found if not verdict.accepts]
        is_torn = (
            self._turns[first].type is _RESULT
            or self._faults[newest] > self._faults[first]
            or self._awaited[newest] > 0
        )
        opens_wrong = self._turns[first].type is not MessageType.USER
        refusing = {"OpenAI": is_torn, "Anthropic": is_torn or opens_wrong}
        return [name for name in self.providers if refusing[name]]

    def _is_one_part(self, first: int, newest: int, count: int) -> bool:
        """Return whether so many messages are all from `first` to `newest` but system messages."""
        if _SYSTEM in (self._turns[first].type, self._turns[newest].type):
            return False
        return self._ordinary[newest] - self._ordinary[first] + 1 == count
