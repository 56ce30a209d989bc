"""The lines of the doctor's page about rejected windows. Windows that need the same kind of repair
share a line. Conversations whose clients decide what is in memory have lines of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory.explain import wording
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.messages.message import ToolExecutionResultMessage
from chatmemory.reading import windows
from chatmemory.reading.clients import ids_of_clients
from inspector.overview.common import (
    Common,
    Everywhere,
    Group,
    Values,
    common_in,
    groups_in,
    values_of,
)
from inspector.rooms.doctor import words
from inspector.rooms.doctor.page import Line, Row, rows_of
from inspector.rooms.doctor.reads import Case, Issue, prevention_for, prevention_in
from inspector.shell.rooms import page_url

MOST_LINES = 5  # further ones are folded
FEWEST = 3  # cases of a line that is not rare
GROUPS = 5  # tenants under a line
LISTED = 30  # messages of a list to copy
CLIENT = "client"


class Whose(NamedTuple):
    """The data for finding what the conversations with a problem have in common.

    - `values` maps a conversation's ID to its values, such as its tenant and its labels.
    - `everywhere` counts how many conversations of the whole site have a given value.
    """

    values: Values
    everywhere: Everywhere


class MendLine(Line):
    """A line of the doctor's page: conversations whose rejected windows need the same kind of
    repair. The windows may break different rules.

    In two cases, a line is about a single rule, and offers no repair:

    - The windows have no repair.
    - Clients decide what is in memory (`by_client` is True).
    """

    def __init__(
        self,
        found: Sequence[Issue],
        midnight: datetime,
        is_red: bool,
        by_client: bool,
        whose: Whose,
    ) -> None:
        super().__init__(midnight)
        self._whose = whose
        self._issues = sorted(found, key=lambda each: -len(each.cases))
        first = self._issues[0]
        self.is_red, self.by_client = is_red, by_client
        cases = [case for each in self._issues for case in each.cases]
        self.cases: dict[str, Case] = {case.memory_id: case for case in reversed(cases)}
        self.count = len(self.cases)
        self.times = [case.problem.at for case in self.cases.values() if case.problem.at]
        self.rules = list(dict.fromkeys(each.rule for each in self._issues))
        self.id = "-".join(("clients" if by_client else "mend", first.severity, *self.rules))
        self.title = words.problem_title(first.rule)
        named = {name for each in self._issues for name in each.providers}
        self.providers = [name for name in PROVIDERS if name in named]
        kinds = f"{len(self.rules)} rules" if len(self.rules) > 1 else ""
        self.why = " · ".join(filter(None, [words.provider_names(self.providers), kinds]))
        provider = first.repairable_for or next(iter(self.providers), "")
        self.provider = provider
        query = {"provider": provider, "rule": first.rule}
        query = {name: value for name, value in query.items() if value}
        self.address = f"{reverse('inspector:doctor')}?{urlencode(query)}"
        self.action = page_url("repair-many")
        can_mend = bool(self.action and first.repairable_for) and not by_client
        self.verb = words.mend_verb(self.count) if can_mend else ""

    @property
    def _times(self) -> dict[str, datetime | None]:
        return {id: case.problem.at for id, case in self.cases.items()}

    @cached_property
    def common(self) -> Common:
        """What most conversations of the line have in common, such as a label, or a tenant
        (`hooli/` at the beginning of their IDs).
        """
        return common_in(self._times, *self._whose)

    @property
    def since(self) -> datetime | None:
        """The time at which the oldest problem of the line began; None if unknown. If `common` has
        values, only conversations with these values count.
        """
        return self.common.since

    @cached_property
    def groups(self) -> list[Group]:
        """The conversations of the line grouped by tenant. Only the largest groups are listed."""
        return groups_in(self._times, *self._whose)[:GROUPS]

    @cached_property
    def prevention(self) -> str:
        """Advice that prevents the problem in future; "" if there is none, or if clients decide
        what is in memory.
        """
        if self.by_client:
            return ""
        rules = [rule for rule in self.rules if not self.verb or RULES[rule].by_policy]
        values = self._whose.values
        have_policy = any(name == "policy" for id in self.cases for name, _ in values.get(id, ()))
        found = (prevention_for(rule, have_policy) for rule in rules)
        return next(filter(None, found), "")

    @property
    def _newest_first(self) -> list[Case]:
        dated = [case for case in self.cases.values() if case.problem.at]
        dated.sort(key=lambda case: (case.problem.at, case.memory_id), reverse=True)
        return [*dated, *(case for case in self.cases.values() if not case.problem.at)]

    @property
    def rows(self) -> list[Row]:
        return rows_of(self._newest_first)

    @cached_property
    def to_copy(self) -> str:
        """A text for the developer of the client that decides what is in memory; "" if no client
        decides this.

        The text describes the newest rejected window: its problem, and the position of each message
        (see `list_to_copy`).
        """
        return list_to_copy(self._newest_first[0], self.providers) if self.by_client else ""


def list_to_copy(case: Case, providers: Sequence[str]) -> str:
    """Describe a rejected window for the developer of the client that decides what is in memory.

    The first lines name the problem and the conversation. Then each of the first 30 messages has a
    line with its position and role. The texts of messages are left out.
    """
    problem = case.problem
    title = wording.decapitalized(words.problem_title(problem.rule))
    verb = "rejects" if len(providers) == 1 else "reject"
    lines = [f"{wording.capitalized(words.provider_names(providers))} {verb} this list: {title}."]
    if prevention := prevention_in(problem.rule, [case.memory_id]):
        lines.append(prevention)
    lines.append(case.memory_id)
    rows = windows.window(case.memory_id).in_order
    for place, row in enumerate(rows[:LISTED]):
        message = row.message
        role = wording.role(row.type, row.has_calls).lower()
        call = f", call {message.id}" if isinstance(message, ToolExecutionResultMessage) else ""
        fault = "  <- here" if row.seq == problem.seq else ""
        lines.append(f"[{place}] {role}{call}{fault}")
    if len(rows) > LISTED:
        lines.append(f"… {len(rows) - LISTED:,} more")
    return "\n".join(lines)


class Mends(NamedTuple):
    """The lines of the doctor's page about rejected windows. The lines in `shown` are visible, and
    the lines in `more` are folded.
    """

    shown: Sequence[MendLine]
    more: Sequence[MendLine]

    @property
    def is_one(self) -> bool:
        """Whether exactly one repair line is shown. The page then opens this line at once."""
        return len(self.shown) == 1

    @property
    def more_count(self) -> int:
        return len({id for line in self.more for id in line.cases})

    @property
    def more_titles(self) -> str:
        return ", ".join(wording.decapitalized(line.title) for line in self.more[:3])


def mends(
    issues: Iterable[Issue], midnight: datetime, is_used: bool, everywhere: Everywhere
) -> Mends:
    """Return the lines of the doctor's page about rejected windows.

    - Windows that need the same kind of repair share a line.
    - Windows without a repair have one line for each rule.
    - Conversations whose clients decide what is in memory have separate lines, one for each rule.
    - The line with the most conversations whose problem began today comes first.
    - At most five lines are shown. The rest are folded.
    - A line is small if it has fewer than three conversations, and none with a problem from today.
      Small lines are shown only if all lines are small.

    `midnight` is the beginning of today. `is_used` tells whether people have chosen the providers
    in use. If not, no line is red. `everywhere` counts how many conversations of the site have a
    given value, such as a label.
    """
    refused = [each for each in issues if each.severity == "refused"]
    ids = {case.memory_id for each in refused for case in each.cases}
    whose = Whose(values_of(ids), everywhere)
    clients = ids_of_clients(ids)
    groups: dict[tuple[str, str], list[Issue]] = {}
    for each in refused:
        for cure, cases in _by_cure(each, clients):
            if cases:
                groups.setdefault(cure, []).append(replace(each, cases=cases))
    lines = [
        MendLine(found, midnight, is_used, cure[0] == CLIENT, whose)
        for cure, found in groups.items()
    ]
    lines.sort(key=lambda line: (-line.new, -line.count))
    common = [line for line in lines if line.new or line.count >= FEWEST][:MOST_LINES]
    shown = common or lines[:MOST_LINES]
    return Mends(shown, [line for line in lines if line not in shown])


def _by_cure(issue: Issue, clients: Collection[str]) -> list[tuple[tuple[str, str], list[Case]]]:
    """Return two pairs of a cure and the cases that need it: first the cases that a repair can
    solve, then the cases that only a client can solve.

    The cure is the kind of repair, or the rule if there is no repair.
    """
    own = [case for case in issue.cases if case.memory_id not in clients]
    theirs = [case for case in issue.cases if case.memory_id in clients]
    repairs = RULES[issue.rule].repairs if issue.repairable_for else ()
    cure = ("repair", repairs[0]) if repairs else ("rule", issue.rule)
    return [(cure, own), ((CLIENT, issue.rule), theirs)]
