"""Texts in place of summaries, because measurements call no model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chatmemory.messages.message import ChatMessage, UserMessage, text_of
from chatmemory.messages.sessions import Session
from chatmemory.patterns import declared_pattern

WORDS = 500  # of a summary that holds nothing
WRITTEN = " ".join(["summary"] * WORDS)  # what a library gets in place of a model's answer
MOST_SIGNS = 4_000  # of a stand-in that has first sentences
_SENTENCE = declared_pattern(r"[^.!?\n]{1,400}[.!?]?")


class StandIn(StrEnum):
    """Which text replaces a summary in a measured prompt. Measurements call no model.

    - `nothing`: a text of 500 words without facts.
    - `sentences`: the first sentence of each message that is not sent any more. The text has at
      most 4,000 characters, and leaves out the oldest sentences first. If there are no sentences,
      the text is that of `nothing`.
    - `recorded`: the latest summary that the session has recorded so far. If it has recorded none
      yet, the text is that of `nothing`.

    A framework that asks a model for a summary gets the text of 500 words. In the measured prompt,
    the chosen text then replaces this answer.
    """

    NOTHING = "nothing"
    SENTENCES = "sentences"
    RECORDED = "recorded"


@dataclass(frozen=True)
class Summary:
    """A summary in a prompt: its number in the run, and the framework's words `before` and `after`
    it.
    """

    number: int
    before: str = ""
    after: str = ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, at most 400 characters; "" for a text without words."""
    found = _SENTENCE.search(text.strip())
    return found[0].strip() if found else ""


def sentences_of(messages: Sequence[ChatMessage]) -> str:
    """Return the first sentence of each message, one per line. If all lines together exceed 4,000
    characters, only the latest lines that fit are returned.
    """
    lines: list[str] = []
    size = 0
    for line in filter(None, (first_sentence(text_of(each)) for each in reversed(messages))):
        size += len(line) + 1
        if size > MOST_SIGNS:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


class Summaries:
    """The texts of the summaries in a run. A text is written when its summary is first sent."""

    def __init__(
        self, stand_in: StandIn, messages: Sequence[ChatMessage], session: Session | None = None
    ) -> None:
        self._stand_in, self._messages = stand_in, messages
        self._recorded = _recorded(session)
        self._written: dict[int, str] = {}

    def message(self, summary: Summary, kept: Iterable[int], at: int) -> ChatMessage:
        """Return a summary as the message that is sent. `kept` are the positions of the messages
        that are sent with it, and `at` is the number of messages so far.
        """
        if summary.number not in self._written:
            self._written[summary.number] = self._write(frozenset(kept), at)
        return UserMessage(f"{summary.before}{self._written[summary.number]}{summary.after}")

    def _write(self, kept: frozenset[int], at: int) -> str:
        if self._stand_in is StandIn.SENTENCES:
            gone = (n for n in range(at) if n not in kept)
            return sentences_of([self._messages[n] for n in gone]) or WRITTEN
        if self._stand_in is StandIn.RECORDED:
            return next((text for since, text in reversed(self._recorded) if since <= at), WRITTEN)
        return WRITTEN


def _recorded(session: Session | None) -> list[tuple[int, str]]:
    """Return the summaries of a session, each with the number of messages before it."""
    if session is None:
        return []
    found: list[tuple[int, str]] = []
    number = 0
    for position, message in enumerate(session.messages):
        if position in session.summaries:
            found.append((number, text_of(message)))
        else:
            number += 1
    return found
