"""Measures a run of a strategy: how many needed facts were in the prompts, and how many tokens the
prompts had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory.messages.estimators import TokenCountEstimator, count_tokens
from chatmemory.messages.message import ChatMessage, MessageType, UserMessage
from chatmemory.messages.sessions import Session
from chatmemory.recall.cost import NO_BOUNDS, NOTHING_SENT, Bill, CacheRules, Call, Prices, bill_of
from chatmemory.recall.facts import texts_with_facts
from chatmemory.recall.history import History
from chatmemory.recall.needs import Need, needs
from chatmemory.strategies.runs import Run, Sent
from chatmemory.strategies.summaries import StandIn, Summaries, Summary

Piece = int | ChatMessage  # of a prompt whose summaries are written


@dataclass(frozen=True)
class Measured:
    """The figures of a strategy, summed over some conversations.

    - `recalls`: the number of needs. A need is a use of a fact or tool call from earlier messages.
    - `held`: the number of needs whose facts or tool call the prompt still had.
    - `bill`: the tokens of the agent's prompts.
    - `summaries`: the tokens of the prompts for writing summaries.
    - `everything`: the bill of sending everything.
    - `first_lost`: the fact of the first need that was not held; "" if all were held, or for a sum
      of conversations.
    """

    conversations: int = 0
    recalls: int = 0
    held: int = 0
    bill: Bill = NOTHING_SENT
    summaries: Bill = NOTHING_SENT
    everything: Bill = NOTHING_SENT
    first_lost: str = ""

    def plus(self, other: Measured) -> Measured:
        """Return the sum of these figures and those of other conversations. `first_lost` is then
        "".
        """
        return Measured(
            self.conversations + other.conversations,
            self.recalls + other.recalls,
            self.held + other.held,
            self.bill + other.bill,
            self.summaries + other.summaries,
            self.everything + other.everything,
        )

    def relative_cost(self, prices: Prices) -> float | None:
        """Return the cost of the agent's prompts divided by the cost of sending everything. None if
        nothing was sent.
        """
        return prices.relative(self.bill, self.everything)

    def relative_cost_with_summaries(self, prices: Prices) -> float | None:
        """Return the cost of the agent's prompts and of writing summaries, divided by the cost of
        sending everything. None if nothing was sent. Writing summaries is assumed to use no prompt
        cache.
        """
        return prices.relative(self.bill + self.summaries, self.everything)


@dataclass(frozen=True)
class Conversation:
    """A conversation to measure. `history` has the same messages in the form for replays. `session`
    is the imported session of a coding agent, or None for any other conversation.
    """

    messages: Sequence[ChatMessage]
    history: History
    estimator: TokenCountEstimator
    session: Session | None = None


def everything_of(conversation: Conversation, rules: CacheRules = NO_BOUNDS) -> Bill:
    """Return the bill of sending everything."""
    return (
        _Measuring(conversation, Summaries(StandIn.NOTHING, ())).measure(_Everything(), rules).bill
    )


class _Everything(Run):
    """A run that sends all messages, in the order of the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self._positions: list[int] = []

    def add(self, position: int, message: ChatMessage) -> None:
        self._positions.append(position)

    def prompt(self) -> list[Sent]:
        return [*self._positions]


def measure(
    conversation: Conversation,
    run: Run,
    stand_in: StandIn = StandIn.NOTHING,
    rules: CacheRules = NO_BOUNDS,
    everything: Bill | None = None,
) -> Measured:
    """Return the figures of a run over a conversation, and close the run. A message has a need if
    it uses earlier facts or repeats an earlier tool call. The need is held if all these facts, or
    the tool call, are in the prompt just before the message.

    `stand_in` says which text replaces summaries. `rules` are the rules of a provider's prompt
    cache. `everything` is the bill of sending everything, which is computed if it is None.
    """
    summaries = Summaries(stand_in, conversation.messages, conversation.session)
    try:
        found = _Measuring(conversation, summaries).measure(run, rules)
    finally:
        run.close()
    return replace(found, everything=everything or everything_of(conversation, rules))


