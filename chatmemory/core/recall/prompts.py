"""Prompts: what each call of the model would have sent, and how much of it a cache could reuse.

A call is an AI message; its prompt is the window just before it, with the fixed overhead of a
request, or nothing where the window is empty. Tokens are reusable if they belong to the longest
common prefix of whole messages with the prompt of the previous call. The minimum lengths that
providers set for their caches are ignored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress, islice, takewhile

from chatmemory.core.lint import PromptMessage, verdicts
from chatmemory.core.messages import MessageType
from chatmemory.core.recall.facts import History


@dataclass(frozen=True)
class Prompts:
    """The prompts of a replay, in sums of tokens.

    `breaks` counts the prompts that do not begin with the whole prompt before them, `output` the
    tokens of the AI messages, and `refused` the prompts that each provider would refuse.
    """

    calls: int = 0
    tokens: int = 0
    reusable: int = 0
    breaks: int = 0
    output: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def per_call(self) -> float:
        return self.tokens / self.calls if self.calls else 0.0


def prompt_sizes(history: History, left: Sequence[int]) -> list[int]:
    """Return the tokens that the window after each message of a replay would be sent with.

    The fixed overhead of a request is among them; an empty window has none.
    """
    tokens, counts = [0] * (len(history) + 1), [0] * (len(history) + 1)
    for position, (size, until) in enumerate(zip(history.tokens, left, strict=True)):
        tokens[position] += size
        tokens[until] -= size
        counts[position] += 1
        counts[until] -= 1
    sums = zip(accumulate(tokens[:-1]), accumulate(counts[:-1]), strict=True)
    return [now + history.overhead if count else 0 for now, count in sums]


def prompt_tokens(history: History, left: Sequence[int]) -> int:
    """Return the tokens of all prompts of a replay."""
    before = [0, *prompt_sizes(history, left)]
    calls = (entry.type is MessageType.AI for entry in history.entries)
    return sum(compress(before, calls))


def prompts_of(
    history: History,
    left: Sequence[int],
    keeps_first: bool = False,
    refusals: Refusals | None = None,
) -> Prompts:
    """Return the prompts of a replay. `keeps_first`: new system messages go to the head.

    Providers are asked with the `refusals` of the history, which several replays can share.
    """
    refused = dict.fromkeys(refusals.providers if refusals else (), 0)
    calls = tokens = reusable = breaks = output = 0
    for call in calls_of(history, left, keeps_first):
        calls += 1
        tokens += call.tokens
        reusable += call.reusable
        breaks += call.is_broken
        output += history.tokens[call.position]
        for provider in refusals.of(call.window, call.newest) if refusals else ():
            refused[provider] += 1
    return Prompts(calls, tokens, reusable, breaks, output, refused)


@dataclass(frozen=True)
class Call:
    """A call. `window` holds positions in the order of the window, and is valid until the next."""

    position: int
    tokens: int
    reusable: int
    is_broken: bool
    window: OrderedDict[int, None]
    newest: int


def calls_of(history: History, left: Sequence[int], keeps_first: bool = False) -> Iterator[Call]:
    """Yield the calls of a replay in order."""
    window = _Window(history, left, keeps_first)
    for position, entry in enumerate(history.entries):
        if entry.type is MessageType.AI:
            yield window.call(position)
        window.arrive(position)


class _Window:
    """The window of a replay, which also knows what it still shares with the last prompt."""

    def __init__(self, history: History, left: Sequence[int], keeps_first: bool) -> None:
        self._entries, self._left = history.entries, left
        self._overhead, self._keeps_first = history.overhead, keeps_first
        self._window: OrderedDict[int, None] = OrderedDict()
        self._leaving: dict[int, list[int]] = {}
        self._tokens = 0
        self._last_call = 0
        self._shared = 0  # tokens of the last prompt that still begin the window
        self._was_empty = True  # the last prompt
        self._is_broken = False

    def call(self, position: int) -> Call:
        tokens = self._tokens + self._overhead if self._window else 0
        newest = next(reversed(self._window), 0)
        call = Call(position, tokens, self._shared, self._is_broken, self._window, newest)
        self._shared, self._is_broken = self._tokens, False
        self._last_call, self._was_empty = position, not self._window
        return call

    def arrive(self, position: int) -> None:
        """Add the message at a position, and take out what leaves at its arrival."""
        if self._left[position] > position:
            self._window[position] = None
            self._tokens += self._entries[position].tokens
            self._leaving.setdefault(self._left[position], []).append(position)
            if self._keeps_first and self._entries[position].type is MessageType.SYSTEM:
                self._window.move_to_end(position, last=False)
                self._shared, self._is_broken = 0, not self._was_empty
        leaving = self._leaving.pop(position, [])
        if any(each < self._last_call for each in leaving):
            gone = set(leaving)
            staying = takewhile(lambda each: each not in gone, self._window)
            before = sum(self._entries[each].tokens for each in staying)
            self._shared, self._is_broken = min(self._shared, before), True
        for each in leaving:
            del self._window[each]
            self._tokens -= self._entries[each].tokens


_SYSTEM, _RESULT = MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT


class Refusals:
    def __init__(self, history: History) -> None:
        self.providers = tuple(verdict.provider for verdict in verdicts([]))
        self._turns = [
            PromptMessage(position + 1, entry.type, requests)
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
