"""The page of a step of a lesson, and the screens of a lesson on a projector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString

from chatmemory import Reason
from chatmemory.explain import cause_of, seqs
from inspector.lessons.board import Board
from inspector.lessons.catalogue import Staged
from inspector.lessons.lesson import Ask, Lesson, Practice
from inspector.lessons.stage import Happening, LessonMoment
from inspector.lessons.words import (
    Answer,
    Judgement,
    filled,
    judge,
    marked_up,
    of_choice,
    solution,
)

LETTERS = "ABCDEFGH"  # as many as OFFERS_MAX
# The oldest messages made room; a summary is written by the step itself.
TOLD_BY_STEPS = (Reason.CAPACITY, Reason.SUMMARIZED)
# A practice's page is one of the inspector's, by the name of its URL, or a place on one.
_PLACES = {"simulate": ("conversation", "#composer")}


class Offer(NamedTuple):
    """An answer to choose: its value, its letter, its text; once judged, whether it is right."""

    value: int
    letter: str
    text: SafeString
    is_given: bool
    is_right: bool


@dataclass(frozen=True)
class Told:
    """What is said of a step: its text, its question, and the explanation of the answer.

    Numbers of messages are links, unless it `is_plain`.
    """

    moment: LessonMoment
    is_plain: bool = False

    @property
    def text(self) -> SafeString:
        return self._filled(self.moment.step.text)

    @property
    def question(self) -> SafeString:
        return self._filled(self.moment.step.question)

    @property
    def hint(self) -> SafeString:
        return self._filled(self.moment.step.hint)

    @property
    def why(self) -> SafeString:
        return self._filled(self.moment.step.why, is_after=True)

    @property
    def solution(self) -> SafeString:
        return marked_up(solution(self.moment), not self.is_plain)

    @property
    def causes(self) -> list[SafeString]:
        """Why messages left, in the words of Why?, but for those that its step tells of."""
        by_cause: dict[str, list[int]] = {}
        for scene in self.moment.changes:
            for each in scene.change.evicted if scene.change else ():
                if each.reason not in TOLD_BY_STEPS or each.misfit:
                    sentence = cause_of(each.reason, each.misfit).sentence
                    by_cause.setdefault(sentence, []).append(each.seq)
        causes = (f"{seqs(left)}: {sentence}" for sentence, left in by_cause.items())
        return [marked_up(cause, not self.is_plain) for cause in causes]

    def offers(self, answer: Answer | None = None, is_revealed: bool = False) -> Iterator[Offer]:
        """Yield the choices or limits of the question."""
        moment, given = self.moment, answer.value if answer else 0
        for i, choice in enumerate(moment.step.choices):
            text = marked_up(of_choice(choice, moment), is_linked=False)
            is_right = is_revealed and moment.holds(choice)
            yield Offer(i + 1, LETTERS[i], text, given == i + 1, is_right)
        for i, limit in enumerate(moment.step.limits):
            is_right = is_revealed and limit == moment.keeping
            yield Offer(limit, LETTERS[i], marked_up(f"{limit:,}"), given == limit, is_right)

    def board(self, is_revealed: bool, answer: Answer | None = None) -> Board:
        """Return the board; for a limit that was chosen, with what it leads to."""
        if is_revealed and self.moment.tries:
            limit = answer.value if answer else self.moment.keeping
            return Board(Happening(self.moment.tries[limit]))
        asks = self.moment.step.ask is Ask.LEAVES
        picked = answer.picked if answer and asks else None
        return Board(self.moment, is_revealed, asks, picked)

    def _filled(self, text: str, is_after: bool = False) -> SafeString:
        scene = self.moment.after if is_after else self.moment.before
        return marked_up(filled(text, self.moment, scene), not self.is_plain)


@dataclass(frozen=True)
class LessonPage:
    """The page of one step of a lesson, with the answer that somebody gave."""

    staged: Staged
    number: int
    answer: Answer | None = None

    @property
    def lesson(self) -> Lesson:
        return self.staged.lesson

    @cached_property
    def told(self) -> Told:
        return Told(self.staged.moments[self.number - 1])

    @property
    def ask(self) -> str:
        return self.told.moment.step.ask or ""

    @property
    def is_open(self) -> bool:
        """Whether the question waits for an answer."""
        return bool(self.ask) and self.answer is None

    @property
    def is_last(self) -> bool:
        return self.number == len(self.staged.moments)

    @property
    def is_finished(self) -> bool:
        return self.is_last and not self.is_open

    @property
    def passed(self) -> list[Told]:
        """The steps that are behind."""
        return list(map(Told, self.staged.moments[: self.number - 1]))

    @property
    def later(self) -> int:
        """How many steps come after this one."""
        return len(self.staged.moments) - self.number

    @cached_property
    def judgement(self) -> Judgement | None:
        return judge(self.told.moment, self.answer) if self.answer else None

    @property
    def headline(self) -> SafeString:
        return marked_up(self.judgement.headline if self.judgement else "")

    @property
    def why_of_choice(self) -> SafeString:
        why = self.judgement.why if self.judgement else ""
        return marked_up(filled(why, self.told.moment, self.told.moment.after))

    @cached_property
    def offers(self) -> list[Offer]:
        return list(self.told.offers(self.answer, is_revealed=not self.is_open))

    @cached_property
    def board(self) -> Board:
        return self.told.board(not self.is_open, self.answer)

    @property
    def remember(self) -> SafeString:
        return marked_up(self.lesson.remember)

    @property
    def practices(self) -> list[tuple[str, str]]:
        """The addresses of the same in real life, with their texts."""
        found = [(practice_url(practice), practice.text) for practice in self.lesson.practices]
        return [(url, text) for url, text in found if url]


def practice_url(practice: Practice) -> str:
    """Return the address of a practice; empty if this site has no such page."""
    name, place = _PLACES.get(practice.page, (practice.page, ""))
    arguments = [practice.memory_id] if practice.memory_id else []
    try:
        url = reverse(f"inspector:{name}", args=arguments)
    except NoReverseMatch:
        return ""
    return f"{url}{'?' if practice.query else ''}{practice.query}{place}"


# Screens for a projector: one idea on each, and a pause between a question and its answer


ASKED = ("question", "answer", "why")


@dataclass(frozen=True)
class Screen:
    """A screen: title, text, question, answer, why or end.

    `told` is the step that it is of; None for the first and the last one.
    """

    kind: str
    told: Told | None = None

    @property
    def is_revealed(self) -> bool:
        return self.kind in ("answer", "why")

    @property
    def board(self) -> Board | None:
        return self.told.board(self.is_revealed) if self.told else None

    @property
    def offers(self) -> list[Offer]:
        return list(self.told.offers(is_revealed=self.is_revealed)) if self.told else []


def screens(staged: Staged) -> list[Screen]:
    """Return the screens of a lesson, in order."""
    shown = [Screen("title")]
    for moment in staged.moments:
        told = Told(moment, is_plain=True)
        if moment.step.text:
            shown.append(Screen("text", told))
        if moment.step.ask:
            shown += [Screen(kind, told) for kind in ASKED]
    return [*shown, Screen("end")]
