"""The lab's page: advice for many conversations together and for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from django.utils.http import urlencode

from chatmemory import Policy, can_decide, policy_kinds, text_of_policy
from chatmemory.advice import (
    Advice,
    Goals,
    LeftOut,
    Measured,
    Option,
    Verdict,
    advise_groups,
    words,
)
from chatmemory.advice.values import DEARER
from chatmemory.explain import wording
from chatmemory.known_models import known_model, smallest_prompt
from chatmemory.recall.kinds import WORDS as KIND_WORDS
from chatmemory.recall.kinds import IncidentKind
from inspector.conversation.links import conversation_url
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.chart import PHONE, TABLET, WIDE, Frontier
from inspector.rooms.lab.frameworks import Frameworks, Mark, frameworks
from inspector.rooms.lab.reads import OTHERS, Fleet, LossExample, is_label, needs_of
from inspector.shell.advice import AdviceCard, Preview, goals_in_use, models_in_use, preview_of
from inspector.shell.prices import Preset
from inspector.shell.rooms import page_url
from inspector.shell.times import written

APART = (LeftOut.OUTLIER, LeftOut.OTHER_UNIT, LeftOut.CLIENT)  # not changed with the others


class Way(NamedTuple):
    """A row of the table of policies, with figures as text.

    - `name`: the policy, such as "Everything".
    - `note`: why the policy is listed, such as "your policy today", or "".
    - `cells`: the other figures in the order of the columns, from the share of facts held to the
      share of cached tokens.
    - `cost`: the cost relative to sending everything.
    - `money`: the price of 1,000 calls; "" without an input price.
    - `css`: the CSS class of the row.
    - `is_over`: whether the policy costs more than sending everything.
    - `by_index`: how many of the lost facts the index still listed; "" for a policy without an
      index.
    """

    name: str
    note: str
    cells: Sequence[str]
    cost: str
    money: str
    css: str = ""
    is_over: bool = False
    by_index: str = ""


class Figure(NamedTuple):
    """A line of the panel that compares today's policy with the advised policy.

    - `name`: the name of the figure, such as "Cost of 1,000 calls".
    - `was`: the value with today's policy; "" if it is unknown.
    - `now`: the value with the advised policy.
    """

    name: str
    was: str
    now: str
    css: str = ""


def _has_index(policy: Policy | None) -> bool:
    return can_decide(policy) and policy.indexed_terms > 0


class GroupRow:
    """A row of the table of groups: the limits that the group's conversations need, and the advice.
    `policy` is the advised policy as text; "" if nothing is to be changed.
    """

    def __init__(self, name: str, members: Sequence[Measured], advice: Advice, link: str) -> None:
        self.key, self.members, self.advice, self.link = name, members, advice, link
        self.name = name if name != OTHERS else "all other conversations"
        self.what = "" if name == OTHERS else "label" if is_label(name) else "beginning of IDs"
        pick, today, scope = advice.pick, advice.today, advice.measured
        counted, number = scope.conversations, len(members)
        self.count = f"{number:,}" if counted == number else f"{counted:,} of {number:,}"
        half, most = needs_of(members, scope)
        self.needs = f"{half:,} · {most:,}" if half and most else ""
        self.today = words.name_of(today) if today else ""
        self.policy = pick.text if pick and advice.is_change else ""
        self.suggested, self.note = _suggested(advice)
        self.held = self.incidents = self.cost = ""
        if pick is not None:
            self.held = _change(today, pick, lambda each: f"{each.held:,}")
            self.incidents = _change(today, pick, lambda each: f"{each.repeated:,}")
            self.cost = _change(today, pick, lambda each: words.cost_words(each.cost))

    @property
    def effect(self) -> str:
        return words.effect(self.advice)

    @property
    def changed(self) -> list[str]:
        """The IDs of the group's conversations that would get the advised policy."""
        return reached(self.members, self.advice)


