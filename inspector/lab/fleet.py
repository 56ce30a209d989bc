"""The page of many conversations: which limit is right for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from chatmemory import explain, policy_kinds
from chatmemory.queries import (
    FACTS_ENOUGH,
    Fleet,
    FleetLists,
    LimitPoint,
    Loser,
    Repeat,
    smallest_limit,
)
from inspector.conversation.links import conversation_url
from inspector.lab.asked import ComparisonAsked, FleetAsked, hold
from inspector.lab.curve import Curve

SHARES = (0.9, 0.95, 0.99, 1.0)
ANSWER = 0.95


class LimitRow(NamedTuple):
    """A row of the table; `cells` are behind the limit, empty where there is no such limit."""

    label: str
    limit: str
    cells: Sequence[str]
    css: str = ""
    link: str = ""


class FleetPage:
    """The presenter of a fleet: its answer, its table, and its lists."""

    def __init__(self, found: Fleet, asked: FleetAsked) -> None:
        self.found = found
        self.asked = asked
        self.lists = FleetLists()
        self.sums = found.sums
        self.left_out = found.sums.unreadable
        recalls = found.sums.recalls
        # How many facts there are, if they are too few to choose a limit by
        self.too_few = explain.counted(recalls, "fact") if recalls < FACTS_ENOUGH else ""
        self.kind = asked.query.kind
        self.pick = pick = self._pick()
        self.curve = Curve(found, pick) if pick else None
        if pick:
            self.limit_words = explain.in_unit(pick.limit, self.kind)
            self.held_share = explain.percent(pick.held, recalls)
            self.token_share = explain.percent(pick.prompts, self.sums.everything)
            self.lost = recalls - pick.held
        # The kinds of policies: name, unit, address, and whether it is the chosen one
        self.kinds = [
            (name, kind.unit, asked.link(kind=name, limit=""), name == asked.kind)
            for name, kind in policy_kinds().items()
        ]
        self.csv = asked.link(**{"as": "csv"})
        self.stop = asked.link(stop="1")
        self.has_price = asked.prices.input is not None
        self.is_chosen = bool(
            asked.q or asked.label or asked.prefix or asked.since or asked.flagged
        )

    def _pick(self) -> LimitPoint | None:
        """Return what the chosen limit gives: that of the address, or else of the answer.

        It goes together with the options, and above the end of the grid nothing changes. None
        without any recall: then no limit is better than another.
        """
        points = self.found.points
        if not points or not self.sums.recalls:
            return None
        if self.asked.limit is None:
            return smallest_limit(points, self.sums.recalls, ANSWER) or points[-1]
        limit = max(self.asked.limit, self.kind.least_limit)
        if limit > points[-1].limit:
            return replace(points[-1], limit=limit)
        return next(point for point in points if point.limit >= limit)

    # The answer

    @property
    def rounded(self) -> str:
        """Whose figures are shown, and why, if the limit of the address is another one."""
        asked, pick = self.asked.limit, self.pick
        if asked is None or pick is None or asked == pick.limit:
            return ""
        why = "these options need a larger limit"
        return f"The figures are those of {self.limit_words}, not of {asked:,}: {why}."

    @property
    def today(self) -> str:
        """That the limit in force is already enough, if it is one and nobody asked for another."""
        sums, limits = self.sums, self.found.limits
        is_enough = sums.today_held >= ANSWER * sums.today_recalls
        if self.asked.limit or len(limits) != 1 or sums.today_count < sums.count or not is_enough:
            return ""
        limit = explain.in_unit(next(iter(limits)), self.kind)
        share = explain.percent(sums.today_held, sums.today_recalls)
        return f"Today’s {limit} already {hold(limit)} {share}."

    @property
    def instead(self) -> str:
        """What the chosen limit would change: incidents, and prompt tokens a call."""
        sums, pick = self.sums, self.pick
        if not pick or not sums.calls:
            return ""
        per_call = round(pick.prompts / sums.calls)
        incidents = explain.counted(pick.incidents, "incident")
        calls = f"{per_call:,} prompt tokens a call"
        if sums.today_count == sums.count:
            incidents += f" instead of {sums.today_incidents:,}"
            today = round(sums.today_prompts / sums.today_calls)
            calls += f" instead of {today:,}{_change(per_call, today)}"
        return f"Limit {pick.limit:,}: {incidents}; {calls}."

    # The table

    @property
    def rows(self) -> Iterator[LimitRow]:
        sums, limits, pick = self.sums, self.found.limits, self.pick
        if sums.today_count:
            own = self._in_unit(next(iter(limits))) if len(limits) == 1 else "their own"
            today = LimitPoint(
                0, sums.today_held, sums.today_lossless, sums.today_prompts, sums.today_incidents
            )
            lost = sums.today_recalls - sums.today_held
            css = "is-today loses" if lost else "is-today"
            yield self._row("today", own, today, lost, sums.today_calls, css)
        for share in SHARES if sums.recalls else ():
            label = f"{100 * share:.0f} %"
            point = smallest_limit(self.found.points, sums.recalls, share)
            if point:
                yield self._point_row(label, point)
            else:
                yield LimitRow(label, "no limit", [""] * (5 + self.has_price))
        if quiet := self._quiet:
            yield self._point_row("nothing again", quiet)
        if self.asked.limit is not None and pick:
            yield self._point_row("chosen", pick)
        everything = LimitPoint(0, sums.recalls, sums.count, sums.everything)
        yield self._row("everything", "no limit", everything, 0, sums.calls)

    @property
    def _quiet(self) -> LimitPoint | None:
        """The smallest limit from which on there is no incident; None if there is none below."""
        points = self.found.points
        noisy = [place for place, point in enumerate(points) if point.incidents]
        return next(iter(points[noisy[-1] + 1 :]), None) if noisy else None

    def _point_row(self, label: str, point: LimitPoint) -> LimitRow:
        css = "is-pick" if self.pick and point.limit == self.pick.limit else ""
        link = self.asked.link(limit=point.limit)
        lost = self.sums.recalls - point.held
        return self._row(label, self._in_unit(point.limit), point, lost, self.sums.calls, css, link)

    def _row(
        self,
        label: str,
        limit: str,
        point: LimitPoint,
        lost: int,
        calls: int,
        css: str = "",
        link: str = "",
    ) -> LimitRow:
        tokens, prices = point.prompts, self.asked.prices
        numbers = (lost, point.lossless, point.incidents)
        cells = [f"{number:,}" for number in numbers]
        cells.append(f"{round(tokens / calls):,} tok" if calls else "")
        cells.append(explain.percent(tokens, self.sums.everything))
        if self.has_price:
            cells.append(prices.words(prices.cost(tokens), 1_000 / calls) if calls else "")
        return LimitRow(label, limit, cells, css, link)

    def _in_unit(self, limit: int) -> str:
        return f"{limit:,} {self.kind.short_unit}"

    # The lists

    @property
    def losers(self) -> Iterator[tuple[Loser, str]]:
        """The conversations that lose most, each with the address that shows it."""
        policy = self.asked.policy(self.pick.limit) if self.pick else None
        for each in self.lists.losers:
            asked = ComparisonAsked(each.id, (policy, None), each.at, each.fact)
            yield each, asked.link()

    @property
    def repeats(self) -> Iterator[tuple[Repeat, str]]:
        """Users who had to say something again, each with the address that shows it."""
        for each in self.lists.repeats:
            yield each, conversation_url(each.id, msg=each.again, find=each.fact)


def _change(now: int, before: int) -> str:
    """Return by how many hundredths a number differs, in words; empty if it does not."""
    share = round(100 * (now - before) / before) if before else 0
    return f" ({share:+} %)".replace("-", "−") if share else ""
