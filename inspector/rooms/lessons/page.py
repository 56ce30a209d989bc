"""The page of a lesson's step, and the screens for showing a lesson on a projector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.utils.safestring import SafeString

from chatmemory import Reason
from chatmemory.explain.causes import cause_in
from chatmemory.explain.wording import seqs
from inspector.rooms.lessons.board import Board
from inspector.rooms.lessons.catalogue import Staged
from inspector.rooms.lessons.lesson import Ask, Practice
from inspector.rooms.lessons.rehearsal import Scene
from inspector.rooms.lessons.stage import Happening, LessonMoment
from inspector.rooms.lessons.words import Answer, choice_text, filled, judge, marked_up, solution
from inspector.shell.rooms import page_url

LETTERS = "ABCDEFGH"  # as many as OFFERS_MAX
# The oldest messages made room; a summary is written by the step itself.
TOLD_BY_STEPS = (Reason.CAPACITY, Reason.SUMMARIZED)
# A practice's page is one of the inspector's, by the name of its URL, or a place on one.
_PLACES = {"simulate": ("conversation", "#composer")}


class Offer(NamedTuple):
    """A possible answer to the question of a step, with a `letter` such as "A".

    - `value`: the number of a choice, from 1. In a question about a limit, the limit.
    - `is_chosen`: whether the learner gave this answer.
    - `is_right`: whether this answer is correct. It is False until the page shows the correct
      answer.
    """

    value: int
    letter: str
    text: SafeString
    is_chosen: bool
    is_right: bool


class StepTexts:
    """The texts of a step: its explanation, its question, and the explanation of the answer.

    With `is_plain`, numbers of messages such as #3 are not made into links.
    """

    def __init__(self, moment: LessonMoment, is_plain: bool = False) -> None:
        step, question = moment.step, moment.question
        self.moment = moment
        self._is_linked = not is_plain
        self.text = self._filled(step.text, moment.before)
        self.question = self._filled(question.text, moment.before)
        self.hint = self._filled(question.hint, moment.before)
        self.why = self._filled(question.why, moment.after)
        self.solution = marked_up(solution(moment), self._is_linked)

    @property
    def causes(self) -> list[SafeString]:
        """Sentences that say why messages left memory in this step, such as `#3: Its tool call
        left.`

        There is no sentence for messages that made room for others, or that a summary replaced: the
        text of the lesson explains this.
        """
        by_cause: dict[str, list[int]] = {}
        for change in filter(None, (scene.change for scene in self.moment.changes)):
            for each in change.evicted:
                if each.reason not in TOLD_BY_STEPS or each.misfit:
                    sentence = cause_in(change, each).sentence
                    by_cause.setdefault(sentence, []).append(each.seq)
        causes = (f"{seqs(left)}: {sentence}" for sentence, left in by_cause.items())
        return [marked_up(cause, self._is_linked) for cause in causes]

    def offers(self, answer: Answer | None = None, is_revealed: bool = False) -> list[Offer]:
        """Return the limits or the choices from which the learner chooses an answer. Empty if the
        question asks which messages leave, or if there is no question.

        `answer` is the learner's answer; None before the learner has answered. Only with
        `is_revealed`, the offers tell which answer is correct.
        """
        moment, question = self.moment, self.moment.question
        if question.limits:
            known = [(limit, f"{limit:,}", limit == moment.keeping) for limit in question.limits]
        else:
            known = [
                (number, choice_text(choice, moment), moment.holds(choice))
                for number, choice in enumerate(question.choices, 1)
            ]
        return [
            Offer(
                value,
                letter,
                marked_up(text, is_linked=False),
                is_chosen=answer is not None and answer.value == value,
                is_right=is_revealed and is_right,
            )
            for letter, (value, text, is_right) in zip(LETTERS, known, strict=False)
        ]

    def board(self, is_revealed: bool, answer: Answer | None = None) -> Board:
        """Return the board with memory before the events of this step, or, with `is_revealed`,
        after them.

        In a question about a limit, the revealed board shows memory under the limit that the
        learner chose (`answer`). Without an `answer`, it shows memory under the correct limit.
        """
        if is_revealed and self.moment.tries:
            limit = answer.value if answer else self.moment.keeping
            return Board(Happening(self.moment.tries[limit]))
        asks = self.moment.question.ask is Ask.LEAVES
        picked = answer.picked if answer and asks else None
        return Board(self.moment, is_revealed, asks, picked)

    def _filled(self, text: str, scene: Scene) -> SafeString:
        return marked_up(filled(text, self.moment, scene), self._is_linked)


class LessonPage:
    """Presents one step of a lesson. `is_open` is True while its question waits for an answer.

    `passed` has the texts of earlier steps. `later` is the number of steps that follow.
    """

    def __init__(self, staged: Staged, number: int, answer: Answer | None = None) -> None:
        moment = staged.moments[number - 1]
        self.lesson = staged.lesson
        self.number = number
        self.passed = list(map(StepTexts, staged.moments[: number - 1]))
        self.texts = StepTexts(moment)
        self.told = [*self.passed, self.texts]
        self.later = len(staged.moments) - number
        self.ask = moment.question.ask or ""
        self.is_open = bool(self.ask) and answer is None
        self.is_finished = not self.later and not self.is_open
        self.judgement = judge(moment, answer) if answer else None
        if self.judgement:
            self.headline = marked_up(self.judgement.headline)
            self.why_of_choice = marked_up(filled(self.judgement.why, moment, moment.after))
        self.offers = self.texts.offers(answer, is_revealed=not self.is_open)
        self.board = self.texts.board(not self.is_open, answer)
        self.remember = marked_up(self.lesson.remember)
        # The addresses of the same in real life, with their texts
        practices = [(practice_url(each), each.text) for each in self.lesson.practices]
        self.practices = [(url, text) for url, text in practices if url]


def practice_url(practice: Practice) -> str:
    """Return the URL of a practice link; "" if this site has no such page."""
    name, place = _PLACES.get(practice.page, (practice.page, ""))
    arguments = [practice.memory_id] if practice.memory_id else []
    url = page_url(name, *arguments)
    return url and f"{url}{'?' if practice.query else ''}{practice.query}{place}"


# Screens for a projector: one idea on each, and a pause between a question and its answer


ASKED = ("question", "answer", "why")


@dataclass(frozen=True)
class Screen:
    """A screen for the projector. `kind` is title, text, question, answer, why or end.

    `texts` are the texts of the step; None for title and end.
    """

    kind: str
    texts: StepTexts | None = None

    @property
    def is_revealed(self) -> bool:
        return self.kind in ("answer", "why")

    @property
    def board(self) -> Board | None:
        return self.texts.board(self.is_revealed) if self.texts else None

    @property
    def offers(self) -> list[Offer]:
        return self.texts.offers(is_revealed=self.is_revealed) if self.texts else []


def screens(staged: Staged) -> list[Screen]:
    """Return the screens of a lesson for a projector, in order."""
    shown = [Screen("title")]
    for moment in staged.moments:
        texts = StepTexts(moment, is_plain=True)
        if moment.step.text:
            shown.append(Screen("text", texts))
        if moment.question.ask:
            shown += [Screen(kind, texts) for kind in ASKED]
    return [*shown, Screen("end")]