def _suggested(advice: Advice) -> tuple[str, str]:
    """Return the advice for a group in a few words, and a note or ""."""
    if advice.verdict is Verdict.KEEP:
        return "keep today’s policy", ""
    if advice.verdict is Verdict.CLIENT or advice.pick is None:
        return "no advice", words.headline(advice).removeprefix("No advice: ")
    few = "few facts needed" if advice.is_few else ""
    return words.policy_short(advice.pick.policy), few or (
        "" if advice.needed else "chosen by cost alone"
    )


def _change(today: Option | None, pick: Option, shown: Callable[[Option], str]) -> str:
    return f"{shown(today)} → {shown(pick)}" if today else shown(pick)


def reached(members: Iterable[Measured], advice: Advice) -> list[str]:
    """Return the IDs of the `members` that would get the advised policy. These are all members,
    except:

    - outliers (conversations that are far larger than the others);
    - conversations whose limit counts in another unit than the limits of most conversations;
    - conversations whose clients decide the window.
    """
    apart = {id for reason in APART for id in advice.measured.left_out.get(reason, ())}
    return [each.id for each in members if each.id not in apart]


# Long: presents one page; each property is what a part of the page shows.
class FleetPage:
    """Presents the lab page for many conversations: advice, chart, controls and tables."""

    def __init__(self, found: Fleet, address: FleetAddress) -> None:
        self.found, self.address = found, address
        self.models = models_in_use()
        # The context of the model in tokens: the number in the address, else the one of the models
        # in use
        self.known_context = smallest_prompt(self.models)
        self.context = address.context or self.known_context
        self.kind = found.tried.kind
        self.loss_examples: Sequence[LossExample] = ()
        measured = (each for members in found.groups.values() for each in members)
        self.advice, self.of_groups = advise_groups(measured, self.goals, address.prices.named)
        self.card = AdviceCard(self.advice, address.prices)
        self.csv = address.link(**{"as": "csv"})
        self.stop = address.link(stop="1")
        self.with_strategies = address.link(strategies="1")
        self.kinds = [
            (name, kind.unit, address.link(kind=name, limit=""), name == address.kind)
            for name, kind in policy_kinds().items()
        ]

    @property
    def goals(self) -> Goals:
        repeats = self.address.flagged == "user_repeated"
        return goals_in_use(self.address.context, spares_users=repeats)

    # The prices

    @property
    def presets(self) -> list[tuple[str, str, Preset]]:
        """The cache prices to choose from: the prices of each provider, and the reader's own
        prices.

        Each choice has a name such as `openai` or `own`, the URL of the page with these prices, and
        the texts to show.
        """
        address = self.address
        return [
            (each.name, address.with_provider(each.name), each) for each in address.prices.presets
        ]

    @property
    def beside_prices(self) -> list[tuple[str, str]]:
        """The URL parameters for which the price form has no visible field, as pairs of name and
        value. The form sends them in hidden fields.
        """
        mine = ("input", "cached", "write", "currency", "context")
        return [
            (name, value) for name, value in self.address.parameters.items() if name not in mine
        ]

    @property
    def context_words(self) -> str:
        """A sentence on the context window of the models in use; "" if it is not known."""
        if self.known_context is None:
            return ""
        known = known_model(self.models[0])
        as_of = f", as of {written(known.as_of, 'date')}" if known else ""
        names = ", ".join(self.models)
        return f"Context window of {names}: {self.known_context:,} tokens{as_of}."

    # The answer

    @property
    def has_answer(self) -> bool:
        return self.found.is_done and bool(self.found.known)

    @property
    def everything(self) -> Option | None:
        return self.advice.everything

    @cached_property
    def frameworks(self) -> Frameworks | None:
        """The figures of agent frameworks; None if the URL does not ask for them."""
        asked = self.address.frameworks
        return frameworks(asked) if asked and self.has_answer else None

    @cached_property
    def marks(self) -> list[Mark]:
        """The figures of agent frameworks as points of the chart. Conversations that the advice
        leaves out do not count.
        """
        if self.frameworks is None:
            return []
        out = [id for ids in self.advice.measured.left_out.values() for id in ids]
        return self.frameworks.marks(self.address.prices.prices, out)

    @cached_property
    def charts(self) -> list[Frontier]:
        """The chart in three sizes for different screens; empty if no facts were needed."""
        if not self.advice.needed or self.everything is None:
            return []
        return [
            Frontier(self.advice, self.everything, size, self.marks)
            for size in (WIDE, TABLET, PHONE)
        ]

    # The panel

    @property
    def figures(self) -> Iterator[Figure]:
        """Yield the lines of the panel that compares today's policy with the advised policy."""
        pick, today, everything = self.advice.pick, self.advice.today, self.everything
        if pick is None or everything is None:
            return

        def line(name: str, shown: Callable[[Option], str], css: str = "") -> Figure:
            return Figure(name, shown(today) if today else "", shown(pick), css)

        if pick.needed:
            yield line("Share of facts held", words.share_words)
            yield line(
                f"Facts held, of {pick.needed:,} needed", lambda each: f"{each.held:,}", "sub"
            )
        by_user, by_call = (
            KIND_WORDS[kind].title
            for kind in (IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED)
        )
        yield line(by_user, lambda each: f"{each.tally.user_repeated:,}")
        yield line(by_call, lambda each: f"{each.tally.call_repeated:,}")
        yield line(self.cost_name, lambda each: words.cost_words(each.cost))
        if self.address.prices.has_money:
            yield line("Cost of 1,000 calls", self._money)

    @property
    def cost_name(self) -> str:
        return words.cost_name(self.address.prices.prices).capitalize()

    @property
    def pick_policy(self) -> str:
        """The advised policy for all conversations, as text; "" if none is advised."""
        return self.card.policy if self.reached else ""

    @cached_property
    def reached(self) -> list[str]:
        """The IDs of the measured conversations that get the policy when somebody sets one policy
        for all. The function `reached` says which conversations are left out.
        """
        return reached((each.measured for each in self.found.known), self.advice)

    @property
    def apart(self) -> list[str]:
        """The IDs of the conversations to leave out when somebody sets one policy for all:

        - measured conversations that are outliers, or whose limit counts in another unit than the
          limits of most conversations;
        - if a group is chosen: matching conversations of other groups, and conversations of the
          chosen group that are not measured.
        """
        reasons = (LeftOut.OUTLIER, LeftOut.OTHER_UNIT)
        left_out = self.advice.measured.left_out
        found = [id for reason in reasons for id in left_out.get(reason, ())]
        if self.address.members:
            members = {each.chosen.id for each in self.found.known}
            ids = self.address.which.rows().values_list("id", flat=True)
            found += [id for id in ids if id not in members]
        return found

    def effect_of(self, policy: Policy | None) -> Preview | None:
        """Return the effect of setting `policy` for all conversations in `reached`. The policy None
        means sending everything.

        Return None if no room provides figures of conversations.
        """
        return preview_of(dict.fromkeys(self.reached, policy), self.address.prices)

    # The table

    @cached_property
    def ways(self) -> list[Way]:
        """The rows of the table of policies. Today's policy is the first row. Then follow, the
        cheapest first:

        - the policy with the limit in the URL;
        - the advised policy;
        - at most three further policies from the advice.

        Sending everything is the last row, unless an earlier row shows it.
        """
        advice, rows, named = self.advice, list[Way](), set[str]()
        for option, note, css in self._named():
            name = words.name_of(option)
            if name not in named:
                named.add(name)
                rows.append(self._way(option, name, note, css))
        everything = advice.everything
        if everything is not None and "Everything" not in named:
            rows.append(self._way(everything, "Everything", "", ""))
        return rows

    def _named(self) -> Iterator[tuple[Option, str, str]]:
        advice, limit = self.advice, self.address.limit
        if advice.today:
            yield advice.today, "your policy today", "is-you"
        rest: list[tuple[Option, str, str]] = []
        if limit and (chosen := advice.at(self.address.policy(limit))):
            rest.append((chosen, "chosen limit", ""))
        if advice.pick and advice.verdict is not Verdict.KEEP:
            rest.append((advice.pick, "suggested", "is-pick"))
        rest += [(each, "", "") for each in advice.others]
        yield from sorted(rest, key=lambda row: row[0].cost)

    def _way(self, option: Option, name: str, note: str, css: str) -> Way:
        tally, calls = option.tally, option.calls
        cells = [
            words.share_words(option) if option.needed else "",
            f"{option.lost:,}",
            f"{tally.user_repeated:,}",
            f"{tally.call_repeated:,}",
            f"{round(tally.tokens / calls):,}" if calls else "",
            wording.percent(tally.read, tally.tokens),
        ]
        cost, money = words.cost_words(option.cost), self._money(option)
        by_index = f"{tally.by_index:,}" if _has_index(option.policy) else ""
        return Way(name, note, cells, cost, money, css, option.cost >= DEARER, by_index)

    @property
    def names_facts(self) -> bool:
        """Whether a policy in the table has an index of exact terms. If so, the table has a column
        for the facts that the index listed.
        """
        return any(way.by_index for way in self.ways)

    def _money(self, option: Option) -> str:
        prices, calls = self.address.prices, option.calls
        weight = prices.prices.weight(option.tally.bill(calls))
        return prices.money(weight, 1_000 / calls) if calls else ""

    # The groups

    @cached_property
    def groups(self) -> list[GroupRow]:
        """The rows of the groups; empty if there is only one group."""
        found = self.found.groups
        if len(found) < 2:
            return []
        return [
            GroupRow(name, members, self.of_groups[name], self.address.link(members=name))
            for name, members in found.items()
        ]

    @property
    def of_clients(self) -> int:
        """The number of conversations whose clients decide the window. Advice is not adopted for
        these conversations.
        """
        left_out = (each.measured.left_out for each in self.of_groups.values())
        return sum(len(ids.get(LeftOut.CLIENT, ())) for ids in left_out)

    @property
    def fixable(self) -> list[GroupRow]:
        """The rows of the groups for which a policy other than today's is advised."""
        return [row for row in self.groups if row.policy and row.changed]

    def previewed(self, rows: Iterable[GroupRow]) -> Preview | None:
        """Return the effect of adopting the advice for the groups in `rows`. Return None if no room
        provides figures of conversations.
        """
        return preview_of(
            {id: row.advice.pick.policy for row in rows for id in row.changed if row.advice.pick},
            self.address.prices,
        )

    # The list

    @property
    def linked_examples(self) -> Iterator[tuple[LossExample, str]]:
        """Up to five conversations that lose the most facts under `shown_policy`, each with a link.

        The link opens the page that compares policies on the conversation. If this page is not
        installed, the link opens the conversation.
        """
        for each in self.loss_examples:
            yield each, self._compared(each)

    @property
    def shown_policy(self) -> Policy | None:
        """The policy whose lost facts the page lists. The first choice is the policy with the limit
        in the URL, then the advised policy, then today's policy.

        Sending everything is skipped. None if no policy is left.
        """
        if self.address.limit:
            limit = max(self.address.limit, self.kind.least_limit)
            return self.address.policy(limit)
        options = (self.advice.pick, self.advice.today)
        return next((each.policy for each in options if each and each.policy), None)

    def _compared(self, each: LossExample) -> str:
        """Return the URL that compares policies on a conversation, or shows the conversation."""
        address = page_url("compare", each.id)
        if not address:
            return conversation_url(each.id, msg=each.needed)
        policies = (("policy", text) for text in (text_of_policy(self.shown_policy), "everything"))
        return f"{address}?{urlencode([*policies, ('at', each.at), ('phrase', each.fact)])}"
