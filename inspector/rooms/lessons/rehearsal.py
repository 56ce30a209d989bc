"""Rehearsals: play messages into an empty memory, without a conversation and without a database.

An event of a rehearsal is a message, a policy, or a summary. Messages are numbered from 1, as in a
conversation. A message that changes nothing, such as a repetition of the system message in memory,
gets no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from chatmemory.inserted import NewMessage
from chatmemory.ledger.adding import add_all, appended_count, change_policy, summarized
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.windows import StoredWindow
from chatmemory.lint import PROVIDERS, Turn, Verdict, findings_in, verdicts
from chatmemory.lint.linter import turns_by_provider
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.messages.phrases import has_phrase
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.messages.texts import readable_text
from chatmemory.models import Memory
from chatmemory.reading.windows import MessageView, WindowView, view_of
from chatmemory.recall.compactions import compaction_evidence
from chatmemory.recall.facts import NO_WORDS
from chatmemory.recall.summary_plan import SummaryPlan
from chatmemory.windows.compaction import summary_message
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import measured


@dataclass(frozen=True)
class Line:
    """A message or summary of a rehearsal, with its number and its tokens.

    Only summaries have `covered`, the numbers of the messages that the summary replaced, and
    `terms`, the exact terms appended to its text.
    """

    seq: int
    message: ChatMessage
    tokens: int
    covered: tuple[int, ...] = ()
    terms: tuple[str, ...] = ()

    @property
    def type(self) -> MessageType:
        return self.message.type

    @property
    def has_calls(self) -> bool:
        return self.message.has_tool_execution_requests

    @cached_property
    def readable(self) -> str:
        """The text of the message or summary as people read it."""
        return readable_text(self.message)


@dataclass(frozen=True)
class Scene:
    """The state of a rehearsal after an event, or before the first event.

    - `policy`: the policy that applies.
    - `lines`: all messages and summaries so far.
    - `window`: memory. After the limit was lowered, `window.over_limit` has the messages that the
      limit hides from the model. The next message evicts them.
    - `change`: what the event changed; None before the first event.
    - `left_by`: maps the number of each message that left memory to the change in which the message
      left.
    """

    policy: Policy
    lines: tuple[Line, ...]
    window: WindowView
    change: ChangeResult | None
    left_by: dict[int, ChangeResult]

    @cached_property
    def history(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if not line.covered)

    @cached_property
    def memory(self) -> tuple[Line, ...]:
        """The messages and summaries that the model sees, in order."""
        lines = {line.seq: line for line in self.lines}
        return tuple(lines[place.seq] for place in self.window.rows)

    @cached_property
    def in_memory(self) -> frozenset[int]:
        """The numbers of the messages that the model sees."""
        return frozenset(place.seq for place in self.window.rows)

    def has(self, seq: int) -> bool:
        """Return whether there is a message with this number so far."""
        return any(line.seq == seq for line in self.lines)

    def remembers(self, phrase: str) -> bool:
        """Return whether a message in memory contains a phrase."""
        return any(has_phrase(line.readable, phrase) for line in self.memory)

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return whether a provider would accept this memory, for each provider that the lessons
        compare.
        """
        lines = {line.seq: line.message for line in self.lines}
        seqs = self.window.seqs
        return verdicts([Turn.of(index, seq, lines[seq]) for index, seq in enumerate(seqs)])

    def verdicts_of(self, use: Mapping[str, Sequence[str]]) -> tuple[Verdict, ...]:
        """Return for each provider in `use` whether it would accept this memory. `use` maps the
        name of a provider to the models in use.
        """
        lines = {line.seq: line.message for line in self.lines}
        shown = [lines[seq] for seq in self.window.seqs]
        turns = turns_by_provider(shown, use, self.window.seqs)
        found = {
            name: [
                each
                for model in models or (None,)
                for each in findings_in(turns[name], name, model)
            ]
            for name, models in use.items()
        }
        return tuple(Verdict(PROVIDERS[name], each) for name, each in found.items())


