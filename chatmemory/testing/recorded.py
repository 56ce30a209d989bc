"""Replays a recorded conversation under a policy: which messages are in memory after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.phrases import has_phrase
from chatmemory.messages.sessions import Session
from chatmemory.messages.texts import readable_text
from chatmemory.recall.comparison import Replay, replay
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.history import History, history_of
from chatmemory.recall.incidents import (
    Incident,
    MemoryTime,
    StepMessage,
    incidents_of,
    replayed,
    with_limits,
)
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, Policy


@dataclass(frozen=True)
class Recorded:
    """A recorded conversation, replayed from an empty window under one policy.

    - `policy` None keeps everything.
    - `words` are the project's additions to what counts as a fact.
    - `session` is an agent's session with its compactions, if the file is from a coding agent.
    - `root` is "" unless this conversation is a branch: another version of a conversation, such as
      after an edited question. For a branch, `root` is the name of the conversation that it
      branches from.

    Messages and steps are numbered from 1. A message that the policy ignores or refuses makes no
    step.
    """

    name: str
    messages: Sequence[ChatMessage]
    policy: Policy | None
    session: Session | None = None
    words: Words = NO_WORDS
    root: str = ""

    @cached_property
    def history(self) -> History:
        name = self.policy.estimator if self.policy else DEFAULT_ESTIMATOR
        return history_of(self.messages, estimator_for(name), self.words)

    @cached_property
    def compared(self) -> Replay:
        """The figures of the replay: the needed facts, the facts held, and the prompts of all model
        calls.
        """
        return replay(self.history, self.policy)

    @cached_property
    def everything(self) -> Replay:
        """The figures of the replay if everything had been sent."""
        return replay(self.history, None)

    @cached_property
    def _replayed(self) -> tuple[list[StepMessage], list[MemoryTime]]:
        if self.policy is None:
            each = zip(self.history.numbers, self.messages, self.history.read, strict=True)
            arrivals = [StepMessage(n, n, message, read) for n, message, read in each]
            return arrivals, [MemoryTime(n, n) for n in self.history.numbers]
        return replayed(self.messages, self.history, self.policy)

    @property
    def arrivals(self) -> Sequence[StepMessage]:
        """The messages that entered memory, in order. Each made one step."""
        return self._replayed[0]

    @property
    def times(self) -> Sequence[MemoryTime]:
        """The times in memory, one for each message of `arrivals`: the steps at which the message
        entered and left.
        """
        return self._replayed[1]

    @property
    def last_step(self) -> int:
        return len(self.arrivals)

    @cached_property
    def incidents(self) -> Sequence[Incident]:
        """The incidents of the replay: facts and tool calls that left memory and came up again.
        `with_limits` adds the limit that would have prevented each incident.
        """
        return incidents_of(*self._replayed)

    def with_limits(self, incidents: Sequence[Incident]) -> list[Incident]:
        """Return the incidents, each with the limit that would have kept its fact in memory."""
        if self.policy is None:
            return list(incidents)
        return list(with_limits(incidents, self.history, self.policy))

    def text(self, number: int) -> str:
        """Return the readable text of the message with this number."""
        return readable_text(self.messages[number - 1])

    def mentions(self, phrase: str) -> list[int]:
        """Return the numbers of the messages that contain a phrase, ignoring case."""
        numbers = range(1, len(self.messages) + 1)
        return [number for number in numbers if has_phrase(self.text(number), phrase)]

    def window(self, step: int) -> set[int]:
        """Return the numbers of the messages in memory after a step."""
        return {
            time.number
            for time in self.times
            if time.entered <= step and (time.left is None or time.left > step)
        }
