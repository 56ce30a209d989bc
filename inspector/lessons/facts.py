"""Facts of the core in the texts of lessons: `{leaving}` becomes `#3, #4 and #5`.

So no text has a number that the core does not agree with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from chatmemory.explain import seqs
from chatmemory.queries import Scene
from inspector.lessons.lesson import Choice, LessonStep
from inspector.lessons.lesson_files import InvalidLesson
from inspector.lessons.stage import Moment

_FACT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_BOLD = re.compile(r"\*\*(.+?)\*\*")
_MESSAGE = re.compile(r"(?<![\w&/])#(\d+)")
_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)

Fact = Callable[[Moment, Scene], str]

FACTS: dict[str, Fact] = {
    "limit": lambda moment, scene: f"{scene.policy.limit:,}",
    "unit": lambda moment, scene: scene.policy.unit,
    "overhead": lambda moment, scene: f"{scene.policy.overhead:,}",
    "load": lambda moment, scene: f"{scene.window.load or 0:,}",
    "free": lambda moment, scene: f"{scene.policy.limit - (scene.window.load or 0):,}",
    "held": lambda moment, scene: in_words(len(scene.seen)),
    "hidden": lambda moment, scene: in_words(len(scene.window.over_limit)),
    "said": lambda moment, scene: in_words(len(scene.said)),
    "forgotten": lambda moment, scene: in_words(len(scene.said) - len(scene.seen)),
    "in_memory": lambda moment, scene: _listed([row.seq for row in scene.window.rows]),
    "arriving": lambda moment, scene: _listed([line.seq for line in moment.arriving]),
    "leaving": lambda moment, scene: _listed(moment.leaving),
    "left": lambda moment, scene: in_words(len(moment.leaving)),
    "needed": lambda moment, scene: f"{moment.needed:,}",
    "over": lambda moment, scene: f"{moment.needed - scene.policy.limit:,}",
    "becomes": lambda moment, scene: f"{moment.after.policy.limit:,}",
    "keeps": lambda moment, scene: f"{moment.keeping:,}",
    "openai": lambda moment, scene: _verdict(scene, "OpenAI"),
    "anthropic": lambda moment, scene: _verdict(scene, "Anthropic"),
}


def in_words(number: int) -> str:
    """Return a small number as a word, as in `six messages`."""
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def filled(text: str, moment: Moment, scene: Scene) -> str:
    """Return a text with its facts. Raises LookupError for one that does not exist."""

    def fact(found: re.Match[str]) -> str:
        name, argument = found[1], found[2]
        if name == "tokens" and argument:
            return f"{_tokens(moment.after, argument):,}"
        if name not in FACTS or argument:
            raise LookupError(f"there is no {found[0]}: use {', '.join(sorted(FACTS))}, tokens:3")
        return FACTS[name](moment, scene)

    return _FACT.sub(fact, text)


def of_choice(choice: Choice, moment: Moment) -> str:
    """Return the text of a choice; `{value}` is what it claims."""
    value = choice.claim[1]
    words = in_words(value) if isinstance(value, int) else str(value)
    return filled(choice.text.replace("{value}", words), moment, moment.before)


def marked_up(text: str, is_linked: bool = True) -> SafeString:
    """Return a text as HTML: **bold**, and #3 as a link to that message, if it `is_linked`."""
    html = _BOLD.sub(r"<b>\1</b>", escape(text))
    if is_linked:
        html = _MESSAGE.sub(r'<a href="#m\1">#\1</a>', html)
    return mark_safe(html)  # noqa: S308


def check(moment: Moment) -> None:
    """Fill every text of a step. Raises InvalidLesson for a fact or message that is not there."""
    for inner, text, scene in _texts(moment):
        path = ("step", moment.number - 1, *inner)
        try:
            words = filled(text, moment, scene)
        except LookupError as error:
            raise InvalidLesson(path, str(error)) from error
        for seq in _MESSAGE.findall(words):
            if int(seq) > len(moment.after.said):
                raise InvalidLesson(path, f"#{seq} is not said at this step")


def _texts(moment: Moment) -> Iterator[tuple[tuple[str | int, ...], str, Scene]]:
    """Yield each text of a step with the scene that it speaks of."""
    step: LessonStep = moment.step
    yield ("text",), step.text, moment.before
    if step.question is None:
        return
    yield ("question",), step.question.text, moment.before
    yield ("hint",), step.question.hint, moment.before
    yield ("why",), step.question.why, moment.after
    for i, choice in enumerate(step.question.choices):
        yield ("choice", i, "text"), choice.text.replace("{value}", ""), moment.before
        yield ("choice", i, "why"), choice.why, moment.after


def _tokens(scene: Scene, seq: str) -> int:
    for line in scene.said:
        if str(line.seq) == seq:
            return line.tokens
    raise LookupError(f"#{seq} is not said at this step")


def _verdict(scene: Scene, provider: str) -> str:
    found = next(each for each in scene.verdicts() if each.provider == provider)
    return found.problem or "Yes."


def _listed(numbers: list[int] | tuple[int, ...]) -> str:
    return seqs(numbers) if numbers else "none"
