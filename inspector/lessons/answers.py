"""Answers and what the core says to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from chatmemory.explain import in_unit, seqs
from inspector.forms import number_in_text
from inspector.lessons.facts import of_choice
from inspector.lessons.lesson import Ask, Question
from inspector.lessons.stage import Happening, Moment

DIGITS = 6  # of a number in an address, which anybody writes
NOTHING = "none"  # what the button “Nothing leaves” sends


@dataclass(frozen=True)
class Answer:
    """What somebody answered: the messages that they picked, or the choice or limit of theirs."""

    picked: frozenset[int] = frozenset()
    value: int = 0

    @classmethod
    def of(cls, asked: QueryDict, question: Question) -> Answer | None:
        """Return the answer in an address; None if there is none that can be given."""
        if question.ask is Ask.LEAVES:
            picked = picked_in(asked)
            return None if picked is None else cls(picked=picked)
        value = number_in_text(asked.get("answer", ""), DIGITS) or 0
        given = question.limits or range(1, len(question.choices) + 1)
        return cls(value=value) if value in given else None


def picked_in(asked: QueryDict) -> frozenset[int] | None:
    """Return the messages that somebody picked, empty if they said that nothing leaves; None if
    they did not answer: to pick nothing is no answer.
    """
    if asked.get("check") == NOTHING:
        return frozenset()
    picked = frozenset(number_in_text(text, DIGITS) or 0 for text in asked.getlist("leaves"))
    return picked if picked and "check" in asked else None


def number_in(asked: QueryDict, name: str, most: int) -> int | None:
    """Return a number of an address, `most` for a larger one; None if it has none."""
    number = number_in_text(asked.get(name, ""), DIGITS)
    return None if number is None else min(number, most)


@dataclass(frozen=True)
class Judgement:
    """Whether an answer is right, in a sentence, and what the choice that was made adds to it."""

    is_right: bool
    headline: str
    why: str = ""


def judge(moment: Moment, answer: Answer) -> Judgement:
    """Compare an answer with what the core does."""
    question = moment.step.question
    assert question is not None
    match question.ask:
        case Ask.LEAVES:
            return judge_picks(moment, answer.picked)
        case Ask.LIMIT:
            return _judge_limit(moment, question, answer.value)
    choice = question.choices[answer.value - 1]
    if moment.holds(choice):
        return Judgement(True, "Right.", choice.why)
    return Judgement(False, f"Not this time. It is: {right_choice(moment)}", choice.why)


def right_choice(moment: Moment) -> str:
    """Return the text of the choice that is right."""
    choices = moment.step.question.choices if moment.step.question else ()
    return next(of_choice(choice, moment) for choice in choices if moment.holds(choice))


def judge_picks(happening: Happening, picked: frozenset[int]) -> Judgement:
    """Compare the messages that somebody picked with those that leave."""
    key, verbs = frozenset(happening.leaving), happening.verbs
    right = what_leaves(happening)
    missing, surplus = sorted(key - picked), sorted(picked - key)
    if not missing and not surplus:
        return Judgement(True, f"Right. {right}")
    if picked & key and not (missing and surplus):
        if missing:
            also = _verb(missing, verbs.one, verbs.many)
            return Judgement(False, f"Almost. {seqs(missing)} {also}, too.")
        still = _verb(surplus, verbs.not_one, verbs.not_many)
        return Judgement(False, f"Almost. {seqs(surplus)} {still}.")
    return Judgement(False, f"Not this time. {right}")


def what_leaves(happening: Happening) -> str:
    """Return which messages leave: `#3 and #4 leave. #5 cannot stay.`"""
    key, lost, verbs = happening.leaving, happening.lost, happening.verbs
    leave = f"{seqs(key)} {_verb(key, verbs.one, verbs.many)}." if key else f"{verbs.nothing}."
    return f"{leave} {seqs(lost)} cannot stay." if lost else leave


def _verb(seqs: Sequence[int], one: str, many: str) -> str:
    return one if len(seqs) == 1 else many


def _judge_limit(moment: Moment, question: Question, limit: int) -> Judgement:
    keep, scene = question.keep, moment.tries[limit]
    if limit == moment.keeping:
        return Judgement(True, f"Right. {limit:,} is the smallest of these that keeps #{keep}.")
    if keep in scene.seen:
        return Judgement(
            False, f"Almost. {limit:,} keeps #{keep}, but {moment.keeping:,} is enough."
        )
    arrived = scene.left_by[keep].seq
    return Judgement(
        False, f"Not this time. With {limit:,}, #{keep} leaves when #{arrived} arrives."
    )


def solution(moment: Moment) -> str:
    """Return the answer of a question in a sentence, for those who were not asked to give one."""
    question = moment.step.question
    assert question is not None
    match question.ask:
        case Ask.LEAVES:
            return what_leaves(moment)
        case Ask.LIMIT:
            return in_unit(moment.keeping, moment.after.policy)
    return right_choice(moment)
