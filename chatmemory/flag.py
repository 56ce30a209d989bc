"""Defines a flag: a reason why a conversation needs attention. Rooms add flags, and `flags` lists
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Q

from chatmemory.messages.json_values import JsonDict


class Turns(StrEnum):
    """The turns to which a number of cases is compared, such as in "4 cases per 100 turns".

    These are all turns, the turns after an eviction, or the turns after a compaction.
    """

    ALL = "all"
    EVICTED = "evicted"
    COMPACTED = "compacted"


class Case(NamedTuple):
    """A case of a flag. `step` is the step at which the case began, and `detail` a text about it,
    such as which rules were broken.
    """

    step: int
    detail: str = ""


@dataclass(frozen=True)
class PastCases:
    """Finds the cases of a flag in the past. Cases that were repaired meanwhile are included.

    - `title`: the title of the cases on pages.
    - `find`: returns all cases up to the end of a `reading.passage.Passage`. The second argument is
      a dictionary of JSON values, in which `find` can keep what it needs for the next passage.
    - `version`: returns a text that changes when `find` would return other cases.
    - `turns`: the turns to which pages compare the number of cases.
    - `counting`: returns a function that gets a conversation's id and a case's detail. The function
      returns whether the case still counts. If None, all cases count.
    """

    title: str
    find: Callable[[Any, JsonDict], Iterable[Case]]  # a Passage, which a layer above defines
    version: Callable[[], str]
    turns: Turns = Turns.ALL
    counting: Callable[[], Callable[[str, str], bool]] | None = None


@dataclass(frozen=True)
class Line:
    """A line on the overview about the conversations with one flag.

    - `title`: the title of the line. If empty, the flag's words are used.
    - `verb`: the text of a link, or a function that returns the text.
    - `route`: the page to which the link leads; it lists the conversations with the flag.
    - `route_of_one`: the page of a conversation to which the link leads if only one has the flag.
    - `names_ids`: whether the link's URL lists the ids of the conversations, if there are at most
      50. Otherwise the URL has the name of the flag.
    - `reads_ids`: whether the page can be opened for conversations by id. Then the URL also lists
      up to 50 ids while the overview is filtered, so that the page shows only these.
    - `newest`: returns a sentence about the latest case, for a conversation's id.
    - `began_at`: the column with the time at which a case began, in microseconds since 1970.
    - `began_step`: the column with the step at which a case began, or a function that returns the
      column.
    """

    verb: str | Callable[[], str]
    route: str
    title: str = ""
    route_of_one: str = ""
    names_ids: bool = False
    reads_ids: bool = False
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

    - `is_any`: whether the conversations of this flag also count for the flag named `any`.
    - `is_fault`: whether the flag is red. A high price, for example, is no fault.
    - `counts`: a function that returns whether the flag counts already. While it returns False, the
      flag is not red.
    """

    is_any: bool = True
    is_fault: bool = True
    counts: Callable[[], bool] | None = None


@dataclass(frozen=True)
class FlagCases:
    """What else is known about the cases of a flag.

    - `newest_at`: the column with the time of the newest case, in microseconds, for sorting.
    - `past`: finds cases of the past. Pages then say since when there are cases, and whether a
      change helped.
    - `parts`: returns a flag for each part of the cases, such as for the cases of one rule. On the
      overview, the lines of the parts replace the flag's own line. A part is named after the flag,
      such as "refused.dangling_call".
    """

    newest_at: str = ""
    past: PastCases | None = None
    parts: Callable[[], Sequence[Flag]] | None = None


class Shown(StrEnum):
    """A further place where a flag is shown: in the rows of the overview, or below the list on the
    doctor's page.
    """

    IN_ROWS = "in rows"
    BELOW_DOCTOR = "below the doctor's list"


@dataclass(frozen=True)
class Flag:
    """A reason why a conversation needs attention.

    - `words`: the reason in words.
    - `condition`: the SQL condition that conversations with the flag meet, or a function that
      returns it.
    - `place`: a number by which flags are sorted.
    - `icon`: the name of the flag's icon.
    - `line`: the flag's line on the overview, or None.
    - `shown`: the further places where the flag is shown.
    - `alarm`: how much the flag alarms, such as whether it is red.
    - `cases`: what else is known about the cases of the flag.
    - `former`: names of the flag in the previous release, which are still accepted.
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
        """The title of the flag's line on the overview. In a row, `words` is used instead."""
        return (self.line and self.line.title) or self.words

    @property
    def counts(self) -> bool:
        """Whether the flag counts already. Some flags count only once the providers in use are
        chosen.
        """
        return self.alarm.counts is None or self.alarm.counts()

    @property
    def is_red(self) -> bool:
        return self.alarm.is_fault and self.counts

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition
