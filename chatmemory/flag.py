"""A flag: a reason why a conversation needs attention. Rooms add some; `flags` has all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Q


class Turns(StrEnum):
    """The turns that could have a case: all, those after an eviction, or after a compaction."""

    ALL = "all"
    EVICTED = "evicted"
    COMPACTED = "compacted"


class Case(NamedTuple):
    """A case that began with a step of a ledger, with a `detail` such as the rules broken."""

    step: int
    detail: str = ""


@dataclass(frozen=True)
class PastCases:
    """The cases of a flag in the past, also of those that were mended since.

    `find` returns all cases of a conversation up to the end of a `reading.passage.Passage`. It may
    keep JSON values in the state, which it gets again with the next passage; `version` changes when
    it would find others. `counting` returns the function that tells whether a case counts today, by
    the id of its conversation and its detail.
    """

    title: str
    find: Callable[[Any, dict[str, Any]], Iterable[Case]]
    version: Callable[[], str]
    turns: Turns = Turns.ALL
    counting: Callable[[], Callable[[str, str], bool]] | None = None


@dataclass(frozen=True)
class Line:
    """The line of the overview about the cases of one flag.

    - `title` is the title of the line; if it is empty, the flag's words are used.
    - `verb` is the text of a link, or a function that returns the text. The link leads to the
      inspector's page `route`, and that page lists the same conversations. For a single one, the
      link leads to the page `route_of_one` of that conversation, if there is one.
    - `newest` returns a sentence about the latest case in the conversation with an id.
    - `began_at` is the column with the time at which a case began, in microseconds since 1970, and
      `began_step` the column with the step. If both are empty, the beginning is not known.
    """

    verb: str | Callable[[], str]
    route: str
    title: str = ""
    route_of_one: str = ""
    newest: Callable[[str], str] | None = None
    began_at: str = ""
    began_step: str | Callable[[], str] = ""

    @property
    def step_column(self) -> str:
        """The column with the number of the step in which a case began, or ""."""
        return self.began_step() if callable(self.began_step) else self.began_step


@dataclass(frozen=True)
class Flag:
    """A reason why a conversation needs attention, in `words`, with its condition, or a function
    that returns the condition. Flags are ordered by `place`.

    - `icon` is the name of its picture, and `line` its line on the overview, if it has one.
    - Rows of the overview show it if it is `in_rows`; the flag `any` includes it if it `is_any`; it
      is counted below the doctor's list if it is `beside_doctor`.
    - It is red unless `is_fault` is False, such as for a price, or `alarms` returns False because
      it does not count yet.
    - Lists can be sorted by `newest_at`, a column of microseconds.
    - `past` finds its cases of the past: pages say since when there are some, and whether a change
      helped.
    - `parts` are flags of parts of its cases, such as those of one rule, which have lines in its
      place. Their names begin with its own and a period, and lists do not offer them.
    - `former` are its names in the previous release, which are still accepted.
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
        """The title of the flag's line. It may differ from the words in a row."""
        return (self.line and self.line.title) or self.words

    @property
    def counts(self) -> bool:
        """Whether the flag counts already: some count only once the providers in use are chosen."""
        return self.alarms is None or self.alarms()

    @property
    def is_red(self) -> bool:
        return self.is_fault and self.counts

    @property
    def where(self) -> Q:
        return self.condition() if callable(self.condition) else self.condition
