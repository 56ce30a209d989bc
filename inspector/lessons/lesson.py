"""A lesson as its file has it: texts, a script of messages, a policy, and questions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chatmemory import ChatMessage, Policy

# A claim of a choice: the field that makes it, and its value.
Claim = tuple[str, str | int | tuple[str, ...]]


class Ask(StrEnum):
    """What a step asks for before it tells."""

    LEAVES = "leaves"  # click the messages that leave
    CHOOSE = "choose"  # choose one answer
    LIMIT = "limit"  # set the smallest limit that keeps a message


@dataclass(frozen=True)
class Choice:
    """An answer to choose. It is right if its claim is true of the memory after the step."""

    text: str
    claim: Claim
    why: str = ""


@dataclass(frozen=True)
class Question:
    """A question about what happens next: `adds` messages arrive, then the limit is `becomes`.

    `why` explains the answer. `choices` are those of a CHOOSE; a LIMIT asks which of `limits` is
    the smallest that keeps the message `keep`.
    """

    ask: Ask
    text: str
    why: str
    hint: str = ""
    adds: int = 0
    becomes: int | None = None
    choices: tuple[Choice, ...] = ()
    keep: int = 0
    limits: tuple[int, ...] = ()


@dataclass(frozen=True)
class LessonStep:
    """A step tells a text and may ask a question.

    Before it, the limit becomes `limit`, and the script goes on until `said` messages are said;
    None leaves them as they are.
    """

    text: str
    said: int | None = None
    limit: int | None = None
    question: Question | None = None


@dataclass(frozen=True)
class Practice:
    """A link to the same thing in real life: a page, and what it shows."""

    text: str
    page: str
    memory_id: str = ""
    query: str = ""


@dataclass(frozen=True)
class Lesson:
    """A lesson. `slug` is the name of its file, and its address; `source` is that file's path.

    `messages` are those of the `script`.
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
    source: str