def prompts_of(
    conversation: Conversation, run: Run, stand_in: StandIn = StandIn.NOTHING
) -> Iterator[tuple[int, list[Piece]]]:
    """Yield a pair for each model call in a run: the position of the answer, and the prompt.

    Each item of a prompt is the position of a message. If the message is not in the conversation,
    such as a summary, the item is the message itself.
    """
    summaries = Summaries(stand_in, conversation.messages, conversation.session)
    return _Measuring(conversation, summaries).prompts(run)


class _Measuring:
    def __init__(self, conversation: Conversation, summaries: Summaries) -> None:
        self._conversation, self._summaries = conversation, summaries
        self._history = conversation.history
        self._mentions = _positions_by_fact(self._history)
        self._needs = _needs_by_position(self._history)
        self._of_texts: dict[ChatMessage, frozenset[str]] = {}

    def measure(self, run: Run, rules: CacheRules) -> Measured:
        calls: list[Call] = []
        recalls = held = 0
        first_lost = ""
        before: Sequence[Piece] = ()
        last: int | None = None
        for position, prompt in self._walk(run, only_calls=False):
            needed = self._needs.get(position, ())
            lost = [each for each in needed if not self._is_held(each, prompt)] if needed else []
            recalls, held = recalls + len(needed), held + len(needed) - len(lost)
            first_lost = first_lost or next((each.fact for each in lost), "")
            if self._history.entries[position].type is MessageType.AI:
                calls.append(self._call(position, prompt, before, last))
                before, last = prompt, position
        billed = [self._count(UserMessage(each)) + self._history.overhead for each in run.billed]
        return Measured(
            1,
            recalls,
            held,
            bill_of(calls, rules),
            Bill(len(billed), sum(billed)),
            first_lost=first_lost,
        )

    def prompts(self, run: Run) -> Iterator[tuple[int, list[Piece]]]:
        return self._walk(run, only_calls=True)

    def _walk(self, run: Run, only_calls: bool) -> Iterator[tuple[int, list[Piece]]]:
        """Yield the position and the prompt before each AI message, and before each message with
        needs.
        """
        for position, message in enumerate(self._conversation.messages):
            if message.type is MessageType.USER and position:
                run.end_turn()
            is_call = message.type is MessageType.AI
            if is_call or (position in self._needs and not only_calls):
                yield position, self._written(run.prompt(), position)
            run.add(position, message)

    def _written(self, prompt: Sequence[Sent], at: int) -> list[Piece]:
        """Return a prompt with messages in place of its summaries."""
        kept = [each for each in prompt if isinstance(each, int)]
        return [
            self._summaries.message(each, kept, at) if isinstance(each, Summary) else each
            for each in prompt
        ]

    def _is_held(self, need: Need, prompt: Sequence[Piece]) -> bool:
        positions = {each for each in prompt if isinstance(each, int)}
        others = [each for each in prompt if not isinstance(each, int)]
        return all(
            not positions.isdisjoint(self._mentions[name])
            or any(name in self._mentioned_in(each) for each in others)
            for name, _ in need.parts
        )

    def _mentioned_in(self, message: ChatMessage) -> frozenset[str]:
        if message not in self._of_texts:
            texts = texts_with_facts(message)
            self._of_texts[message] = self._history.lexicon.mentioned_in(texts)
        return self._of_texts[message]

    def _call(
        self, position: int, prompt: Sequence[Piece], before: Sequence[Piece], last: int | None
    ) -> Call:
        sizes = [self._size(each) for each in prompt]
        alike = 0
        for one, other in zip(prompt, before, strict=False):
            if one != other:
                break
            alike += 1
        size = sum(sizes) + self._history.overhead if prompt else 0
        age = self._history.seconds(last, position)
        return Call(position, size, sum(sizes[:alike]), age, alike < len(before))

    def _size(self, piece: Piece) -> int:
        return self._history.tokens[piece] if isinstance(piece, int) else self._count(piece)

    def _count(self, message: ChatMessage) -> int:
        return count_tokens(self._conversation.estimator, message)


def _positions_by_fact(history: History) -> Mapping[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position in range(len(history)):
        for fact in history.mentions(position):
            found[fact].append(position)
    return found


def _needs_by_position(history: History) -> Mapping[int, list[Need]]:
    found: defaultdict[int, list[Need]] = defaultdict(list)
    for need in needs(history, history.loads.departures(None).of_texts):
        found[need.position].append(need)
    return found
