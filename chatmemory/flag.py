"""Defines a flag: a reason why a conversation needs attention. Rooms (plug-in features) add flags;
`flags` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Q

from chatmemory.messages.json_values import JsonDict


class Turns(StrEnum):
    """The turns by which the number of a flag's cases is divided, such as in "4 cases per 100
    turns".

    These are all turns, the turns after an eviction, or the turns after a compaction.
    """

    ALL = "all"
    EVICTED = "evicted"
    COMPACTED = "compacted"


class Case(NamedTuple):
    """A case of a flag that began with a step of the ledger. `detail` says more, such as which
    rules were broken.
    """

    step: int
    detail: str = ""


@dataclass(frozen=True)
class PastCases:
    """Finds the cases of a flag in the past, including cases that were repaired meanwhile.

    - `title` is the title of the cases on pages.
    - `find` returns all cases of a conversation up to the end of a `reading.passage.Passage`.
      `find` also gets a dictionary in which it may keep JSON values, and gets this dictionary again
      with the next passage.
    - `version` returns a text that changes when `find` would return other cases.
    - `turns` are the turns by which pages divide the number of cases.
    - `counting` returns a function that tells whether a case counts today. This function gets the
      conversation's id and the case's detail.
    """

    title: str
    find: Callable[[Any, JsonDict], Iterable[Case]]  # a Passage, which a layer above defines
    version: Callable[[], str]
    turns: Turns = Turns.ALL
    counting: Callable[[], Callable[[str, str], bool]] | None = None


@dataclass(frozen=True)
class Line:
    """A line on the overview about the conversations with one flag.

    - `title` is the title of the line; if it is empty, the flag's words are used.
    - `verb` is the text of a link, or a function that returns the text. The link leads to the
      inspector's page `route`, which lists the conversations with the flag. If only one
      conversation has the flag and `route_of_one` is given, the link leads to this page of the
      conversation.
    - With `names_ids`, the link names the conversations by their ids if there are at most 50, and
      not by their flag.
    - `newest` gets the id of a conversation, and returns a sentence about the latest case in this
      conversation.
    - `began_at` is the column with the time at which a case began, in microseconds since 1970, and
      `began_step` the column with the step. If both are empty, the beginning is not known.
    """

    verb: str | Callable[[], str]
    route: str
    title: str = ""
    route_of_one: str = ""
    names_ids: bool = False
    newest: Callable[[str], str] | None = None
    began_at: str = ""
    began_step: str | Callable[[], str] = ""

    @property
    def step_column(self) -> str:
        """The column with the number of the step at which a case began, or ""."""
        return self.began_step() if callable(self.began_step) else self.began_step


@dataclass(frozen=True)
class Alarm:
    """How much a flag alarms.

    - `is_any` makes the conversations of the flag count for the flag named `any`.
    - The flag is not red if `is_fault` is False, such as for a high price.
    - While `counts` returns False, the flag does not count yet, and is not red, either.
    """

    is_any: bool = True
    is_fault: bool = True
    counts: Callable[[], bool] | None = None


@dataclass(frozen=True)
class FlagCases:
    """What else is known about the cases of a flag.

    - `newest_at` is a column in microseconds by which lists can be sorted.
    - `past` finds cases of the past, so that pages can say since when there are cases, and whether
      a change helped.
    - `parts` returns a flag for each part of the cases, such as for the cases of one rule. On the
      overview, the lines of the parts replace the flag's own line. The name of a part begins with
      the flag's name and a period. Lists do not offer the parts.
    """

    newest_at: str = ""
    past: PastCases | None = None
    parts: Callable[[], Sequence[Flag]] | None = None


class Shown(StrEnum):
    """Where a flag is shown besides its line on the overview: in the rows of the overview, or below
    the list of the doctor's page, with the number of conversations that have the flag.
    """

    IN_ROWS = "in rows"
    BELOW_DOCTOR = "below the doctor's list"


@dataclass(frozen=True)
class Flag:
    """A reason why a conversation needs attention, in `words`. `condition` selects the
    conversations with the flag, or is a function that returns the condition.

    - Flags are sorted by `place`. `icon` is the name of the flag's icon.
    - `line` is the flag's line on the overview, or None. `shown` says where else the flag is shown.
    - `former` are the flag's names in the previous release, which are still accepted.
    """

    name: str
    words: str
    condition: Q | Callable[[], Q]
    place: int = 0
    icon: str = ""
    line: Line | None = None
    shown: tuple[Shown, ...] = ()
    alarm: Alarm = Alarm()
    cases: FlagCases = FlagCases()
    former: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        """The title of the flag's line on the overview. It may differ from the words in a row."""
        return (self.line and self.line.title) or self.words

    @property
    def counts(self) -> bool:
        """Whether the flag counts already: some flags count only when the providers in use are
        chosen.
        """
        return self.alarm.counts is None or self.alarm.counts()

    @property
    def is_red(self) -> bool:
        return self.alarm.is_fault and self.counts

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition
