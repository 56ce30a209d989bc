"""Reading lesson files: TOML, checked field by field."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import PurePath

from chatmemory import ChatMemoryError, ChatMessage, Policy, policy_from_dict
from chatmemory.formats.script import read_script
from inspector.lessons.lesson import Ask, Choice, Claim, Lesson, Practice, Question, Step
from inspector.lessons.tables import Invalid, Lines, Table, line_of

MESSAGES_MAX = 60
STEPS_MAX = 12
OFFERS_MAX = 8

# The fields of tables.
LESSON = ("title", "lead", "script", "policy", "step", "remember", "practice")
STEP = ("text", "said", "limit")
QUESTION = ("ask", "question", "hint", "why", "adds", "becomes")
OF_ASK = {Ask.LEAVES: (), Ask.CHOOSE: ("choice",), Ask.LIMIT: ("keep", "limits")}
PRACTICE = ("text", "page", "memory_id", "query")
PAGES = ("conversation", "simulate", "settings", "compare", "lab", "playground")
# The claims that a choice can make, by the type of their values.
CLAIMS = {
    "remembers": str,
    "forgets": str,
    "held": int,
    "hidden": int,
    "leaving": int,
    "refused_by": tuple,
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with a lesson file, and where."""

    source: str
    line: int
    field: str
    why: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"{self.source}, line {self.line}: {field}{self.why}"


class UnusableLesson(Exception):
    """A file that is no lesson. `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_lesson(text: str, source: str) -> Lesson:
    """Return the lesson of a file's text. Raises UnusableLesson."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableLesson(Problem(source, line_of(error), "", f"no TOML: {error}")) from error
    try:
        return _lesson(Table(values), source)
    except Invalid as error:
        raise unusable(error, text, source) from error


def unusable(error: Invalid, text: str, source: str) -> UnusableLesson:
    """Return the error of a file with the line on which the field stands."""
    return UnusableLesson(Problem(source, Lines(text).of(error.path), error.field, error.why))


def _lesson(table: Table, source: str) -> Lesson:
    table.only(LESSON)
    steps = table.tables("step", most=STEPS_MAX)
    return Lesson(
        slug=_slug(source),
        title=table.line("title"),
        lead=table.line("lead"),
        script=table.text("script").strip(),
        messages=_messages(table),
        policy=_policy(table),
        steps=tuple(map(_step, steps)),
        remember=table.line("remember"),
        practices=_practices(table) if "practice" in table else (),
        source=source,
    )


def _slug(source: str) -> str:
    """Return a file's name without its ending and the number before it that sorts it."""
    number, dash, name = PurePath(source).stem.partition("-")
    return name if dash and number.isdigit() else PurePath(source).stem


def _messages(table: Table) -> tuple[ChatMessage, ...]:
    try:
        messages = tuple(read_script(table.text("script")))
    except ChatMemoryError as error:
        raise table.invalid("script", str(error)) from error
    if not 1 <= len(messages) <= MESSAGES_MAX:
        raise table.invalid("script", f"must have 1 to {MESSAGES_MAX} messages")
    return messages


def _policy(table: Table) -> Policy:
    try:
        return policy_from_dict(table.values("policy"))
    except ChatMemoryError as error:
        raise table.invalid("policy", str(error)) from error


def _step(table: Table) -> Step:
    said, limit = table.optional_number("said"), table.optional_number("limit")
    if "ask" not in table:
        if "question" in table:
            raise table.invalid("question", f"needs ask beside it: {', '.join(Ask)}")
        table.only(STEP)
        return Step(table.line("text"), said, limit)
    return Step(table.line("text", default=""), said, limit, _question(table))


def _question(table: Table) -> Question:
    ask = Ask(table.one_of("ask", list(Ask)))
    becomes = table.optional_number("becomes")
    table.only((*STEP, *QUESTION, *OF_ASK[ask]))
    is_next_asked = ask is Ask.LEAVES and becomes is None
    return Question(
        ask,
        table.line("question"),
        table.line("why"),
        hint=table.line("hint", default=""),
        adds=table.number("adds", default=1 if is_next_asked else 0, least=0),
        becomes=becomes,
        choices=_choices(table) if ask is Ask.CHOOSE else (),
        keep=table.number("keep") if ask is Ask.LIMIT else 0,
        limits=tuple(sorted(table.numbers("limits", most=OFFERS_MAX))) if ask is Ask.LIMIT else (),
    )


def _choices(table: Table) -> tuple[Choice, ...]:
    return tuple(map(_choice, table.tables("choice", most=OFFERS_MAX)))


def _choice(table: Table) -> Choice:
    table.only(("text", "why", *CLAIMS))
    made = [name for name in CLAIMS if name in table]
    if len(made) != 1:
        raise table.invalid("text", f"a choice makes one claim: {', '.join(CLAIMS)}")
    return Choice(table.line("text"), _claim(table, made[0]), table.line("why", default=""))


def _claim(table: Table, name: str) -> Claim:
    if CLAIMS[name] is int:
        return name, table.number(name, least=0)
    return name, table.texts(name) if CLAIMS[name] is tuple else table.text(name)


def _practices(table: Table) -> tuple[Practice, ...]:
    return tuple(map(_practice, table.tables("practice", most=OFFERS_MAX)))


def _practice(table: Table) -> Practice:
    table.only(PRACTICE)
    page = table.one_of("page", PAGES)
    is_of_one = page in ("conversation", "simulate", "settings", "compare")
    return Practice(
        table.line("text"),
        page,
        memory_id=table.text("memory_id") if is_of_one else "",
        query=table.text("query", default=""),
    )
