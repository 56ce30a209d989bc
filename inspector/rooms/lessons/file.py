"""Writes a lesson as one HTML file, which runs from disk without a server.

For each step, the file has a page before the answer and a page for each possible answer. JavaScript
in the file shows one page at a time.

For a question in which learners pick messages, one page serves for all answers. The JavaScript
marks wrong picks and missed messages on this page.

In a browser without JavaScript, the file shows all steps with their answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe

from inspector.rooms.lessons.catalogue import Staged
from inspector.rooms.lessons.lesson import Ask
from inspector.rooms.lessons.links import IN_FILE
from inspector.rooms.lessons.page import LessonPage
from inspector.rooms.lessons.stage import LessonMoment
from inspector.rooms.lessons.words import Answer
from inspector.shell.one_file import inlined, static_text

STYLES = (
    *(f"inspector/css/{name}.css" for name in ("tokens", "base", "components", "screens")),
    *("rooms/lessons/lessons.css", "rooms/lessons/file.css"),
)
SCRIPT = "rooms/lessons/file.js"
SPRITE = "inspector/sprite.svg"


@dataclass(frozen=True)
class FilePage:
    """A page in the HTML file of a lesson: a step before or after an answer. The `name` for step 2
    is:

    - `step-2` before the answer;
    - `step-2-3` after the answer 3 (the number of a choice, or a limit);
    - `step-2-picked` after the learner picked messages.

    On a page such as `step-2-picked`, `leaving` has the numbers of the messages that leave, such as
    "3 4". Otherwise, `leaving` is None.
    """

    name: str
    html: SafeString
    leaving: str | None = None


def lesson_file(staged: Staged) -> str:
    """Return the HTML file of a lesson."""
    context = {
        **inlined(STYLES, SCRIPT),
        "lesson": staged.lesson,
        "steps": LessonPage(staged, len(staged.moments)),
        "pages": list(_pages(staged)),
        "sprite": mark_safe(static_text(SPRITE)),  # noqa: S308  (our own file)
    }
    return _with_own_icons(render_to_string("rooms/lessons/file.html", context))


def _pages(staged: Staged) -> Iterator[FilePage]:
    for moment in staged.moments:
        name = f"step-{moment.number}"
        yield FilePage(name, _drawn(LessonPage(staged, moment.number)))
        for key, answer in _answers(moment):
            page, leaving = LessonPage(staged, moment.number, answer), None
            if moment.question.ask is Ask.LEAVES:
                leaving = " ".join(map(str, moment.leaving))
            yield FilePage(f"{name}-{key}", _drawn(page), leaving)


def _answers(moment: LessonMoment) -> Iterator[tuple[str, Answer]]:
    """Yield each answer that gets its own page, after the last part of the page's name."""
    question = moment.question
    if question.ask is Ask.LEAVES:
        yield "picked", Answer(picked=frozenset(moment.leaving))
    elif question.ask:
        for value in question.answers:
            yield str(value), Answer(value=value)


def _drawn(page: LessonPage) -> SafeString:
    return render_to_string("rooms/lessons/_file_page.html", {"page": page, "links": IN_FILE})


def _with_own_icons(html: str) -> str:
    """Let icons refer to the sprite within the file."""
    return html.replace(f"{static(SPRITE)}#", "#")
