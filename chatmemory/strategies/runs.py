"""A run applies one strategy to one conversation, message by message."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chatmemory.messages.estimators import TokenCountEstimator, estimator_for
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import AiMessage, ChatMessage, MessageType, text_of
from chatmemory.strategies.summaries import Summary
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

DEFAULT = estimator_for(DEFAULT_ESTIMATOR)

# What a prompt has at a place: the position of a message that is sent as it was said, a message
# that is not in the history, such as a cleared tool result, or a summary.
Sent = int | ChatMessage | Summary


@dataclass(frozen=True)
class Settings:
    """The limits of all strategies: `tokens` for strategies that count tokens, and `messages` for
    strategies that count messages or groups of messages.

    A library counts tokens with its default function. With `counts_alike`, each library that
    accepts another function gets the `estimator`. Chatmemory's own windows and all costs are always
    counted by the `estimator`.
    """

    tokens: int = 4_000
    messages: int = 20
    estimator: TokenCountEstimator = DEFAULT
    counts_alike: bool = False


class Run:
    """Takes the messages of a conversation one by one, and tells which messages a model call would
    get.

    The current system message is sent first, because frameworks keep it apart from their memory;
    `system` is its position. `billed` are the prompts of the calls that wrote summaries. A run ends
    with `close`. Subclasses define `take` and `memory`.
    """

    def __init__(self) -> None:
        self.system: int | None = None
        self.billed: list[str] = []  # the prompts of the calls that wrote summaries

    def add(self, position: int, message: ChatMessage) -> None:
        """Take the message at a position. An AI message is the answer to the prompt that `prompt`
        returned last.
        """
        if message.type is MessageType.SYSTEM:
            self.system = position
        else:
            self.take(position, message)

    def prompt(self) -> list[Sent]:
        """Return the messages that a model call would get now. The call counts as made only if its
        answer is added next. Without an answer, the run does not change.
        """
        head: list[Sent] = [] if self.system is None else [self.system]
        return [*head, *self.memory()]

    def take(self, position: int, message: ChatMessage) -> None:
        raise NotImplementedError

    def memory(self) -> Sequence[Sent]:
        """Return the messages that are sent after the system message, as positions or summaries."""
        raise NotImplementedError

    def end_turn(self) -> None:
        """Do what the framework does at the end of a turn: after the last answer, before the next
        user message. The default does nothing.
        """

    def close(self) -> None:
        """Free the run's resources. The default does nothing."""


Function = Callable[[Sequence[ChatMessage]], Sequence[ChatMessage]]


class FunctionRun(Run):
    """Runs a user's function, which takes the messages so far and returns the messages to send.

    Each returned message is matched with the same object in the history, else with an equal
    message. If several messages are equal, the latest is matched first.
    """

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._messages: list[ChatMessage] = []
        self._positions: list[int] = []

    def add(self, position: int, message: ChatMessage) -> None:
        self._messages.append(message)
        self._positions.append(position)

    def prompt(self) -> list[Sent]:
        sent = list(self._function(tuple(self._messages)))
        by_id = {id(each): n for n, each in zip(self._positions, self._messages, strict=True)}
        found: list[Sent] = [by_id.get(id(each), each) for each in sent]
        unknown = [place for place, each in enumerate(found) if not isinstance(each, int)]
        taken = {each for each in found if isinstance(each, int)}
        for place in reversed(unknown):
            position = self._equal_to(sent[place], taken)
            if position is not None:
                found[place] = position
                taken.add(position)
        return found

    def _equal_to(self, message: ChatMessage, taken: set[int]) -> int | None:
        pairs = zip(reversed(self._positions), reversed(self._messages), strict=True)
        return next((n for n, each in pairs if n not in taken and each == message), None)


def spoken(message: ChatMessage) -> str:
    """Return the text of a message without its tool calls, because frameworks have a separate field
    for these.
    """
    return message.text or "" if isinstance(message, AiMessage) else text_of(message)


def flushed_at(tokens: int) -> int:
    """Return how many tokens LlamaIndex removes at once from a memory with a limit of `tokens`: by
    default, a tenth of the limit.
    """
    return max(1, tokens // 10)


def arguments_of(text: str | None) -> JsonDict:
    """Return the arguments of a tool call as a dictionary. Anything else than a JSON object is put
    under the key `text`.
    """
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {"text": found}
