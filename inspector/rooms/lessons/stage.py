"""Plays a lesson: finds for each step what memory has at the time of the question, and after each
event that follows the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from chatmemory import ChatMemoryError, ChatMessage, NotCompactable, Policy
from chatmemory.explain.receipts import receipt
from chatmemory.recall.incidents import incidents_under
from inspector.rooms.lessons.lesson import (
    Ask,
    Choice,
    InvalidLesson,
    Lesson,
    LessonStep,
    Outcome,
    Question,
)
from inspector.rooms.lessons.rehearsal import (
    Event,
    Line,
    Scene,
    WrittenSummary,
    lost_terms,
    rehearse,
)


class Verbs(NamedTuple):
    """The words for messages that leave or stay: `LEAVE`, or `HIDE` in a step about a limit.

    - `one`, `many`: "leaves" and "leave", or "is hidden" and "are hidden".
    - `not_one`, `not_many`: "stays" and "stay", or "is still seen" and "are still seen".
    - `leaves`, `stays`: labels for one message: "leaves" and "stays", or "hidden" and "seen".
    """

    one: str
    many: str
    not_one: str
    not_many: str
    leaves: str
    stays: str

    @property
    def nothing(self) -> str:
        return f"Nothing {self.one}"


LEAVE = Verbs("leaves", "leave", "stays", "stay", "leaves", "stays")
HIDE = Verbs("is hidden", "are hidden", "is still seen", "are still seen", "hidden", "seen")


@dataclass(frozen=True)
class Happening:
    """Memory before some events (`before`), and after each of these events (`changes`)."""

    before: Scene
    changes: tuple[Scene, ...] = ()

    @property
    def after(self) -> Scene:
        return self.changes[-1] if self.changes else self.before

    @property
    def arriving(self) -> tuple[Line, ...]:
        return self.after.history[len(self.before.history) :]

    @property
    def leaving(self) -> tuple[int, ...]:
        """The numbers of the messages that were in memory before the events, but are not in memory
        after them. In the order of memory.
        """
        rows = self.before.window.rows
        return tuple(row.seq for row in rows if row.seq not in self.after.in_memory)

    @property
    def lost(self) -> tuple[int, ...]:
        """The numbers of the messages that arrived with the events, but are not in memory after
        them.
        """
        return tuple(line.seq for line in self.arriving if line.seq not in self.after.in_memory)

    @property
    def verbs(self) -> Verbs:
        return LEAVE


@dataclass(frozen=True, kw_only=True)
class LessonMoment(Happening):
    """A step of a lesson as played, with its `number` from 1.

    - `before`: memory at the time of the question. The step's fields `limit` and `said` have
      already taken effect.
    - `changes`: memory after each event that follows the answer. Empty for a step without such
      events.
    - `to_come`: the messages of the script that follow the newest summary. If no summary was made
      so far, the messages that follow this step.
    """

    number: int
    step: LessonStep
    to_come: tuple[ChatMessage, ...] = ()

    @property
    def question(self) -> Question:
        return self.step.question

    @property
    def verbs(self) -> Verbs:
        """The words for messages that leave or stay in this step: `HIDE` ("is hidden") or `LEAVE`
        ("leaves"). `HIDE` applies if the step asks a question, adds no message after the answer,
        and makes no summary.
        """
        is_a_limit = self.question.ask and not self.step.outcome.adds and not self.summary
        return HIDE if is_a_limit else LEAVE

    @property
    def compacted(self) -> Scene | None:
        """The scene right after this step's summary was made; None without a summary."""
        kinds = ((scene, scene.change.kind) for scene in self.changes if scene.change)
        return next((scene for scene, kind in kinds if kind == "compact"), None)

    @property
    def summary(self) -> Line | None:
        """The summary that this step makes; None if it makes none."""
        return self.compacted.lines[-1] if self.compacted else None

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """The exact terms that this step's summary lost although later messages need them."""
        return tuple(lost_terms(self.compacted, self.to_come)) if self.compacted else ()

    @property
    def needed(self) -> int:
        """The load of memory at the first event after the answer, before messages leave to make
        room.

        If this load is within the limit, `needed` is the load at the end of the step.
        """
        lines = receipt(self.changes[0].change) if self.changes and self.changes[0].change else ()
        over = [line.amount for line in lines if line.kind == "over"]
        return over[0] if over else self.after.window.load or 0

    @cached_property
    def tries(self) -> dict[int, Scene]:
        """Memory after the step under each limit that the question offers, by limit. In each scene,
        the limit applies from the first message of the chat on. Empty if the question offers no
        limits.
        """
        messages = [line.message for line in self.after.history]
        policy = self.after.policy
        return {n: rehearse(replace(policy, limit=n), messages)[-1] for n in self.question.limits}

    @cached_property
    def keeping(self) -> int:
        """The correct answer to a question about a limit; 0 if no limit is correct.

        - If the question is about a message (`question.keep`): the smallest offered limit under
          which the message is in memory after the step.
        - If the question is about a fact (`question.fact`): the smallest limit under which memory
          still has the fact when a message of this step repeats it.
        """
        if not self.question.fact:
            keep = self.question.keep
            return next((n for n, scene in self.tries.items() if keep in scene.in_memory), 0)
        found = incidents_under(self.before.policy, [line.message for line in self.after.history])
        arriving = {line.seq for line in self.arriving}
        limits = (
            fact.keeping.limit
            for each in found
            for fact in each.facts
            if fact.fact == self.question.fact and each.again in arriving and fact.keeping
        )
        return next(limits, None) or 0

    def holds(self, choice: Choice) -> bool:
        """Return whether a choice is the correct answer: whether its claim is true after
        the step.
        """
        name, value = choice.claim
        match name:
            case "remembers":
                return self.after.remembers(str(value))
            case "forgets":
                return not self.after.remembers(str(value))
            case "loses":
                return value in self.missed
            case "refused_by":
                refusing = {each.provider for each in self.after.verdicts() if not each.accepts}
                return refusing == set(value if isinstance(value, tuple) else ())
        return value == {
            "held": len(self.after.in_memory),
            "hidden": len(self.after.window.over_limit),
            "leaving": len(self.leaving),
        }.get(name)


