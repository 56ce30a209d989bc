"""Computes the prompt of each model call in a replay, and how many of its tokens a prompt cache
could reuse.

Each AI message is the answer of a model call. The prompt of the call is the window just before the
answer. The size of a prompt includes the fixed tokens that the estimator counts for each request.

A cache can reuse the tokens of the shared prefix: the messages at the beginning that are equal in
this prompt and the previous prompt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, takewhile

from chatmemory.lint import (
    COMBINING,
    LESSON_PROVIDERS,
    PROVIDERS,
    Finding,
    ProviderWindow,
    Rule,
    Turn,
    Waiting,
    refusals_in,
)
from chatmemory.lint.rules import refuses
from chatmemory.lint.turns import RESPONSES
from chatmemory.messages.message import MessageType
from chatmemory.recall.cost import Bill, CacheRules, Call, bill_of
from chatmemory.recall.history import History
from chatmemory.recall.loads import Departures

_SYSTEM, _RESULT = MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT
_NO_TURNS = frozenset({_SYSTEM, MessageType.CUSTOM})


@dataclass(frozen=True)
class Prompts:
    """The prompts of a replay. Sizes are in tokens.

    - `sent`: the model calls, with the sizes of their prompts.
    - `output`: the size of all answers together.
    - `refused`: for each provider, how many prompts the provider would reject. Empty if no provider
      was checked.
    - `breaks` (a property): how many prompts do not start with the whole previous prompt.
    """

    sent: tuple[Call, ...] = ()
    output: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return len(self.sent)

    @property
    def tokens(self) -> int:
        return sum(call.prompt for call in self.sent)

    @property
    def reusable(self) -> int:
        return sum(call.shared for call in self.sent)

    @property
    def again(self) -> int:
        """The tokens of messages that the previous prompt also had, but that are outside the shared
        prefix. They cost the full price again. Summed over all prompts.
        """
        return sum(call.again for call in self.sent)

    @property
    def breaks(self) -> int:
        return sum(call.is_broken for call in self.sent)

    def bill(self, rules: CacheRules) -> Bill:
        return bill_of(self.sent, rules)

    @property
    def per_call(self) -> float:
        return self.tokens / self.calls if self.calls else 0.0


def prompt_sizes(history: History, departures: Departures) -> list[int]:
    """Return, for each message of a replay, the size in tokens of a prompt that would be sent right
    after this message was added. The size is 0 if the window is empty then. `departures` says when
    each message left memory.
    """
    tokens, counts = [0] * (len(history) + 1), [0] * (len(history) + 1)
    for position, (size, until) in enumerate(zip(history.tokens, departures.at, strict=True)):
        tokens[position] += size
        tokens[until] -= size
        counts[position] += 1
        counts[until] -= 1
    for position, stub in departures.stubs.items():
        less = history.tokens[position] - stub.tokens
        tokens[stub.at] -= less
        tokens[departures.at[position]] += less
    before = 0
    for index in departures.indexes:
        tokens[index.at] += index.tokens - before
        before = index.tokens
    sums = zip(accumulate(tokens[:-1]), accumulate(counts[:-1]), strict=True)
    return [size + history.overhead if number else 0 for size, number in sums]


def prompts_of(
    history: History,
    departures: Departures,
    keeps_first: bool = False,
    refusals: Refusals | None = None,
) -> Prompts:
    """Return the prompts of a replay. `departures` says when each message left memory.

    - `keeps_first`: whether the system message is always first in the window, even if it came
      later.
    - `refusals`: finds the providers that would reject a prompt. Several replays of one history can
      share it.
    """
    refused = dict.fromkeys(refusals.providers if refusals else (), 0)
    window = _SentWindow(history, departures, keeps_first)
    sent = []
    for call in window.calls():
        sent.append(call)
        for provider in refusals.of(window.positions) if refusals else ():
            refused[provider] += 1
    output = sum(history.tokens[call.position] for call in sent)
    return Prompts(tuple(sent), output, refused)


class _SentWindow:
    """The window of a replay, compared with the last prompt.

    - `shared`: the tokens of the last prompt with which the window still begins.
    - `fresh`: the tokens that came since the last prompt.
    - `is_broken`: whether the window does not begin with the whole last prompt.
    """

    def __init__(self, history: History, departures: Departures, keeps_first: bool) -> None:
        self._history, self._entries = history, history.entries
        self._left_at, self._keeps_first = departures.at, keeps_first
        self.positions: OrderedDict[int, None] = OrderedDict()  # in the order of the window
        self.tokens = self.shared = self.fresh = 0
        self.is_broken = False
        self._leaving: dict[int, list[int]] = {}
        self._stubs = departures.stubs
        self._clearing: dict[int, list[int]] = {}  # the results that become stubs at an arrival
        for position, stub in self._stubs.items():
            self._clearing.setdefault(stub.at, []).append(position)
        self._sizes = list(history.tokens)  # of the messages, or of their stubs in the window
        self._since: dict[int, int] = {}  # the arrivals since which the window has stubs
        self._indexes = {each.at: each.tokens for each in departures.indexes}
        self._index, self._indexed_at = 0, 0  # the tokens of the index, and since when it stands
        self._sent_at = 0
        self._sent_nothing = True

    def calls(self) -> Iterator[Call]:
        """Yield each model call, while the window is its prompt."""
        last = None
        for position, entry in enumerate(self._entries):
            if entry.type is MessageType.AI:
                tokens = self.tokens + self._history.overhead if self.positions else 0
                age = self._history.seconds(last, position)
                again = self.tokens - self.fresh - self.shared
                yield Call(position, tokens, self.shared, age, self.is_broken, again)
                self.send(position)
                last = position
            self.arrive(position)

    def send(self, position: int) -> None:
        self.shared, self.is_broken, self.fresh = self.tokens, False, 0
        self._sent_at, self._sent_nothing = position, not self.positions

    def arrive(self, position: int) -> None:
        """Add the message at a position. First clears the tool results for which it needs room, and
        then removes what leaves at its arrival.
        """
        if cleared := self._clearing.get(position):
            self._break_at(cleared)
            for each in cleared:
                self._drop(each)
                self._sizes[each], self._since[each] = self._stubs[each].tokens, position
                self.tokens += self._sizes[each]
                self.fresh += self._sizes[each]
        entry, until = self._entries[position], self._left_at[position]
        if until > position:
            self.positions[position] = None
            self.tokens += entry.tokens
            self.fresh += entry.tokens
            self._leaving.setdefault(until, []).append(position)
            if self._keeps_first and entry.type is _SYSTEM:
                self.positions.move_to_end(position, last=False)
                self.shared, self.is_broken = 0, not self._sent_nothing
        if leaving := self._leaving.pop(position, None):
            self._break_at(leaving)
            for each in leaving:
                del self.positions[each]
                self._drop(each)
        if position in self._indexes:
            self._renew_index(position)

    def _renew_index(self, position: int) -> None:
        """Replace the index message. The window then shares at most the system message with the
        last prompt.
        """
        before = sum(self._sizes[each] for each in self._system())
        if self._index or self._indexes[position]:
            self.shared, self.is_broken = min(self.shared, before), not self._sent_nothing
        new = self._indexes[position]
        self.fresh += new - (self._index if self._indexed_at >= self._sent_at else 0)
        self.tokens += new - self._index
        self._index, self._indexed_at = new, position

    def _system(self) -> Iterator[int]:
        first = next(iter(self.positions), None)
        if first is not None and self._entries[first].type is _SYSTEM:
            yield first

    def _break_at(self, changing: Collection[int]) -> None:
        """Let the window share with the last prompt only the messages before the first of
        `changing`.
        """
        if any(each < self._sent_at for each in changing):
            changed = set(changing)
            staying = takewhile(lambda each: each not in changed, self.positions)
            before = sum(self._sizes[each] for each in staying)
            self.shared, self.is_broken = min(self.shared, before), True

    def _drop(self, position: int) -> None:
        size, since = self._sizes[position], self._since.get(position, position)
        self.tokens -= size
        self.fresh -= size if since >= self._sent_at else 0


class Refusals:
    """Finds the providers that would reject a window of a history, by the rules of `lint`. Fast for
    many windows of one history.

    - `history`: a history, or its messages in the form that the rules check (`Turn`).
    - `turns`: for each provider to check, the messages in this provider's form. By default, OpenAI
      and Anthropic are checked with the messages of `history`.
    - `models`: for each provider, the models to check. A provider rejects a window if one of its
      models does.
    """

    def __init__(
        self,
        history: History | Sequence[Turn],
        turns: Mapping[str, Sequence[Turn]] | None = None,
        models: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        own = history.turns if isinstance(history, History) else history
        self._turns = turns or dict.fromkeys(LESSON_PROVIDERS, own)
        self._models = {name: tuple((models or {}).get(name, ())) for name in self._turns}
        self.providers = tuple(PROVIDERS[name] for name in self._turns)
        self._types = [turn.type for turn in own]
        self._ordinary = [*accumulate(type is not _SYSTEM for type in self._types)]
        self._faults = {
            name: _Faults(turns, name, self._models[name]) for name, turns in self._turns.items()
        }

    def of(self, window: dict[int, None]) -> list[str]:
        """Return the providers that would reject a window. The keys of `window` are the positions
        of its messages, in order.
        """
        head, newest = list(islice(window, 2)), next(reversed(window), 0)
        is_led = bool(head) and self._types[head[0]] is _SYSTEM
        first = head[is_led] if len(head) > is_led else None
        is_one = first is not None and self._is_one_part(first, newest, len(window) - is_led)
        return [
            PROVIDERS[name]
            for name, faults in self._faults.items()
            if (
                faults.between(first, newest)
                if is_one and first is not None and faults.are_between
                else self._refuses(name, window)
            )
        ]

    def _refuses(self, name: str, window: Iterable[int]) -> bool:
        turns = self._turns[name]
        return bool(refusals_in([turns[n] for n in window], name, self._models[name]))

    def _is_one_part(self, first: int, newest: int, size: int) -> bool:
        """Return whether `size` messages are all messages from `first` to `newest`, except system
        messages. False if the first of them is the rest of an answer.
        """
        ends = self._types[first], self._types[newest]
        if not _NO_TURNS.isdisjoint(ends):
            return False
        before = self._types[first - 1] if first else _SYSTEM
        if ends[0] is MessageType.AI and before not in (MessageType.USER, _RESULT) and first:
            return False
        return self._ordinary[newest] - self._ordinary[first] + 1 == size


# Rules about calls and results, those about the first message, and those about the last one
_PAIRED = ("orphan_result", "dangling_call", "results_apart", "duplicate_result")
_FIRST, _LAST = ("first_not_user", "call_after_model"), ("answer_at_the_end", "blanks_at_the_end")


class _Faults:
    """The faults for which one provider would reject a window of a history.

    - `_counts`: for each message, the number of tool calls and results up to it that do not fit
      together. `_waits` says whether a tool call still waits after it.
    - `_latest`: for all other faults, which are of one or two messages: of the faults up to each
      message, the latest first message.
    - `_starts`, `_ends`: messages with which a window must not begin, or not end.
    """

    def __init__(self, turns: Sequence[Turn], provider: str, models: Sequence[str]) -> None:
        self._turns, self._provider, self._models = turns, provider, models
        self._counts: list[int] = []
        self._waits: list[bool] = []
        self._count_unpaired()
        found = refusals_in(turns, provider, models)
        # OpenAI Responses finds a result anywhere behind its call
        is_apart = provider == RESPONSES and self._counts[-1:] not in ([], [0])
        self.are_between = not is_apart
        self._latest = self._latest_of(found)
        self._starts = self._at_fault(_FIRST, range(len(turns)))
        answers = (n for n, turn in enumerate(turns) if turn.type is MessageType.AI)
        self._ends = self._at_fault(_LAST, answers)

    def _count_unpaired(self) -> None:
        count, waiting, last = 0, Waiting(), _SYSTEM
        for turn in self._turns:
            if turn.type is _RESULT:
                count += not waiting.take(turn)
            elif turn.type is last is MessageType.AI and self._provider in COMBINING:
                waiting.add(turn.calls)
            elif turn.type not in _NO_TURNS:
                count += waiting.is_open
                waiting = Waiting(turn)
            last = last if turn.type in _NO_TURNS else turn.type
            self._counts.append(count)
            self._waits.append(waiting.is_open)

    def _latest_of(self, found: Iterable[Finding]) -> list[int]:
        latest = [-1] * len(self._turns)
        for each in found:
            if each.positions and not each.is_pending and each.rule not in (*_PAIRED, *_FIRST[:1]):
                last = max(each.positions)
                latest[last] = max(latest[last], min(each.positions))
        return [*accumulate(latest, max)]

    def _at_fault(self, rules: Iterable[str], places: Iterable[int]) -> set[int]:
        """Return the positions of the messages that break one of these rules as the only message of
        a window.
        """
        from chatmemory.lint.catalog import RULES  # as in chatmemory.lint

        chosen = [RULES[name] for name in rules if self._provider in RULES[name].laws]
        return {n for n in places if self._is_at_fault(n, chosen)} if chosen else set()

    def _is_at_fault(self, place: int, rules: Sequence[Rule]) -> bool:
        turn = self._turns[place]
        models = self._models or (None,)
        windows = [ProviderWindow([turn], self._provider, model=model) for model in models]
        return any(refuses(window, rule) for window in windows for rule in rules)

    def between(self, first: int, newest: int) -> bool:
        """Return whether the provider rejects the window from one message to another."""
        return (
            self._turns[first].type is _RESULT
            or first in self._starts
            or newest in self._ends
            or self._counts[newest] > self._counts[first]
            or self._waits[newest]
            or self._latest[newest] >= first
        )
