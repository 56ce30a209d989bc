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
    """The limits of all strategies: `tokens` for those that count tokens, and `messages` for those
    that count messages.

    A framework counts tokens by its own function. With `counts_alike`, frameworks that allow it use
    `estimator` instead. Chatmemory's windows and all costs always use `estimator`.
    """

    tokens: int = 4_000
    messages: int = 20
    estimator: TokenCountEstimator = DEFAULT
    counts_alike: bool = False


class Run:
    """Takes the messages of a conversation one by one, and says which messages a model call would
    get. A subclass defines `take` and `memory`.

    `system` is the position of the current system message, which is sent first. `billed` are the
    prompts for writing summaries. Call `close` at the end.
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
        """Return the messages that a model call would get now. If a summary is made for this
        prompt, it is kept only if an answer is added next.
        """
        head: list[Sent] = [] if self.system is None else [self.system]
        return [*head, *self.memory()]

    def take(self, position: int, message: ChatMessage) -> None:
        raise NotImplementedError

    def memory(self) -> Sequence[Sent]:
        """Return what is sent after the system message: positions of messages, messages that are
        not in history, and summaries.
        """
        raise NotImplementedError

    def end_turn(self) -> None:
        """Do what the framework does after the last answer of a turn. Does nothing by default."""

    def close(self) -> None:
        """Free the run's resources. Does nothing by default."""


Function = Callable[[Sequence[ChatMessage]], Sequence[ChatMessage]]


class FunctionRun(Run):
    """Runs a user's function, which takes the messages so far and returns those to send.

    Each returned message is looked up in the history: first as the same object, then as an equal
    message. Of several equal messages, the latest is meant.
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
    """Return the text of a message without its tool calls, for which frameworks have a separate
    field.
    """
    return message.text or "" if isinstance(message, AiMessage) else text_of(message)


def flushed_at(tokens: int) -> int:
    """Return how many tokens LlamaIndex removes at once from a memory with the limit `tokens`: a
    tenth of the limit.
    """
    return max(1, tokens // 10)


def arguments_of(text: str | None) -> JsonDict:
    """Return the arguments of a tool call as a dictionary; {} if there are none. Text that is not a
    JSON object is returned under the key `text`, such as `{"text": [1, 2]}`.
    """
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {"text": found}