@dataclass(frozen=True)
class WrittenSummary:
    """An event of a rehearsal: a summary with this `text`, which replaces messages in memory. At
    least the last `keep_last` messages and a leading system message stay.

    Up to `append_terms` exact terms of the replaced messages are appended to the text.
    """

    text: str
    keep_last: int
    append_terms: int


Event = ChatMessage | Policy | WrittenSummary


def rehearse(policy: Policy, events: Iterable[Event]) -> list[Scene]:
    """Play events. Return the scene before the first event, and the scene after each event.

    Raises UnsupportedMessage for a message that the policy's estimator cannot count. Raises
    NotCompactable for a summary that cannot replace messages or has no room.
    """
    stage = _Stage(policy)
    return [stage.scene(), *(stage.after(event) for event in events)]


def lost_terms(compacted: Scene, to_come: Sequence[ChatMessage]) -> list[str]:
    """Return the exact terms that a summary lost and that a later message uses.

    `compacted` is the scene right after the summary. `to_come` are the messages after this scene.
    """
    positions = {line.seq: position for position, line in enumerate(compacted.lines)}
    summary = compacted.lines[-1]
    compaction = Compaction(
        summary=positions[summary.seq],
        covered=tuple(positions[seq] for seq in summary.covered),
        window=tuple(positions[place.seq] for place in compacted.window.rows),
    )
    messages = (*(line.message for line in compacted.lines), *to_come)
    (found,) = compaction_evidence(Session(messages, (compaction,)))
    return [each.term for each in found.lost()]


class _Stage:
    """The memory of a rehearsal, which changes from event to event."""

    def __init__(self, policy: Policy) -> None:
        memory = Memory()
        memory.policy = policy = measured(policy)
        memory.policy_estimator = policy.estimator
        counted = StoredWindow("", counted_by=family_named(policy.estimator))
        self._recorder = Recorder(memory, window=counted)
        self._lines: list[Line] = []
        self._left_by: dict[int, ChangeResult] = {}

    def after(self, event: Event) -> Scene:
        if isinstance(event, Policy):
            return self.scene(self._set(event))
        if isinstance(event, WrittenSummary):
            change = self._compact(event)
        else:
            (change,) = add_all(self._recorder, [NewMessage(event)])
            self._lines += [Line(each.seq, event, each.tokens) for each in change.arrived]
        self._left_by |= {each.seq: change for each in change.evicted}
        return self.scene(change)

    def _compact(self, summary: WrittenSummary) -> ChangeResult:
        text = summary.text
        plan = SummaryPlan(keep_last=summary.keep_last, append_terms=summary.append_terms)
        transition = summarized(self._recorder, text, plan, NO_WORDS)
        terms = plan.terms((each.entry for each in transition.evictions), text)
        appended = tuple(terms[: appended_count(transition, text, terms)])
        change = self._recorder.record(transition)
        (arrived,) = change.arrived
        message = summary_message(text, appended)
        covered = tuple(each.seq for each in change.evicted)
        self._lines.append(Line(arrived.seq, message, arrived.tokens, covered, appended))
        return change

    def scene(self, change: ChangeResult | None = None) -> Scene:
        memory, policy = self._recorder.memory, self._recorder.policy
        assert policy is not None, "each policy that comes into force is one"
        rows = (MessageView.of(entry, policy) for entry in self._recorder.window)
        window = view_of(memory.last_step, policy, rows)
        return Scene(policy, tuple(self._lines), window, change, dict(self._left_by))

    def _set(self, policy: Policy) -> ChangeResult:
        """Set a policy, and return the change. There is a change even if the policy is the same as
        before.
        """
        policy, totals = measured(policy), self._recorder.window.totals
        change_policy(self._recorder, policy)
        return ChangeResult("policy", self._recorder.memory.last_step, policy, totals, totals)
