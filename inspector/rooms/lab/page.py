"""The page of many conversations, with advice about the window that is worth its cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from django.utils.http import urlencode
from django.utils.text import Truncator

from chatmemory import Policy, policy_kinds, text_of_policy
from chatmemory.explain import wording
from chatmemory.explain.wording import in_unit
from chatmemory.known_models import known_model, smallest_prompt
from chatmemory.recall.advice import Advice, AdviceReason, Chooser, CostedPolicy, Goals
from chatmemory.recall.comparison import FACTS_ENOUGH
from chatmemory.recall.kinds import WORDS as KIND_WORDS
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.tallies import Tally
from chatmemory.rooms import providers_in_use
from chatmemory.windows.policies import WHOLE
from inspector.conf import inspector_configuration
from inspector.conversation.links import conversation_url
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.chart import PHONE, TABLET, WIDE, Frontier
from inspector.rooms.lab.reads import Fleet, Group, Loser, Measured
from inspector.rooms.lab.words import (
    Headline,
    cost_words,
    enough_words,
    limits_words,
    policy_long,
    policy_short,
    share_words,
)
from inspector.shell.prices import Preset
from inspector.shell.rooms import page_url

NAMED = 3


class Way(NamedTuple):
    """A row of the table of policies."""

    name: str
    note: str
    cells: Sequence[str]
    cost: str
    money: str
    css: str = ""
    is_over: bool = False


class Figure(NamedTuple):
    """A line of the panel: a name, today's figure, and the figure of the suggestion."""

    name: str
    was: str
    now: str
    css: str = ""


class Change(NamedTuple):
    """The facts held, incidents and costs of groups now, and with the advice for them; costs, also
    the cost of sending `everything`, are in tokens at the input price.
    """

    was: Tally = Tally()
    then: Tally = Tally()
    cost_was: Decimal = Decimal(0)
    cost_then: Decimal = Decimal(0)
    everything: Decimal = Decimal(0)

    def plus(self, other: Change) -> Change:
        return Change(
            self.was.plus(other.was),
            self.then.plus(other.then),
            self.cost_was + other.cost_was,
            self.cost_then + other.cost_then,
            self.everything + other.everything,
        )


class GroupRow(NamedTuple):
    """A group with its needs, its policies and the advice for it; `policy` is the text of the
    advice.
    """

    group: Group
    name: str
    what: str
    link: str
    needs: str
    today: str
    suggested: str
    note: str = ""
    held: str = ""
    incidents: str = ""
    cost: str = ""
    policy: str = ""
    only_measures: bool = False
    change: Change = Change()


class FleetPage:
    """The presenter of a fleet: its answer, its chart, its panel and its tables."""

    def __init__(self, found: Fleet, address: FleetAddress) -> None:
        self.found, self.address = found, address
        self.models = sorted(
            {each for names in (providers_in_use() or {}).values() for each in names}
        )
        # The context of the model in tokens: the number in the address, else the one of the models
        # in use
        self.known_context = smallest_prompt(self.models)
        self.context = address.context or self.known_context
        self.kind = found.tried.kind
        self.losers_of: Sequence[Loser] = ()
        left_out = {each.chosen.id for each in found.left_out}
        self.is_everyone = bool(address.everyone)
        self.measured = [
            each for each in found.deciding if self.is_everyone or each.chosen.id not in left_out
        ]
        self.chooser = self._chooser(self.measured)
        self.sums = self.chooser.sums
        self.advice = self.chooser.advice()
        recalls = self.sums.recalls
        self.too_few = wording.counted(recalls, "fact") if recalls < FACTS_ENOUGH else ""
        in_force = {each.chosen.policy for each in self.measured}
        self.today_policy = next(iter(in_force)) if len(in_force) == 1 else None
        self.csv = address.link(**{"as": "csv"})
        self.stop = address.link(stop="1")
        self.counted = address.link(everyone="1")
        self.kinds = [
            (name, kind.unit, address.link(kind=name, limit=""), name == address.kind)
            for name, kind in policy_kinds().items()
        ]

    def _chooser(self, measured: Sequence[Measured]) -> Chooser:
        saving = inspector_configuration().LEAST_SAVING / 100
        repeats = self.address.flagged == "user_repeated"
        goals = Goals(saving=saving, context=self.context, spares_users=repeats)
        figures = [each.figures for each in measured]
        return Chooser(self.found.tried, figures, self.address.prices.prices, goals)

    # The prices

    @property
    def presets(self) -> list[tuple[str, str, Preset]]:
        """The providers whose cache can be chosen, each with its address."""
        address = self.address
        return [
            (each.name, address.with_provider(each.name), each) for each in address.prices.presets
        ]

    @property
    def beside_prices(self) -> list[tuple[str, str]]:
        """The other parameters of the address, for the form of the prices."""
        mine = ("input", "cached", "write", "currency", "context")
        return [
            (name, value) for name, value in self.address.parameters.items() if name not in mine
        ]

    @property
    def context_words(self) -> str:
        """The context of the models in use, as of a day, in words; empty if it is not known."""
        if self.known_context is None:
            return ""
        known = known_model(self.models[0])
        as_of = f", as of {known.as_of:%-d %b %Y}" if known else ""
        names = ", ".join(self.models)
        return f"{names}: prompts of up to {self.known_context:,} tokens{as_of}."

    # The answer

    @property
    def has_answer(self) -> bool:
        return self.found.is_done and bool(self.sums.recalls)

    @cached_property
    def headline(self) -> Headline:
        policies = (each.chosen.policy for each in self.measured)
        return Headline(self.chooser, self.advice, limits_words(policies), self.today_policy)

    @cached_property
    def charts(self) -> list[Frontier]:
        yours = policy_short(self.today_policy) if self.today_policy else ""
        sizes = ((WIDE, yours), (TABLET, yours), (PHONE, ""))
        return [Frontier(self.chooser, self.advice, name, size) for size, name in sizes]

    # The panel

    @property
    def suggested(self) -> str:
        pick = self.advice.pick
        return policy_long(pick.policy) if pick else "No advice"

    @property
    def note(self) -> str:
        """The sentence about sending everything: the longest prompt, and whether it fits."""
        pick, longest = self.advice.pick, self.sums.longest
        if pick is None or pick.policy is not None:
            return ""
        context = self.context
        fits = f", fits the model’s {context:,}" if context and longest <= context else ""
        return f"The longest prompt has {longest:,} tokens{fits}."

    @property
    def figures(self) -> Iterator[Figure]:
        pick, today = self.advice.pick, self.advice.today
        if pick is None:
            return
        recalls = self.sums.recalls

        def line(name: str, was: object, now: object, css: str = "") -> Figure:
            return Figure(name, str(was) if today else "", str(now), css)

        was = today.tally if today else Tally()
        yield line("Held", share_words(today or pick, recalls), share_words(pick, recalls))
        yield line(f"Facts, of {recalls:,}", f"{was.held:,}", f"{pick.tally.held:,}")
        now = pick.tally
        by_user = KIND_WORDS[IncidentKind.USER_REPEATED].title
        yield line(by_user, f"{was.user_repeated:,}", f"{now.user_repeated:,}")
        by_call = KIND_WORDS[IncidentKind.CALL_REPEATED].title
        yield line(by_call, f"{was.call_repeated:,}", f"{now.call_repeated:,}")
        yield line(self.cost_name, cost_words(today.cost) if today else "", cost_words(pick.cost))
        if self.advice.checked is not None:
            checked = "checked on the half not used for choosing"
            yield Figure(checked, "", cost_words(self.advice.checked), "sub")
        if self.address.prices.has_money:
            yield line("1,000 calls", self._money(was), self._money(pick.tally))

    @property
    def cost_name(self) -> str:
        return "Cost" if self.chooser.prices.priced == "cache" else "Tokens"

    @property
    def option(self) -> str:
        """The cheapest window that holds enough, and its losses, where everything is sent today;
        where everything does not fit the model, the window that holds most.
        """
        option = self.advice.option
        if option is None or option.policy is None:
            return ""
        less = round(100 * (1 - option.cost))
        lost = wording.counted(self.sums.recalls - option.tally.held, "fact")
        than = f"{abs(less)} % {'less' if less > 0 else 'more'}" if less else "about as much"
        return f"{policy_long(option.policy)}: {than}, {lost} lost"

    @property
    def option_policy(self) -> str:
        option = self.advice.option
        return text_of_policy(option.policy) if option and option.policy else ""

    @property
    def pick_policy(self) -> str:
        """The text of the suggested policy, if it is not in force already; empty for none."""
        pick = self.advice.pick
        policy = (pick.policy or self._everything(self.measured)) if pick else None
        return "" if policy in (None, self.today_policy) else text_of_policy(policy)

    def _everything(self, measured: Iterable[Measured]) -> Policy | None:
        """The policy with which everything is sent: the highest limit in force, which then only
        measures; None where no limit is in force.
        """
        in_force = (each.chosen.policy for each in measured)
        limits = [each.limit for each in in_force if each and each.unit == self.kind.unit]
        return replace(self.kind, limit=max(limits)).metering() if limits else None

    # The table

    @cached_property
    def ways(self) -> list[Way]:
        advice, sums = self.advice, self.sums
        found: list[tuple[CostedPolicy, str, str]] = []
        if advice.today:
            found.append((advice.today, "yours today", "is-you"))
        found += self._others()
        rows, names = [], set()
        for point, note, css in found:
            name = policy_short(point.policy)
            if css == "is-you":
                name = policy_short(self.today_policy) if self.today_policy else "their own"
            if name not in names:
                names.add(name)
                rows.append(self._way(point, name, note, css))
        if sums.calls:
            is_pick = advice.pick is not None and advice.pick.policy is None
            suggested = ("suggested", "is-pick") if is_pick else ("", "")
            rows.append(self._way(self.chooser.everything, "Everything", *suggested))
        return rows

    def _others(self) -> Iterator[tuple[CostedPolicy, str, str]]:
        """Yield the policies that are worth a row, the cheapest first."""
        points, advice = self.chooser.points, self.advice
        named: list[tuple[CostedPolicy, str, str]] = []
        limit = self.address.limit
        if limit:
            chosen = [each for each in points if each.policy == self.address.policy(limit)]
            named += [(each, "chosen", "") for each in chosen]
        if advice.pick and advice.pick.policy:
            named.append((advice.pick, "suggested", "is-pick"))
        if advice.option:
            named.append((advice.option, f"cheapest with {self._share}", ""))
        as_today = self.chooser.as_today().pick if advice.today else None
        if as_today and as_today.policy:
            named.append((as_today, "as much as you hold today, cheapest", ""))
        sliding = [each for each in points if each.policy and each.policy.low_water == WHOLE]
        enough = list(filter(self.chooser.is_enough, sliding))
        if enough:
            cheapest = min(enough, key=lambda each: each.cost)
            named.append((cheapest, f"the cheapest sliding one with {self._share}", ""))
        yield from sorted(named, key=lambda row: row[0].cost)

    @property
    def _share(self) -> str:
        return enough_words(self.chooser.goals)

    def _way(self, point: CostedPolicy, name: str, note: str, css: str) -> Way:
        tally, calls = point.tally, self.sums.calls
        cells = [
            share_words(point, self.sums.recalls),
            f"{self.sums.recalls - tally.held:,}",
            f"{tally.user_repeated:,}",
            f"{tally.call_repeated:,}",
            f"{round(tally.tokens / calls):,}" if calls else "",
            wording.percent(tally.read, tally.tokens),
        ]
        cost = cost_words(point.cost)
        return Way(name, note, cells, cost, self._money(tally), css, point.cost > 1.005)

    def _money(self, tally: Tally) -> str:
        calls = self.sums.calls
        weight = self.chooser.prices.weight(self.sums.bill(tally))
        return self.address.prices.money(weight, 1_000 / calls) if calls else ""

    # The groups

    @cached_property
    def groups(self) -> list[GroupRow]:
        """The rows of the groups; none if there is only one."""
        groups = self.found.groups
        return list(map(self._group_row, groups)) if len(groups) > 1 else []

    def _group_row(self, group: Group) -> GroupRow:
        chooser = self._chooser(group.members)
        advice, today = chooser.as_today(), chooser.today
        name = group.name or "all others"
        what = "label" if group.is_label else "id begins with" if group.name else ""
        group_filter = {"label" if group.is_label else "prefix": group.name} if group.name else {}
        link = self.address.link(**group_filter) if group.name else ""
        needs = f"{group.half:,} · {group.nine_in_ten:,}" if group.half else ""
        policies = [each for each in group.policies if each is not None]
        in_force = policy_short(policies[0]) if len(policies) == 1 else "various"
        row = GroupRow(group, name, what, link, needs, in_force if policies else "", "no advice")
        pick = today if advice.why is AdviceReason.NOTHING_CHEAPER else advice.pick
        if pick is None:
            why = "nothing was needed in three calls or more"
            return row._replace(note=why if advice.why is AdviceReason.NOTHING_NEEDED else "")
        advised = pick.policy or self._everything(group.members)
        is_same = pick is today or (advised is not None and policies == [advised])
        row = row._replace(
            suggested="as today" if is_same else policy_short(pick.policy),
            note=_group_note(advice),
            policy="" if is_same or advised is None else text_of_policy(advised),
            only_measures=pick.policy is None,
            held=f"{pick.tally.held:,}",
            incidents=f"{pick.tally.again:,}",
            cost=cost_words(pick.cost),
        )
        if today is None:
            return row
        weight, bill = chooser.prices.weight, chooser.sums.bill
        tallies = (today.tally, pick.tally, chooser.sums.everything)
        was, then, everything = (weight(bill(each)) for each in tallies)
        row = row._replace(change=Change(today.tally, pick.tally, was, then, everything))
        return row._replace(
            held=f"{today.tally.held:,} → {row.held}",
            incidents=f"{today.tally.again:,} → {row.incidents}",
            cost=f"{cost_words(today.cost)} → {row.cost}",
        )

    @property
    def fixable(self) -> list[GroupRow]:
        """The groups for which another policy is advised."""
        return [row for row in self.groups if row.policy]

    def fixing(self, rows: Iterable[GroupRow]) -> list[tuple[str, str]]:
        """Return the sums of the suggestions of some groups, each with its name."""
        change = Change()
        for row in rows:
            change = change.plus(row.change)
        if not change.everything:
            return []
        was, then = (each / change.everything for each in (change.cost_was, change.cost_then))
        found = [
            ("Facts held", f"{change.was.held:,} → {change.then.held:,}"),
            ("Incidents gone", f"{change.was.again - change.then.again:,} of {change.was.again:,}"),
            (self.cost_name, f"{was:.2f} → {then:.2f} of sending everything"),
        ]
        if self.address.prices.has_money and self.sums.calls:
            saved = self.address.prices.money(change.cost_was - change.cost_then, 1)
            found.append(("Saved on these prompts", saved))
        return found

    @property
    def left_out(self) -> str:
        """The ids of the first few conversations that need far more than the others."""
        return _ids(self.found.left_out)

    @property
    def left_out_words(self) -> str:
        count = len(self.found.left_out)
        is_one = count == 1
        limits = [each.figures.need or 0 for each in self.found.left_out]
        most = in_unit(max(limits, default=0), self.kind)
        more = f" and {count - NAMED:,} more" if count > NAMED else ""
        verb = "is left out: it needs" if is_one else "are left out: they need up to"
        return f"{more} {verb} {most}, over four times what nine in ten of the others need."

    @property
    def of_clients(self) -> str:
        return _ids(self.found.of_clients)

    @property
    def of_clients_words(self) -> str:
        count = len(self.found.of_clients)
        more = f" and {count - NAMED:,} more" if count > NAMED else ""
        has_limit = any(each.chosen.policy for each in self.found.of_clients)
        why = "no limit is enforced" if has_limit else "the client decides"
        return f"{more} {'is' if count == 1 else 'are'} left out: {why}."

    # The list

    @property
    def losers(self) -> Iterator[tuple[Loser, str]]:
        """The conversations that lose most, each with the address that shows it."""
        for each in self.losers_of:
            yield each, self._compared(each)

    @property
    def shown_policy(self) -> Policy | None:
        """The policy whose losses are listed: the one in the address, yours, or the suggestion."""
        if self.address.limit:
            limit = max(self.address.limit, self.kind.least_limit)
            return self.address.policy(limit)
        pick = self.advice.pick or self.advice.option
        policy = (pick and pick.policy) or (self.advice.option and self.advice.option.policy)
        return policy or None

    def _compared(self, each: Loser) -> str:
        """Return the address that compares a conversation, or shows it."""
        address = page_url("compare", each.id)
        if not address:
            return conversation_url(each.id, msg=each.needed)
        policies = (("policy", text) for text in (text_of_policy(self.shown_policy), "everything"))
        return f"{address}?{urlencode([*policies, ('at', each.at), ('phrase', each.fact)])}"


def _ids(measured: Sequence[Measured]) -> str:
    """Return the ids of the first few conversations."""
    return ", ".join(Truncator(each.chosen.id).chars(40) for each in measured[:NAMED])


def _group_note(advice: Advice) -> str:
    if advice.pick and advice.pick.policy is None:
        return (
            "no limit saves 10 %" if advice.why is AdviceReason.NOTHING_SAVES else advice.why.value
        )
    return ""
