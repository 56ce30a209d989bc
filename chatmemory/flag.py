"""Defines a flag: a reason why a conversation needs attention. Rooms (plug-in features) add flags;
`flags` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Q


class Turns(StrEnum):
    """The turns that a rate divides by, such as "cases of a flag per 100 turns": all turns, the
    turns after an eviction, or the turns after a compaction.
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

    `find` returns all cases of a conversation up to the end of a `reading.passage.Passage`. It may
    keep JSON values in the dictionary, which it gets again with the next passage. `version` changes
    when `find` would return other cases. `title` is the title of the cases on pages, and `turns`
    are the turns that their rate divides by. `counting` returns a function that tells whether a
    case counts today, given the conversation's id and the case's detail.
    """

    title: str
    find: Callable[[Any, dict[str, Any]], Iterable[Case]]
    version: Callable[[], str]
    turns: Turns = Turns.ALL
    counting: Callable[[], Callable[[str, str], bool]] | None = None


@dataclass(frozen=True)
class Line:
    """A line on the overview about the conversations with one flag.

    - `title` is the title of the line; if it is empty, the flag's words are used.
    - `verb` is the text of a link, or a function that returns the text. The link leads to the
      inspector's page `route`, and that page lists the same conversations. For a single
      conversation, the link leads to its page `route_of_one`, if this is given. With `names_ids`,
      the link names up to 50 conversations by their ids, and not by their flag.
    - `newest` returns a sentence about the latest case in the conversation with an id.
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
class Flag:
    """A reason why a conversation needs attention, in `words`. `condition` selects such
    conversations, or is a function that returns the condition.

    - Flags are sorted by `place`. `icon` is the name of the flag's icon, and `line` is its line on
      the overview, if it has any.
    - `in_rows` shows the flag in rows of the overview. `is_any` includes it in the flag `any`. With
      `beside_doctor`, the doctor's page says below its list how many conversations have the flag.
    - The flag is red, except in two cases: `is_fault` is False, such as for a high price, or
      `alarms` returns False, because the flag does not count yet.
    - `newest_at` is a column in microseconds by which lists can be sorted.
    - `past` finds cases of the past, so that pages can say since when there are some, and whether a
      change helped.
    - `parts` are flags for parts of the cases, such as the cases of one rule. Their lines replace
      the flag's own line. Their names begin with its name and a period. Lists do not offer them.
    - `former` are names from the previous release, which are still accepted.
    """

    name: str
    words: str
    condition: Q | Callable[[], Q]
    place: int = 0
    icon: str = ""
    line: Line | None = None
    in_rows: bool = False
    beside_doctor: bool = False
    is_any: bool = True
    is_fault: bool = True
    alarms: Callable[[], bool] | None = None
    newest_at: str = ""
    past: PastCases | None = None
    parts: Callable[[], Sequence[Flag]] | None = None
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
        return self.alarms is None or self.alarms()

    @property
    def is_red(self) -> bool:
        return self.is_fault and self.counts

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition
