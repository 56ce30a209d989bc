"""Reads lessons from TOML files and checks each field. Errors name the line and the field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import PurePath

from chatmemory import ChatMemoryError, ChatMessage, Policy, policy_from_dict
from chatmemory.formats.script import read_script
from chatmemory.messages.json_values import JsonList, JsonMap, JsonValue
from chatmemory.patterns import declared_pattern

MESSAGES_MAX = 60
STEPS_MAX = 12
OFFERS_MAX = 8
BYTES_MAX = 100_000

# The fields of tables.
COMPACTION = ("summary", "keep_last", "append_terms")
LESSON = ("title", "lead", "script", "policy", "step", "remember", "practice")
STEP = ("text", "said", "limit", "recovers")
QUESTION = ("ask", "question", "hint", "why", *COMPACTION, "adds", "becomes")
OF_ASK = {"leaves": (), "choose": ("choice",), "limit": ("keep", "fact", "limits")}
PRACTICE = ("text", "page", "memory_id", "query")
PAGES_OF_ONE = ("conversation", "simulate", "settings", "compare", "compact")
PAGES = (*PAGES_OF_ONE, "lab", "playground")
# The claims that a choice can make, by the type of their values.
CLAIMS = {
    "remembers": str,
    "forgets": str,
    "loses": str,
    "held": int,
    "hidden": int,
    "leaving": int,
    "refused_by": tuple,
}

Path = tuple[str | int, ...]
# A claim of a choice: the field that makes it, and its value.
Claim = tuple[str, str | int | tuple[str, ...]]

_LINE = declared_pattern(r"at line (\d+)")
_LONG_TEXT = declared_pattern(r"(\"\"\"|''').*?\1", re.DOTALL)


class Ask(StrEnum):
    """The kinds of questions that a step can ask. LEAVES: which messages leave? CHOOSE: which of
    the choices is right? LIMIT: which is the smallest limit that keeps a message or a fact?
    """

    LEAVES = "leaves"  # click the messages that leave
    CHOOSE = "choose"  # choose one answer
    LIMIT = "limit"  # set the smallest limit that keeps a message or a fact


@dataclass(frozen=True)
class Choice:
    """An answer to choose from, such as "Memory still has the order number". `why` comments on the
    answer after somebody chose it.

    `claim` is the same statement in a form that code can check, such as ("remembers", "7741"). The
    answer is correct if the claim is true after the step.
    """

    text: str
    claim: Claim
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question of a step. `ask` is the kind of question; None for a step that only has a text.
    `text` is the question itself, `hint` helps learners to answer, and `why` explains the result
    after the answer.

    - `Ask.CHOOSE`: the learner chooses one of the `choices`.
    - `Ask.LIMIT`: the learner chooses the smallest of the `limits` that keeps something: the
      message with the number `keep`, or the `fact` until it is needed again.
    """

    ask: Ask | None = None
    text: str = ""
    hint: str = ""
    why: str = ""
    choices: tuple[Choice, ...] = ()
    keep: int = 0
    fact: str = ""
    limits: tuple[int, ...] = ()

    @property
    def answers(self) -> Sequence[int]:
        """The possible answers: the limits, or the numbers of the choices, counted from 1. Empty
        for a question without limits and choices.
        """
        return self.limits or range(1, len(self.choices) + 1)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happens in a step after the answer, in this order:

    - A `summary` replaces messages in memory. At least the last `keep_last` messages and a leading
      system message stay.
    - Up to `append_terms` exact terms that the summary would lose are appended to the summary. If
      the step has no `summary`, the lesson goes back to its last summary and makes that summary
      again with these terms.
    - The next `adds` messages arrive.
    - The limit becomes `becomes`, unless `becomes` is None.
    """

    summary: str = ""
    keep_last: int = 0
    append_terms: int = 0
    adds: int = 0
    becomes: int | None = None


@dataclass(frozen=True, kw_only=True)
class LessonStep:
    """A step of a lesson: a text, and possibly a question about what happens next.

    Before the question, the limit becomes `limit`, and messages are added until there are `said`
    messages. If `said` is None, no messages are added. If `limit` is None, the limit stays as it
    is.

    With `recovers`, interrupted tool calls are left out of memory from this step on. If a step with
    `recovers` has no `limit`, the limit of the lesson's policy applies again.
    """

    text: str
    said: int | None
    limit: int | None
    recovers: bool = False
    question: Question = Question()
    outcome: Outcome = Outcome()


@dataclass(frozen=True)
class Practice:
    """A link from a lesson to a page of the inspector on the same topic.

    - `text`: the words of the link.
    - `page`: the name of the page, such as `compare`.
    - `memory_id`: the conversation of the page; "" for a page without a conversation.
    - `query`: the URL's query string, such as `at=43`, or "".
    """

    text: str
    page: str
    memory_id: str = ""
    query: str = ""


@dataclass(frozen=True)
class Lesson:
    """A lesson. `slug` is its name in the URL and in its file name.

    `lead` is the introduction. `remember` is the sentence at the end that learners should remember.
    `script` is the chat as text, and `messages` are the messages read from it.
    """

    slug: str
    title: str
    lead: str
    script: str
    messages: tuple[ChatMessage, ...]
    policy: Policy
    steps: tuple[LessonStep, ...]
    remember: str
    practices: tuple[Practice, ...]

    @property
    def opening(self) -> str:
        """The first sentence of the lesson's introduction, for lists of lessons."""
        first, end, _ = self.lead.partition(". ")
        return first + end.rstrip()


class InvalidLesson(Exception):
    """Raised for a file that is no valid lesson. `path` leads to the faulty value. In a path,
    tables are counted from 0: ("step", 1, "why") is the field `why` of the second step.

    For a file that is too large, or no valid TOML, `path` is empty. Then `line` is the number of
    the faulty line, or 1.
    """

    def __init__(self, path: Path, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.path = path
        self.why = why
        self.line = line

    @property
    def field(self) -> str:
        """The path of the faulty value in words: ("step", 1, "why") is `step 2, why`."""
        words = "".join(f" {p + 1}" if isinstance(p, int) else f", {p}" for p in self.path)
        return words.removeprefix(", ")


def read_lesson(content: bytes, source: str) -> Lesson:
    """Return the lesson in the bytes of a TOML file. `source` is the name of the file, from which
    the slug is made. Raises InvalidLesson.
    """
    if len(content) > BYTES_MAX:
        raise InvalidLesson(
            (),
            f"the file has {len(content):,} bytes, and a lesson can have at most {BYTES_MAX:,}",
            line=1,
        )
    try:
        values = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidLesson(
            (), "this line is not valid UTF-8: save the file as UTF-8", line
        ) from error
    except (ValueError, RecursionError) as error:  # tomllib raises them for numbers and depth, too
        place = _LINE.search(str(error))
        raise InvalidLesson(
            (), f"the file is not valid TOML: {error}", int(place[1]) if place else 1
        ) from error
    return _lesson(Table(values), source)


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
        practices=tuple(map(_practice, table.tables("practice"))) if "practice" in table else (),
    )


def _slug(source: str) -> str:
    """Return the slug for a file's name: `3-token-window.toml` has the slug `token-window`."""
    number, dash, name = PurePath(source).stem.partition("-")
    return name if dash and number.isdigit() else PurePath(source).stem


def _messages(table: Table) -> tuple[ChatMessage, ...]:
    try:
        messages = tuple(read_script(table.text("script")))
    except ChatMemoryError as error:
        raise table.invalid("script", str(error)) from error
    if not 1 <= len(messages) <= MESSAGES_MAX:
        raise table.invalid(
            "script", f"must have 1 to {MESSAGES_MAX} messages, but has {len(messages):,}"
        )
    return messages


def _policy(table: Table) -> Policy:
    try:
        return policy_from_dict(table.value("policy", dict, "a table, [policy]"))
    except ChatMemoryError as error:
        raise table.invalid("policy", str(error)) from error


def _step(table: Table) -> LessonStep:
    said, limit = table.optional_number("said"), table.optional_number("limit")
    recovers: bool = table.value("recovers", bool, "true or false", False)
    if "ask" not in table:
        if "question" in table:
            raise table.invalid(
                "question", f"needs the field ask in the same step: {', '.join(Ask)}"
            )
        table.only(STEP)
        return LessonStep(text=table.line("text"), said=said, limit=limit, recovers=recovers)
    ask = Ask(table.one_of("ask", list(Ask)))
    table.only((*STEP, *QUESTION, *OF_ASK[ask]))
    return LessonStep(
        text=table.line("text", default=""),
        said=said,
        limit=limit,
        recovers=recovers,
        question=_question(table, ask),
        outcome=_outcome(table, ask),
    )


def _question(table: Table, ask: Ask) -> Question:
    return Question(
        ask=ask,
        text=table.line("question"),
        why=table.line("why"),
        hint=table.line("hint", default=""),
        choices=tuple(map(_choice, table.tables("choice"))) if ask is Ask.CHOOSE else (),
        keep=table.number("keep") if ask is Ask.LIMIT and "fact" not in table else 0,
        fact=table.text("fact") if "fact" in table else "",
        limits=table.limits("limits") if ask is Ask.LIMIT else (),
    )


def _outcome(table: Table, ask: Ask) -> Outcome:
    """Return what happens after the answer. If the file does not say so, the next message arrives
    in a step that asks which messages leave.
    """
    becomes, has_summary = table.optional_number("becomes"), "summary" in table
    is_an_add = ask is Ask.LEAVES and becomes is None and not has_summary
    return Outcome(
        summary=table.line("summary") if has_summary else "",
        keep_last=table.number("keep_last") if has_summary else 0,
        append_terms=table.number("append_terms", default=0),
        adds=table.number("adds", default=1 if is_an_add else 0, least=0),
        becomes=becomes,
    )


