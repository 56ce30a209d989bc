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
    """The turns that count in a rate, such as "4 cases per 100 turns".

    A rate counts all turns, only the turns after the first eviction, or only the turns after the
    first compaction.
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
    - `find`: returns all cases of a conversation, from its first step to the end of the given
      `reading.passage.Passage`. In its second argument, a dictionary of JSON values, `find` can
      store data for the next call about this conversation.
    - `version`: returns a text that changes when `find` would return other cases for the same
      steps.
    - `turns`: which turns count in a rate on pages, such as "4 cases per 100 turns".
    - `counting`: returns a function that tells whether a case still counts, given the
      conversation's id and the case's `detail`. If `counting` is None, all cases count.
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
    - `verb`: the text of the line's link, or a function that returns the text.
    - `route`: the name of the linked page, such as "lab". The page lists the conversations with the
      flag.
    - `route_of_one`: the name of a page about one conversation, such as "compare". The link leads
      to this page if exactly one conversation has the flag. If empty, the link leads to `route`.
    - `names_ids`: whether the link's URL lists the ids of the conversations. For more than 50
      conversations, the URL has the name of the flag instead.
    - `reads_ids`: whether the link's URL lists the ids while the overview is filtered. The maximum
      of 50 applies here, too.
    - `newest`: a function that returns a sentence about the newest case, given the id of its
      conversation. None if the line has no such sentence.
    - `began_at`: the database column with the time at which a conversation's case began, in
      microseconds since 1970.
    - `began_step`: the database column with the step at which the case began, or a function that
      returns the column. It is used if `began_at` is empty.
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
    """How much a flag alarms: whether it is red, and whether it counts for the flag named `any`.

    - `is_any`: whether the conversations of this flag also count for the flag named `any`.
    - `is_fault`: whether the flag is red. A high price, for example, is no fault.
    - `counts`: a function that returns False while a setting is missing that the flag needs, such
      as the providers in use. The flag is then not red, and has no line on the overview. None if
      the flag needs no setting.
    """

    is_any: bool = True
    is_fault: bool = True
    counts: Callable[[], bool] | None = None


@dataclass(frozen=True)
class FlagCases:
    """Ways to sort, date and divide the cases of a flag.

    - `newest_at`: the database column with the time of the newest case, in microseconds. Lists of
      conversations can be sorted by this column. "" if there is no such column.
    - `past`: finds past cases. Pages then say since when there are cases, and whether a change
      helped. None if past cases cannot be found.
    - `parts`: returns the flags into which this flag is divided, such as a flag for each rule.
      Their names begin with the name of this flag, such as "refused.dangling_call". On the
      overview, their lines replace the line of this flag. None if the flag is not divided.
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
        """The title of the flag's line on the overview: `line.title`, or `words` if there is no
        such title.
        """
        return (self.line and self.line.title) or self.words

    @property
    def counts(self) -> bool:
        """Whether the flag may be red and have a line on the overview.

        False while a setting is missing that the flag needs, such as the providers in use.
        """
        return self.alarm.counts is None or self.alarm.counts()

    @property
    def is_red(self) -> bool:
        return self.alarm.is_fault and self.counts

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition
