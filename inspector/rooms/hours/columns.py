"""Adds up turns, tokens, cost and problems by hour and by day, for groups of conversations.

The sums of each conversation are computed once. All groupings, such as the grouping by tenant, use
these sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

from chatmemory.messages.json_values import JsonList
from inspector.rooms.hours.fleet import Counting, Spent

NOBODY = -1  # the group of a conversation that is not listed
Written = JsonList  # turns, tokens and cost a turn, cases, and how many have calls, or have not


@dataclass
class Column:
    """The figures of one hour or day, for all conversations that have figures in this time.

    - `places`: each of these conversations, as its index in the list of all conversations.
    - `turns`, `tokens`, `costs`: the figures of each conversation, in the order of `places`. Tokens
      and costs are means per turn, or sums if there was no turn. A cost of 1,000 is the price of
      one input token.
    - `counted`: the places of conversations whose tokens a provider has counted.
    - `cases`: pairs of a place and a dictionary, such as `{"refused": 2}`. The dictionary says how
      many problems of each flag began in the conversation.
    """

    places: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    cases: list[tuple[int, dict[str, int]]] = field(default_factory=list)

    def add(self, place: int, turns: int, tokens: int, cost: int) -> None:
        """Add the figures of a conversation to this column. `place` is the conversation's index in
        the list of all conversations. `tokens` and `cost` are sums over the `turns`.
        """
        self.places.append(place)
        self.turns.append(turns)
        self.tokens.append(round(tokens / (turns or 1)))
        self.costs.append(round(cost / (turns or 1)))

    def grouped(self, groups: Sequence[int]) -> dict[int, Written]:
        """Return the figures of each group, by the group's number; see `Written`. In the result,
        the key NOBODY has the figures of all groups together.

        `groups` has, for each conversation, the number of its group, or NOBODY if the conversation
        is left out.
        """
        found: dict[int, _Sums] = {}
        counted = set(self.counted)
        for place, turns, tokens, cost in zip(
            self.places, self.turns, self.tokens, self.costs, strict=True
        ):
            group = groups[place]
            if group == NOBODY:
                continue
            sums = found.get(group)
            if sums is None:
                sums = found[group] = _Sums()
            sums.turns += turns
            if turns and tokens:
                sums.tokens.append(tokens)
                sums.costs.append(cost)
                sums.counted += place in counted
        for place, cases in self.cases:
            if groups[place] != NOBODY:
                found[groups[place]].add_cases(cases)
        whole = _Sums.of(found.values())
        return {NOBODY: whole.written(), **{name: each.written() for name, each in found.items()}}


@dataclass
class _Sums:
    """The sums of one group in one hour or day."""

    turns: int = 0
    tokens: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    counted: int = 0
    cases: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[_Sums]) -> _Sums:
        """Return the total of the sums of several groups."""
        some = list(parts)
        whole = cls(
            sum(each.turns for each in some),
            list(chain.from_iterable(each.tokens for each in some)),
            list(chain.from_iterable(each.costs for each in some)),
            sum(each.counted for each in some),
        )
        for each in some:
            whole.add_cases(each.cases)
        return whole

    def add_cases(self, cases: Mapping[str, int]) -> None:
        for name, number in cases.items():
            self.cases[name] = self.cases.get(name, 0) + number

    def written(self) -> Written:
        tokens, cost = (round(median(each)) if each else 0 for each in (self.tokens, self.costs))
        return [
            self.turns,
            tokens,
            cost,
            self.cases,
            self.counted,
            len(self.tokens) - self.counted,
        ]


EMPTY: Written = _Sums().written()


def columns_of(
    rows: Iterable[Spent],
    starts: Sequence[int],
    column_of: Mapping[int, int],
    places: Mapping[str, int],
    counting: Counting,
) -> list[Column]:
    """Return a column of figures for each hour or day that begins at one of the `starts`.

    `rows` are the hourly figures of conversations. `column_of` maps the start of an hour to the
    index of its column; other hours are left out. `places` maps a conversation's ID to its index in
    the list of all conversations. `counting` leaves out cases that no longer count.
    """
    sums: list[dict[int, list[int]]] = [{} for _ in starts]
    columns = [Column() for _ in starts]
    cases: dict[tuple[int, int], _Sums] = {}
    for row in rows:
        number = column_of.get(row.hour)
        if number is None:
            continue
        place = places[row.memory_id]
        known = sums[number].get(place)
        if known is None:
            sums[number][place] = [row.turns, row.tokens, row.cost, row.is_counted]
        else:
            known[0] += row.turns
            known[1] += row.tokens
            known[2] += row.cost
            known[3] |= row.is_counted
        if row.cases and (found := counting.cases(row)):
            cases.setdefault((number, place), _Sums()).add_cases(found)
    for column, added in zip(columns, sums, strict=True):
        for place, (turns, tokens, cost, is_counted) in added.items():
            column.add(place, turns, tokens, cost)
            if is_counted:
                column.counted.append(place)
    for (number, place), each in cases.items():
        columns[number].cases.append((place, each.cases))
    return columns
