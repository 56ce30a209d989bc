"""Fills the placeholders in the texts of a lesson, and judges answers.

For example, `{leaving}` becomes `#3, #4 and #5`. So the numbers in texts are always those of the
messages that really leave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from chatmemory.explain.wording import in_unit, seqs
from chatmemory.patterns import declared_pattern
from inspector.forms.fields import number_in_text
from inspector.rooms.lessons.lesson import Ask, Choice, InvalidLesson, Question
from inspector.rooms.lessons.rehearsal import Scene
from inspector.rooms.lessons.stage import Happening, LessonMoment

DIGITS = 6  # the most digits of a number in an address, which comes from outside
NOTHING = "none"  # what the button “Nothing leaves” sends
_FACT = declared_pattern(r"\{(\w+)(?::(\w+))?\}")
_BOLD = declared_pattern(r"\*\*(.+?)\*\*")
_MESSAGE = declared_pattern(r"(?<![\w&/])#(\d+)")
_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)

Fact = Callable[[LessonMoment, Scene], str]

FACTS: dict[str, Fact] = {
    "limit": lambda moment, scene: f"{scene.policy.limit:,}",
    "unit": lambda moment, scene: scene.policy.unit,
    "overhead": lambda moment, scene: f"{scene.policy.overhead:,}",
    "load": lambda moment, scene: f"{scene.window.load or 0:,}",
    "free": lambda moment, scene: f"{scene.policy.limit - (scene.window.load or 0):,}",
    "held": lambda moment, scene: number_word(len(scene.in_memory)),
    "hidden": lambda moment, scene: number_word(len(scene.window.over_limit)),
    "said": lambda moment, scene: number_word(len(scene.history)),
    "forgotten": lambda moment, scene: number_word(
        sum(line.seq not in scene.in_memory for line in scene.history)
    ),
    "in_memory": lambda moment, scene: _listed([row.seq for row in scene.window.rows]),
    "arriving": lambda moment, scene: _listed([line.seq for line in moment.arriving]),
    "leaving": lambda moment, scene: _listed(moment.leaving),
    "left": lambda moment, scene: number_word(len(moment.leaving)),
    "needed": lambda moment, scene: f"{moment.needed:,}",
    "over": lambda moment, scene: f"{moment.needed - scene.policy.limit:,}",
    "becomes": lambda moment, scene: f"{moment.after.policy.limit:,}",
    "summary": lambda moment, scene: moment.step.outcome.summary,
    "append_terms": lambda moment, scene: f"{moment.step.outcome.append_terms:,}",
    "terms": lambda moment, scene: _anded(moment.summary.terms if moment.summary else ()),
    "lost": lambda moment, scene: _anded(moment.missed),
    "keeps": lambda moment, scene: f"{moment.keeping:,}",
    "openai": lambda moment, scene: _verdict(scene, "OpenAI"),
    "anthropic": lambda moment, scene: _verdict(scene, "Anthropic"),
}


def number_word(number: int) -> str:
    """Return a number up to twelve as a word, such as `six`; a larger number in digits."""
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def filled(text: str, moment: LessonMoment, scene: Scene) -> str:
    """Return a text with its placeholders replaced, such as `{leaving}` by `#3 and #4`. Raises
    LookupError for an unknown placeholder.

    Values of memory, such as `{load}`, are those of `scene`. Values of the whole step, such as
    `{leaving}`, are those of `moment`.
    """

    def fact(found: re.Match[str]) -> str:
        name, argument = found[1], found[2]
        if name == "tokens" and argument:
            return f"{_tokens(moment.after, argument):,}"
        if name not in FACTS or argument:
            raise LookupError(
                f"the placeholder {found[0]} is unknown: use one of {', '.join(sorted(FACTS))}, "
                "or tokens:3 for the tokens of message #3"
            )
        return FACTS[name](moment, scene)

    return _FACT.sub(fact, text)


def choice_text(choice: Choice, moment: LessonMoment) -> str:
    """Return the text of a choice. Its placeholder `{value}` becomes the value of the claim, such
    as `7741`.
    """
    value = choice.claim[1]
    words = number_word(value) if isinstance(value, int) else str(value)
    return filled(choice.text.replace("{value}", words), moment, moment.before)


def marked_up(text: str, is_linked: bool = True) -> SafeString:
    """Return a text as HTML: `**bold**` becomes bold, and with `is_linked`, #3 becomes a link to
    message 3.
    """
    html = _BOLD.sub(r"<b>\1</b>", escape(text))
    if is_linked:
        html = _MESSAGE.sub(r'<a href="#m\1">#\1</a>', html)
    return mark_safe(html)  # noqa: S308


def check_moment_texts(moment: LessonMoment) -> None:
    """Raise InvalidLesson if a text of a step has an unknown placeholder, or the number of a
    message that does not exist.
    """
    for inner, text, scene in _texts(moment):
        path = ("step", moment.number - 1, *inner)
        try:
            words = filled(text, moment, scene)
        except LookupError as error:
            raise InvalidLesson(path, str(error)) from error
        for seq in _MESSAGE.findall(words):
            if not moment.after.has(int(seq)):
                raise InvalidLesson(
                    path,
                    f"message #{seq} has not been said at this step: name a message that has been "
                    "said",
                )


def _texts(moment: LessonMoment) -> Iterator[tuple[tuple[str | int, ...], str, Scene]]:
    """Yield the texts of a step: the path of the field, the text, and the scene that the text is
    about.
    """
    question = moment.question
    yield ("text",), moment.step.text, moment.before
    yield ("question",), question.text, moment.before
    yield ("hint",), question.hint, moment.before
    yield ("why",), question.why, moment.after
    for i, choice in enumerate(question.choices):
        yield ("choice", i, "text"), choice.text.replace("{value}", ""), moment.before
        yield ("choice", i, "why"), choice.why, moment.after


def _tokens(scene: Scene, seq: str) -> int:
    for line in scene.lines:
        if str(line.seq) == seq:
            return line.tokens
    raise LookupError(
        f"message #{seq} has not been said at this step: name a message that has been said"
    )


def _verdict(scene: Scene, provider: str) -> str:
    found = next(each for each in scene.verdicts() if each.provider == provider)
    return found.answer


def _listed(numbers: Sequence[int]) -> str:
    return seqs(numbers) if numbers else "none"


def _anded(terms: Sequence[str]) -> str:
    *most, last = terms or ("none",)
    return f"{', '.join(most)} and {last}" if most else last


# Answers


@dataclass(frozen=True)
class Answer:
    """The answer of a learner to the question of a step.

    - `picked`: the numbers of the messages that the learner picked, if the question asks which
      messages leave.
    - `value`: for a question about a limit, the limit that the learner chose. For a question with
      choices, the number of the learner's choice, from 1.
    """

    picked: frozenset[int] = frozenset()
    value: int = 0

    @classmethod
    def of(cls, parameters: QueryDict, question: Question) -> Answer | None:
        """Read the answer from the parameters of a URL; None if there is no valid answer."""
        if question.ask is Ask.LEAVES:
            picked = picked_in(parameters)
            return None if picked is None else cls(picked=picked)
        value = number_in_text(parameters.get("answer", ""), DIGITS) or 0
        return cls(value=value) if value in question.answers else None


def picked_in(parameters: QueryDict) -> frozenset[int] | None:
    """Return the numbers of the messages that the learner picked. Empty if the learner answered
    “Nothing leaves”.

    Return None if there is no answer: the form was not sent, or was sent without picked messages.
    """
    if parameters.get("check") == NOTHING:
        return frozenset()
    picked = frozenset(number_in_text(text, DIGITS) or 0 for text in parameters.getlist("leaves"))
    return picked if picked and "check" in parameters else None


def number_in(parameters: QueryDict, name: str, most: int) -> int | None:
    """Return the number in a URL parameter, or `most` if the number is greater. Return None if the
    parameter is missing, is not a number, or has more than 6 digits.
    """
    number = number_in_text(parameters.get(name, ""), DIGITS)
    return None if number is None else min(number, most)


@dataclass(frozen=True)
class Judgement:
    """Whether an answer is correct, and the text to show: a `headline`, and an explanation `why`,
    which can be empty.
    """

    is_right: bool
    headline: str
    why: str = ""


def judge(moment: LessonMoment, answer: Answer) -> Judgement:
    """Judge the answer to the question of a step."""
    match moment.question.ask:
        case Ask.LEAVES:
            return judge_picks(moment, answer.picked)
        case Ask.LIMIT:
            return _judge_limit(moment, answer.value)
    choice = moment.question.choices[answer.value - 1]
    if moment.holds(choice):
        return Judgement(True, "Right.", choice.why)
    return Judgement(False, f"Not this time. The answer is: {right_choice(moment)}", choice.why)


def right_choice(moment: LessonMoment) -> str:
    """Return the text of the correct choice."""
    choices = (choice for choice in moment.question.choices if moment.holds(choice))
    return choice_text(next(choices), moment)


def judge_picks(happening: Happening, picked: frozenset[int]) -> Judgement:
    """Judge the answer to the question “Which messages leave?”. The answer is correct if `picked`
    has exactly the numbers in `happening.leaving`.
    """
    key, verbs = frozenset(happening.leaving), happening.verbs
    right = what_leaves(happening)
    missing, surplus = sorted(key - picked), sorted(picked - key)
    if not missing and not surplus:
        return Judgement(True, f"Right. {right}")
    if picked & key and not (missing and surplus):
        if missing:
            also = verbs.one if len(missing) == 1 else verbs.many
            return Judgement(False, f"Almost. {seqs(missing)} {also}, too.")
        still = verbs.not_one if len(surplus) == 1 else verbs.not_many
        return Judgement(False, f"Almost. {seqs(surplus)} {still}.")
    return Judgement(False, f"Not this time. {right}")


def what_leaves(happening: Happening) -> str:
    """Say which messages leave memory, such as `#3 and #4 leave. #5 cannot stay.` Here message 5
    leaves as soon as it arrives.
    """
    key, lost, verbs = happening.leaving, happening.lost, happening.verbs
    verb = verbs.one if len(key) == 1 else verbs.many
    leave = f"{seqs(key)} {verb}." if key else f"{verbs.nothing}."
    return f"{leave} {seqs(lost)} cannot stay." if lost else leave


def _judge_limit(moment: LessonMoment, limit: int) -> Judgement:
    fact, keep, scene = moment.question.fact, moment.question.keep, moment.tries[limit]
    if fact:
        what, is_kept = fact, limit > moment.keeping
        right = f"would have kept {fact}, and no smaller limit would."
        lost = f"has left before #{moment.arriving[0].seq}."
    else:
        what, is_kept = f"#{keep}", keep in scene.in_memory
        right = f"is the smallest of these limits that keeps #{keep}."
        lost = "" if is_kept else f"leaves when #{scene.left_by[keep].seq} arrives."
    if limit == moment.keeping:
        return Judgement(True, f"Right. {limit:,} {right}")
    if is_kept:
        enough = f"{moment.keeping:,} is enough."
        return Judgement(False, f"Almost. {limit:,} keeps {what}, but {enough}")
    return Judgement(False, f"Not this time. With {limit:,}, {what} {lost}")


def solution(moment: LessonMoment) -> str:
    """Return the correct answer as a sentence, for readers who do not answer; "" for a step without
    a question.
    """
    match moment.question.ask:
        case None:
            return ""
        case Ask.LEAVES:
            return what_leaves(moment)
        case Ask.LIMIT:
            return in_unit(moment.keeping, moment.after.policy)
    return right_choice(moment)
