"""Screens for a projector: one idea on each, and a pause between a question and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.lessons.board import Board
from inspector.lessons.catalogue import Staged
from inspector.lessons.page import Offer, Told


class Kind(StrEnum):
    TITLE = "title"
    TEXT = "text"
    QUESTION = "question"
    ANSWER = "answer"
    WHY = "why"
    END = "end"


@dataclass(frozen=True)
class Screen:
    """A screen. `told` is the step that it is of; None for the first and the last one."""

    kind: Kind
    told: Told | None = None

    @property
    def is_revealed(self) -> bool:
        return self.kind in (Kind.ANSWER, Kind.WHY)

    @property
    def board(self) -> Board | None:
        return self.told.board(self.is_revealed) if self.told else None

    @property
    def offers(self) -> list[Offer]:
        return list(self.told.offers(is_revealed=self.is_revealed)) if self.told else []


def screens(staged: Staged) -> list[Screen]:
    """Return the screens of a lesson, in order."""
    shown = [Screen(Kind.TITLE)]
    for moment in staged.moments:
        told = Told(moment, is_plain=True)
        if moment.step.text:
            shown.append(Screen(Kind.TEXT, told))
        if moment.step.question:
            shown += [Screen(kind, told) for kind in (Kind.QUESTION, Kind.ANSWER, Kind.WHY)]
    return [*shown, Screen(Kind.END)]