def moments(lesson: Lesson) -> tuple[LessonMoment, ...]:
    """Play a lesson, and return all its steps as played. Raises InvalidLesson for a step that
    cannot be played.
    """
    script = _Script(lesson)
    found = tuple(script.moment(i, step) for i, step in enumerate(lesson.steps))
    for moment in found:
        for field, why in _faults(moment):
            raise InvalidLesson(("step", moment.number - 1, field), why)
    return found


class _Script:
    """The events of a lesson: the messages of the chat, and what the steps do between them."""

    def __init__(self, lesson: Lesson) -> None:
        self._lesson = lesson
        self._events: list[Event] = []
        self._recovers = lesson.policy.auto_recover_orphaned_tool_messages
        self._message_count = 0
        self._summary: tuple[int, int, Outcome] | None = None

    def moment(self, i: int, step: LessonStep) -> LessonMoment:
        """Play step number `i`, and return its moment. Raises InvalidLesson."""
        before = self._play(i, step)
        try:
            scenes = rehearse(self._lesson.policy, self._events)
        except NotCompactable as error:
            raise InvalidLesson(("step", i, "summary"), str(error)) from error
        except ChatMemoryError as error:
            raise InvalidLesson(("script",), str(error)) from error
        _, message_count, _ = self._summary or (0, self._message_count, step.outcome)
        return LessonMoment(
            before=scenes[before],
            changes=tuple(scenes[before + 1 :]),
            number=i + 1,
            step=step,
            to_come=self._lesson.messages[message_count:],
        )

    def _play(self, i: int, step: LessonStep) -> int:
        """Add the events of a step. Return the number of events before the answer."""
        outcome = step.outcome
        rewrites = outcome.append_terms and not outcome.summary
        summarizing = self._go_back(i) if rewrites else outcome
        for limit in step.question.limits:
            self._policy(i, "limits", limit)
        if step.recovers:
            self._recovers = True
            self._events.append(self._policy(i, "recovers", step.limit))
        elif step.limit:
            self._events.append(self._policy(i, "limit", step.limit))
        if step.said is not None:
            if step.said < self._message_count:
                raise InvalidLesson(
                    ("step", i, "said"),
                    f"is {step.said}, but {self._message_count} messages have been said before: "
                    f"use {self._message_count} or more",
                )
            self._say(i, "said", step.said - self._message_count)
        before = len(self._events)
        if summarizing.summary:
            self._summary = before, self._message_count, summarizing
            terms = outcome.append_terms
            summary = WrittenSummary(summarizing.summary, summarizing.keep_last, terms)
            self._events.append(summary)
        self._say(i, "adds" if outcome.adds > 1 else "ask", outcome.adds)
        if outcome.becomes:
            self._events.append(self._policy(i, "becomes", outcome.becomes))
        return before

    def _go_back(self, i: int) -> Outcome:
        """Remove all events from the last summary on. Return the outcome with this summary, so that
        the step can make it again.
        """
        if self._summary is None:
            raise InvalidLesson(
                ("step", i, "append_terms"), "needs a step before this step that makes a summary"
            )
        events, self._message_count, outcome = self._summary
        del self._events[events:]
        return outcome

    def _say(self, i: int, field: str, count: int) -> None:
        messages = self._lesson.messages[self._message_count : self._message_count + count]
        if len(messages) < count:
            rest = (
                f"needs {self._message_count + count} messages in the script, but the script has "
                f"{len(self._lesson.messages)}"
            )
            raise InvalidLesson(("step", i, field), rest)
        self._events += messages
        self._message_count += count

    def _policy(self, i: int, field: str, limit: int | None) -> Policy:
        """Return the policy of the lesson with another limit. Raises InvalidLesson if the policy's
        options do not allow the limit.
        """
        policy = self._lesson.policy
        try:
            return replace(
                policy,
                limit=limit or policy.limit,
                auto_recover_orphaned_tool_messages=self._recovers,
            )
        except ChatMemoryError as error:
            raise InvalidLesson(("step", i, field), str(error)) from error


def _faults(moment: LessonMoment) -> Iterator[tuple[str, str]]:
    """Yield the faults of a step's question: the field, and why it contradicts what happens in the
    step.
    """
    question = moment.question
    match question.ask:
        case Ask.CHOOSE:
            true = [choice.text for choice in question.choices if moment.holds(choice)]
            if len(true) != 1:
                found = f"{len(true)} choices are right: {true}"
                yield "choice", f"exactly one choice must be right, but {found}"
        case Ask.LIMIT if question.fact:
            if moment.keeping not in question.limits:
                why = f"{moment.keeping} would have kept it" if moment.keeping else "it never left"
                yield "limits", f"{question.fact} comes up again, and {why}: offer that limit"
        case Ask.LIMIT:
            if not moment.after.has(question.keep):
                yield (
                    "keep",
                    (
                        f"message #{question.keep} has not been said at this step: name a message "
                        "that has been said"
                    ),
                )
            elif not moment.keeping:
                yield (
                    "limits",
                    (f"no limit in this list keeps message #{question.keep}: add a larger limit"),
                )
