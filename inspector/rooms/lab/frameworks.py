"""Measures the memories of agent frameworks on stored conversations: how many needed facts each
memory would have held, and the cost of its prompts.

The figures are computed on request, for a few conversations at a time. They are stored until the
conversation changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.recall.cost import Bill, CacheRules, Prices
from chatmemory.strategies import (
    Measured,
    Settings,
    Strategy,
    all_strategies,
    everything_of,
    measured_by,
)
from inspector.rooms.lab import models
from inspector.rooms.lab.reads import Chosen, FleetQuery, chosen_of
from inspector.rooms.lab.stored import stored_conversation
from inspector.rooms.lab.writes import keep_values

MOST_MESSAGES = 500  # the newest of a conversation: frameworks read their lists with each call
SECONDS = 1.0
RULES = 1  # raise it with each change of what is measured


@dataclass(frozen=True)
class FrameworksQuery:
    """A question to the lab about agent frameworks.

    - `fleet`: which conversations are measured.
    - `settings`: the limits for the frameworks' strategies (ways to trim memory).
    - `rules`: the rules of the prompt cache.
    """

    fleet: FleetQuery
    settings: Settings
    rules: CacheRules

    @cached_property
    def installed(self) -> Sequence[Strategy]:
        """The strategies of agent frameworks whose packages are installed, and the users' own
        functions that serve as strategies. chatmemory's own windows are left out.
        """
        return [each for each in _of_others() if each.is_installed]

    @property
    def key(self) -> str:
        """A digest of all that the figures depend on, including the versions of the frameworks'
        packages.
        """
        versions = [(each.name, each.version) for each in self.installed]
        sizes = self.settings.tokens, self.settings.messages
        text = f"strategies {RULES} {MOST_MESSAGES} {sizes} {self.rules} {versions}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _of_others() -> list[Strategy]:
    return [each for each in all_strategies() if each.package or each.function]


class Mark(NamedTuple):
    """The figures of a strategy: a point of the chart, and a row of the table.

    - `needed`: the number of facts needed again, in all conversations together.
    - `held`: how many of the needed facts would have been in memory.
    - `share`: the share of needed facts held, as a mean over conversations.
    - `cost`: the cost relative to sending everything, as a mean over conversations.
    - `with_summaries`: the same as `cost`, with the calls that write summaries.
    """

    strategy: Strategy
    held: int
    needed: int
    share: float
    cost: float
    with_summaries: float

    @property
    def name(self) -> str:
        return self.strategy.label

    @property
    def version(self) -> str:
        found = self.strategy
        return f"{found.package} {found.version}" if found.package else ""

    @property
    def held_words(self) -> str:
        percent = round(100 * self.share)
        return f"{min(max(percent, 1), 99) if 0 < self.held < self.needed else percent} %"

    @property
    def lost(self) -> int:
        return self.needed - self.held


@dataclass(frozen=True)
class Frameworks:
    """The figures of agent frameworks for the conversations that the query chooses. Conversations
    that are not measured yet have no figures.

    - `chosen`: the number of conversations to measure.
    - `found`: the figures of each measured conversation, by conversation ID, then by name of the
      strategy.
    """

    query: FrameworksQuery
    chosen: int
    found: Mapping[str, JsonMap]  # by the ids of conversations

    @property
    def done(self) -> int:
        return len(self.found)

    @property
    def is_done(self) -> bool:
        return self.done >= self.chosen

    @property
    def missing(self) -> list[Strategy]:
        """The strategies whose packages are not installed."""
        return [each for each in _of_others() if not each.is_installed]

    def marks(self, prices: Prices, left_out: Collection[str] = ()) -> list[Mark]:
        """Return the mean figures of each installed strategy, the cheapest first. Conversations in
        `left_out` do not count.
        """
        out = frozenset(left_out)
        values = [each for id, each in self.found.items() if id not in out]
        marks = (_mark(each, values, prices) for each in self.query.installed)
        return sorted(filter(None, marks), key=lambda each: each.cost)


def _mark(strategy: Strategy, values: Iterable[JsonMap], prices: Prices) -> Mark | None:
    """Return the mark of a strategy; None if it was measured on no conversation."""
    figures = [found for each in values if (found := each.get(strategy.name))]
    costs, all_costs, shares = list[float](), list[float](), list[float]()
    for bill, summaries, everything in map(_bills, figures):
        costs.append(prices.relative(bill, everything) or 1.0)
        all_costs.append(prices.relative(bill + summaries, everything) or 1.0)
    for each in figures:
        shares += [each["held"] / each["recalls"]] if each["recalls"] else []
    if not costs:
        return None
    held, needed = (sum(each[name] for each in figures) for name in ("held", "recalls"))
    share = sum(shares) / len(shares) if shares else 1.0
    mean, with_summaries = (sum(each) / len(each) for each in (costs, all_costs))
    return Mark(strategy, held, needed, share, mean, with_summaries)


def _bills(figures: JsonMap) -> Iterator[Bill]:
    return (Bill(*figures[name]) for name in ("bill", "summaries", "everything"))


def frameworks(query: FrameworksQuery) -> Frameworks:
    """Return the stored figures of the chosen conversations. A conversation that is not measured
    yet has no figures.
    """
    chosen = chosen_of(query.fleet)[1]
    return Frameworks(query, len(chosen), _known(query, chosen))


def _known(query: FrameworksQuery, chosen: Sequence[Chosen]) -> dict[str, JsonMap]:
    states = {each.id: each.state for each in chosen}
    rows = models.Figures.objects.filter(key=query.key)
    return {
        row.memory_id: row.figures
        for row in rows.iterator()
        if states.get(row.memory_id) == row.state
    }


def compute(query: FrameworksQuery, seconds: float = SECONDS) -> None:
    """Measure chosen conversations that are not measured yet, and store the figures. The call ends
    after about `seconds`, and measures at least one conversation.
    """
    chosen = chosen_of(query.fleet)[1]
    known = _known(query, chosen)
    waiting = [each for each in chosen if each.id not in known]
    found = {each: _measured(query, each.id) for each in database.for_seconds(seconds, waiting)}
    keep_values(query.key, found)


def _measured(query: FrameworksQuery, id: str) -> JsonDict:
    """Return the figures of a conversation for each strategy that did not fail; empty for an
    unreadable conversation.
    """
    values: JsonDict = {}
    try:
        conversation = stored_conversation(id, MOST_MESSAGES)
        everything = everything_of(conversation, query.rules)
    except ChatMemoryError:
        return values
    for each in query.installed:
        try:
            found = measured_by(
                each, query.settings, conversation, rules=query.rules, everything=everything
            )
        except ChatMemoryError:
            continue
        values[each.name] = _written(found)
    return values


def _written(found: Measured) -> JsonDict:
    bills = {
        name: [bill.calls, bill.tokens, bill.read, bill.written]
        for name, bill in (
            ("bill", found.bill),
            ("summaries", found.summaries),
            ("everything", found.everything),
        )
    }
    return {"held": found.held, "recalls": found.recalls, **bills}
