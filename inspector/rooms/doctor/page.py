"""The doctor's page: a heading, and a line for each cause of problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.reading.clients import ids_of_clients
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import Choices, choices
from inspector.rooms.doctor.largest import TooSmallLimit, short_windows
from inspector.rooms.doctor.reads import (
    Case,
    IllConversation,
    Issue,
    Issues,
    by_day,
    conversations_by_provider,
    doctor_counts,
    is_unexamined,
    issues,
    prevention_in,
    unexamined,
    would_find,
)
from inspector.rooms.doctor.using import ALL
from inspector.rooms.doctor.visit import Visit
from inspector.shell.days import Bar, bars_of
from inspector.shell.rooms import page_url

SHOWN = 7  # conversations under a cause


class Row(NamedTuple):
    """A conversation in a line of the page.

    `query` is the query string of the link to the conversation. `how` is a sentence on how the
    problem began. `at` is the time at which the problem began; None if unknown.
    """

    memory_id: str
    query: str
    how: str
    at: datetime | None


def rows_of(cases: Sequence[Case]) -> list[Row]:
    """Return rows for the first seven cases. A line of the page shows no more."""
    return [
        Row(
            case.memory_id,
            case.query,
            words.how_it_began(case.problem, case.step),
            case.problem.at,
        )
        for case in cases[:SHOWN]
    ]


class Line(ABC):
    """A line of the doctor's page: conversations with the same problem, or for which the same
    change helps. An opened line shows the first few conversations.

    - `id` is the HTML ID of the line.
    - `title` is the heading of the line, and `why` a short text beside the heading.
    - `count` is the number of conversations.
    - `verb` is the label of the button for this change; "" if the page offers no change.
    - `action` is the URL of a preview of the change, and `fields` are the parameters of this URL.
    - `address` is the URL of a page with all conversations of the line; "" if there is no such
      page.
    - `times` are the times at which the problems began. Unknown times are left out.
    """

    is_red = False
    fields: Mapping[str, str] = MappingProxyType({})
    address = ""
    id: str
    title: str
    why: str
    action: str
    verb: str
    count: int
    times: Sequence[datetime]

    def __init__(self, midnight: datetime) -> None:
        self._midnight = midnight

    @property
    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """The first few conversations of the line."""

    @property
    def prevention(self) -> str:
        """Advice that prevents the problem in future; "" if there is none."""
        return ""

    @property
    def since(self) -> datetime | None:
        return min(self.times, default=None)

    @property
    def newest(self) -> datetime | None:
        return max(self.times, default=None)

    @property
    def new(self) -> int:
        """The number of conversations whose problem began today."""
        return sum(at >= self._midnight for at in self.times)

    @property
    def bars(self) -> list[Bar]:
        return bars_of(by_day(self.times, self._midnight))

    @property
    def more(self) -> int:
        return self.count if self.count > SHOWN and self.address else 0


class CauseLine(Line):
    """A line for one rule that windows break, with the providers that reject or mishandle these
    windows.
    """

    def __init__(self, issue: Issue, midnight: datetime, is_used: bool) -> None:
        super().__init__(midnight)
        self.issue, self.id, self.times = issue, issue.id, issue.times
        self.count = len(issue.cases)
        self.title, self.why = words.issue_title(issue), words.issue_why(issue)
        # A provider in use would refuse these windows now
        self.is_red = is_used and issue.severity == "refused"
        provider = issue.repairable_for or next(iter(issue.providers), "")
        named = {"provider": provider, "rule": issue.rule}
        self.fields = {name: value for name, value in named.items() if value}
        self.address = f"{reverse('inspector:doctor')}?{urlencode(self.fields)}"
        self.action = page_url("repair-many")
        self.verb = words.verb_of(issue) if self.action and issue.repairable_for else ""

    @cached_property
    def prevention(self) -> str:
        """Advice that prevents the problem in future; "" if there is none. If the line has a repair
        button, only advice about an option of the policy is given.
        """
        if self.verb and not RULES[self.issue.rule].by_policy:
            return ""
        return prevention_in(self.issue.rule, (case.memory_id for case in self.issue.cases))

    @property
    def rows(self) -> list[Row]:
        return rows_of(self.issue.cases)


class ShortLine(Line):
    """A line of the conversations whose limit is too small for their largest turn (see
    `TooSmallLimit`).
    """

    id, title = "short-windows", words.SHORT

    def __init__(self, found: Sequence[TooSmallLimit], midnight: datetime) -> None:
        super().__init__(midnight)
        self.found, self.count = found, len(found)
        self.times = [each.at for each in found if each.at]
        self.why, self.action = words.short_why(found[0]), page_url("raise-limits")
        self.verb = words.short_verb(found) if self.action else ""

    @property
    def rows(self) -> list[Row]:
        return [
            Row(each.memory_id, "", words.needed_words(each), each.at)
            for each in self.found[:SHOWN]
        ]


class DoctorPage:
    """Presents all causes on the doctor's page. Causes for providers in use come first."""

    def __init__(self, midnight: datetime) -> None:
        self._midnight = midnight
        self.made: Choices = choices()
        self.issues: Issues = issues()
        self.refused = self.issues.refused
        self.changed = unexamined().count()
        self.is_unexamined = is_unexamined(self.changed)

    @property
    def used(self) -> list[Line]:
        is_used = self.made.is_made
        causes = [CauseLine(each, self._midnight, is_used) for each in self.issues.used]
        return [*causes, *([self.short] if self.short else [])]

    @cached_property
    def unused(self) -> list[Line]:
        return [CauseLine(each, self._midnight, is_used=False) for each in self.issues.unused]

    @property
    def new(self) -> int:
        """The number of conversations that a provider in use has begun to reject today."""
        today = {
            case.memory_id
            for each in self.issues.used
            if each.severity == "refused"
            for case in each.cases
            if case.problem.at and case.problem.at >= self._midnight
        }
        return len(today)

    @cached_property
    def mishandled(self) -> list[Line]:
        """Lines for windows that providers in use accept, but may mishandle."""
        causes = [each for each in self.issues.used if each.severity != "refused"]
        return [CauseLine(each, self._midnight, is_used=False) for each in causes]

    @cached_property
    def short(self) -> Line | None:
        """The line of the page about conversations whose limit is too small for their largest turn,
        or None if there are none.
        """
        found = short_windows()
        return ShortLine(found, self._midnight) if found else None

    @property
    def elsewhere(self) -> int:
        """The number of conversations that a provider not in use would reject."""
        return self.issues.refused_elsewhere

    @property
    def in_use(self) -> str:
        return words.in_use(self.made)

    @property
    def not_in_use(self) -> str:
        named = self.made.everywhere.providers
        return ", ".join(label for name, label in PROVIDERS.items() if name not in named)

    @cached_property
    def providers(self) -> Sequence[words.ProviderRow]:
        """The checkboxes of providers, shown while nobody has chosen the providers in use. Each
        checkbox has the number of conversations that the provider would reject.
        """
        return words.provider_rows(None, would_find(ALL), conversations_by_provider())


class CausePage:
    """Presents the conversations with one cause: the heading, and a page of rows."""

    def __init__(self, visit: Visit, rows: Sequence[IllConversation]) -> None:
        self.title = words.cause_title(visit.provider, visit.rule)
        shown = (row.memory.id for row in rows)
        self.prevention = prevention_in(visit.rule, shown) if visit.rule else ""
        verb = words.verb(visit.rule) if visit.rule else "Repair these conversations…"
        self.verb = verb if page_url("repair-many") else ""
        counts = doctor_counts("", visit.which.choices)
        self.count: int = counts.by_rule.get(visit.rule, 0) if visit.rule else counts.refused or 0
        found = {row.memory.id for row in rows if row.is_repairable}
        self.repairable = found - ids_of_clients(found)
        self.is_repairable = bool(self.verb and self.repairable)
