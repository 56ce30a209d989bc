"""Rehearsals: what messages do to an empty memory, with no conversation and no database.

A rehearsal folds over events: a message is added, a policy comes into force. Messages have numbers
from 1, as in a conversation; a message that changes nothing, such as an equal system message, has
none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory.core.estimators import count_tokens, estimator_for
from chatmemory.core.lint import Turn, Verdict, verdicts
from chatmemory.core.messages import AiMessage, ChatMessage, MessageType
from chatmemory.core.misfits import misfit_in
from chatmemory.core.phrases import has_phrase
from chatmemory.core.policies import Policy
from chatmemory.core.readable import readable_text
from chatmemory.core.transitions import Transition, admit
from chatmemory.core.window import Entry, Window
from chatmemory.core.written_policies import measured
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage
from chatmemory.queries.window_rows import WindowPlace, WindowView, view_of


@dataclass(frozen=True)
class Line:
    """A message that was said in a rehearsal, with its number and its tokens."""

    seq: int
    message: ChatMessage
    tokens: int

    @property
    def type(self) -> MessageType:
        return self.message.type

    @property
    def has_calls(self) -> bool:
        return self.message.has_tool_execution_requests

    @cached_property
    def readable(self) -> str:
        """The text as people read it."""
        return readable_text(self.message)


@dataclass(frozen=True)
class Scene:
    """The state after an event, and the change that the event made.

    `change` is None before the first event. That of a new policy changes no message: what a lowered
    limit hides is in `window.over_limit`. `left_by` has the change by which each message left that
    is not in memory any more.
    """

    policy: Policy
    said: tuple[Line, ...]
    window: WindowView[WindowPlace]
    change: ChangeResult | None
    left_by: dict[int, ChangeResult]

    @cached_property
    def seen(self) -> frozenset[int]:
        """The numbers of the messages that the model sees."""
        return frozenset(place.seq for place in self.window.rows)

    def remembers(self, phrase: str) -> bool:
        """Return whether a message that the model sees has a phrase, whoever said it."""
        seen = (line for line in self.said if line.seq in self.seen)
        return any(has_phrase(line.readable, phrase) for line in seen)

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what each provider says to this memory."""
        lines = {line.seq: line for line in self.said}
        return verdicts([_turn(lines[place.seq]) for place in self.window.rows])


def rehearse(policy: Policy, events: Iterable[ChatMessage | Policy]) -> list[Scene]:
    """Return the scenes before and after each event, so that there is one more than events.

    Raises UnsupportedMessage for a message that the policy's estimator does not count.
    """
    stage = _Stage(policy)
    return [stage.scene(), *(stage.after(event) for event in events)]


class _Stage:
    """The window of a rehearsal, which changes from event to event."""

    def __init__(self, policy: Policy) -> None:
        self._policy = measured(policy)
        self._estimator = estimator_for(policy.estimator)
        self._window = Window()
        self._said: list[Line] = []
        self._left_by: dict[int, ChangeResult] = {}
        self._step = 0

    def after(self, event: ChatMessage | Policy) -> Scene:
        change = self._set(event) if isinstance(event, Policy) else self._add(event)
        return self.scene(change)

    def scene(self, change: ChangeResult | None = None) -> Scene:
        places = [
            WindowPlace(seq, entry.type, entry.has_calls, entry.tokens)
            for entry in self._window
            if isinstance(seq := entry.key, int)
        ]
        window = view_of("", self._step, self._policy, places)
        return Scene(self._policy, tuple(self._said), window, change, dict(self._left_by))

    def _set(self, policy: Policy) -> ChangeResult:
        totals = self._window.totals
        self._policy = policy = measured(policy)
        self._step += 1
        return ChangeResult("policy", self._step, policy, totals, totals)

    def _add(self, message: ChatMessage) -> ChangeResult:
        line = Line(len(self._said) + 1, message, count_tokens(self._estimator, message))
        transition = admit(self._window, _entry(line), self._policy)
        if transition.ignored:
            return ChangeResult("add", None, self._policy, transition.before, transition.after)
        self._step += 1
        self._said.append(line)
        transition.apply_to(self._window)
        change = _result(transition, line, self._step)
        self._left_by |= {message.seq: change for message in change.evicted}
        return change


def _result(transition: Transition, line: Line, step: int) -> ChangeResult:
    misfit = misfit_in(transition)
    evicted = tuple(
        EvictedMessage(
            seq=_seq(each.entry),
            type=each.entry.type,
            has_calls=each.entry.has_calls,
            tokens=each.entry.tokens,
            reason=each.reason,
            because_seq=_seq(each.because) if each.because else None,
            misfit=misfit if _seq(each.entry) == line.seq else None,
        )
        for each in transition.evictions
    )
    return ChangeResult(
        "add",
        step,
        transition.policy,
        transition.before,
        transition.after,
        policy_before=transition.policy_before,
        seq=line.seq,
        arrived=(ArrivedMessage(line.seq, line.type, line.has_calls, line.tokens, "SAID"),),
        evicted=evicted,
    )


def _entry(line: Line) -> Entry:
    return replace(Entry.of(line.message, line.tokens), key=line.seq)


def _seq(entry: Entry) -> int:
    assert isinstance(entry.key, int)
    return entry.key


def _turn(line: Line) -> Turn:
    message = line.message
    calls = len(message.tool_execution_requests) if isinstance(message, AiMessage) else 0
    return Turn(line.seq, line.type, calls)