def _choice(table: Table) -> Choice:
    table.only(("text", "why", *CLAIMS))
    made = [name for name in CLAIMS if name in table]
    if len(made) != 1:
        raise table.invalid(
            "text",
            f"a choice must have exactly one of the fields {', '.join(CLAIMS)}, but has "
            f"{len(made)}",
        )
    return Choice(table.line("text"), _claim(table, made[0]), table.line("why", default=""))


def _claim(table: Table, name: str) -> Claim:
    if CLAIMS[name] is int:
        return name, table.number(name, least=0)
    if CLAIMS[name] is str:
        return name, table.text(name)
    return name, tuple(table.list_of(name, str, "texts"))


def _practice(table: Table) -> Practice:
    table.only(PRACTICE)
    page = table.one_of("page", PAGES)
    return Practice(
        table.line("text"),
        page,
        memory_id=table.text("memory_id") if page in PAGES_OF_ONE else "",
        query=table.text("query", default=""),
    )


class Table:
    """A table of a TOML file. The methods return or check a field, and raise InvalidLesson."""

    def __init__(self, values: JsonMap, path: Path = ()) -> None:
        self._values = values
        self._path = path

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def only(self, names: Collection[str]) -> None:
        """Raise InvalidLesson if the table has a field whose name is not in `names`."""
        for name in self._values:
            if name not in names:
                raise self.invalid(name, f"this field does not exist here: use {_listed(names)}")

    def value(self, name: str, type_: type, words: str, default: JsonValue = None) -> JsonValue:
        value = self._values.get(name, default)
        if value is None:
            raise self.invalid(name, "is missing")
        if type(value) is not type_:
            raise self.invalid(name, f"must be {words}, but is {value!r}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return the text of a field, unchanged. Without a `default`, the field must be present and
        not blank.
        """
        value: str = self.value(name, str, "a text", default)
        if default is None and not value.strip():
            raise self.invalid(name, "is empty")
        return value

    def line(self, name: str, default: str | None = None) -> str:
        """Return the text of a field on one line: line breaks become spaces. Without a `default`,
        the field must be present and not blank.
        """
        return " ".join(self.text(name, default).split())

    def one_of(self, name: str, names: Collection[str]) -> str:
        value = self.text(name)
        if value not in names:
            raise self.invalid(name, f"must be {_listed(names)}, but is {value!r}")
        return value

    def number(self, name: str, default: int | None = None, least: int = 1) -> int:
        words = f"a whole number from {least}"
        value: int = self.value(name, int, words, default)
        if value < least and name in self:
            raise self.invalid(name, f"must be {words}, but is {value!r}")
        return value

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if name in self else None

    def limits(self, name: str) -> tuple[int, ...]:
        values = self.list_of(name, int, "whole numbers from 1")
        if not values or min(values) < 1:
            raise self.invalid(name, "must be a list of at least one whole number from 1")
        return tuple(sorted(values))

    def tables(self, name: str, most: int = OFFERS_MAX) -> list[Table]:
        values = self.list_of(name, dict, f"tables, [[{name}]]", most)
        if not values:
            raise self.invalid(name, f"must be a list of at least one table, written as [[{name}]]")
        return [Table(value, (*self._path, name, i)) for i, value in enumerate(values)]

    def list_of(self, name: str, type_: type, words: str, most: int = OFFERS_MAX) -> JsonList:
        values: JsonList = self.value(name, list, f"a list of {words}")
        if any(type(value) is not type_ for value in values):
            raise self.invalid(name, f"must be a list of {words}")
        if len(values) > most:
            raise self.invalid(name, f"can have at most {most} entries, but has {len(values)}")
        return values

    def invalid(self, name: str, why: str) -> InvalidLesson:
        return InvalidLesson((*self._path, name), why)


def _listed(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def lesson_line(path: Path, text: str) -> int:
    """Return the line number of a field in the `text` of a lesson's file. `path` leads to the
    field: ("step", 1, "why") is the field `why` of the second step. If the field is missing, return
    the line where its table begins.
    """
    short = _LONG_TEXT.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines = [line.partition("#")[0].replace(" ", "") for line in short.splitlines()]
    place, table = -1, ""
    for part in path:
        if isinstance(part, int):
            found = _headers(lines, table, place)[part:]
        else:
            table = f"{table}.{part}" if table else part
            inner = takewhile(lambda n: not lines[n].startswith("["), range(place + 1, len(lines)))
            fields = [n for n in inner if lines[n].partition("=")[0] == part]
            found = fields or _headers(lines, table, place + 1)
        if not found:
            break
        place = found[0]
    return max(0, place) + 1


def _headers(lines: Sequence[str], table: str, first: int) -> list[int]:
    """Return the line numbers of the headers of a table, from `first` on."""
    headers = (f"[{table}]", f"[[{table}]]")
    return [n for n in range(first, len(lines)) if lines[n] in headers]
