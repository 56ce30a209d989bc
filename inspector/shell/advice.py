"""The advice about conversations, as every page shows it: one card, and effects in previews.

The figures come from the room that measures them; without it, there is no advice. Prices are those
of the provider in use, and everything must fit the models in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from chatmemory import InvalidValue, Policy
from chatmemory.advice import (
    Advice,
    DecidedBy,
    Effect,
    Goals,
    LeftOut,
    Measured,
    Option,
    Verdict,
    advise,
    effect_of,
    or_everything,
    words,
)
from chatmemory.advice.values import DEARER
from chatmemory.known_models import smallest_prompt
from chatmemory.reading import conversations
from chatmemory.reading.clients import ids_of_clients
from chatmemory.recall.cost import Prices
from chatmemory.recall.frontier import Figures
from chatmemory.rooms import providers_in_use
from inspector.conf import inspector_configuration
from inspector.shell.prices import ChosenPrices
from inspector.shell.rooms import measured, page_url

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


MOST_KNOWN = 64
_known: dict[tuple[object, ...], tuple[Figures | None, Advice]] = {}


def models_in_use() -> list[str]:
    """Return the names of the models in use, as far as somebody has chosen them."""
    return sorted({each for names in (providers_in_use() or {}).values() for each in names})


def goals_in_use(context: int | None = None, *, spares_users: bool = False) -> Goals:
    """Return the goals of this site, for a model that takes a `context` of tokens, by default the
    smallest of the models in use.
    """
    saving = inspector_configuration().LEAST_SAVING / 100
    takes = context or smallest_prompt(models_in_use())
    return Goals(saving=saving, context=takes, spares_users=spares_users)


@dataclass(frozen=True)
class AdviceCard:
    """The presenter of advice. About one conversation, it has the `memory_id`, and `of_client` if a
    client decides the window.
    """

    advice: Advice
    prices: ChosenPrices
    memory_id: str = ""
    of_client: bool = False

    @property
    def title(self) -> str:
        return words.headline(self.advice)

    @property
    def effect(self) -> str:
        return words.effect(self.advice)

    @property
    def why(self) -> str:
        return words.why(self.advice)

    @property
    def measured_on(self) -> str:
        return words.measured_words(self.advice.measured, bool(self.memory_id))

    @property
    def cost_of_today(self) -> str:
        """By how much today's costs more or less than sending everything, with the cause, if it was
        measured, as a sentence; empty if it is not known.
        """
        cost = words.cost_of_today(self.advice)
        cause = self.cause
        subject = "Today’s window" if self.memory_id else "What is in force"
        return f"{subject} {cost}{f': {cause}' if cause else ''}." if cost else ""

    @property
    def cause(self) -> str:
        chosen = self.prices.chosen
        name = chosen.label.partition(",")[0] if chosen else ""
        return words.cause_words(self.advice, name, chosen.rules.least if chosen else 0)

    @property
    def how_much_more(self) -> str:
        """`11 % more at OpenAI’s prices`, with the cause if it was measured; empty if today's costs
        no more than sending everything, or if it is not known.
        """
        today = self.advice.today
        if today is None or today.cost < DEARER:
            return ""
        more = f"{words.more_or_less(today.cost)} than sending everything"
        at = f" at {self.prices.prices_of}" if self.prices.prices_of else ""
        return f"{more}{at}{f': {self.cause}' if self.cause else ''}"

    @property
    def policy(self) -> str:
        """The text of the advised policy, for the form of its verb; empty if there is no verb."""
        pick = self.advice.pick
        return pick.text if pick and self.advice.is_change else ""

    @property
    def verb(self) -> str:
        """The label of the button that previews the advised policy."""
        pick = self.advice.pick
        return words.policy_verb(pick.policy) if pick else ""

    @property
    def repair_url(self) -> str:
        """The URL of the repair of a refused window; empty without the room, or if none is."""
        is_refused = self.advice.verdict is Verdict.REFUSED
        return page_url("repair", self.memory_id) if is_refused and self.memory_id else ""

    @property
    def to_copy(self) -> str:
        """The policy that a client could use, as text."""
        pick = self.advice.pick
        return pick.text if pick and self.advice.verdict is Verdict.CLIENT else ""

    @property
    def is_worth_a_line(self) -> bool:
        """Whether the page of a conversation shows the card: a change is advised, or today's loses
        facts or costs more than sending everything.
        """
        today = self.advice.today
        if today is not None and (today.lost or today.cost >= DEARER):
            return True
        return self.advice.verdict in (Verdict.CHANGE, Verdict.SEND_EVERYTHING)

    @property
    def adopt_url(self) -> str:
        """The URL of the preview of a policy; empty without one, of several conversations, and
        where a client decides.
        """
        return page_url("adopt", self.memory_id) if self.memory_id and not self.of_client else ""

    def keeping(self, policy: Policy) -> AdviceCard:
        """Return the card with the option of a policy, such as the limit that keeps a fact."""
        option = self.advice.at(policy)
        if option is None and (preview := preview_of({self.memory_id: policy})):
            option = preview.effect.after
        return self.beside(option)

    def beside(self, option: Option | None) -> AdviceCard:
        """Return the card with an option that was asked for."""
        return replace(self, advice=replace(self.advice, keeps=option))

    @property
    def keeps(self) -> str:
        """The cost of the requested limit, beside the cost today; "" if it is not known."""
        keeps, today = self.advice.keeps, self.advice.today
        if keeps is None:
            return ""
        beside = f", today’s {words.cost_words(today.cost)}" if today else ""
        is_priced = self.advice.measured.prices.priced == "cache"
        verb, of = ("cost", "") if is_priced else ("send", " of the tokens")
        cost = words.cost_words(keeps.cost)
        return f"This limit would {verb} {cost}{of}{beside}, relative to sending everything (1.00)."

    @property
    def offers_kept(self) -> bool:
        """Whether the limit that was asked for may be offered."""
        keeps = self.advice.keeps
        return not self.of_client if keeps is None else self.offers(keeps)

    def offers(self, option: Option) -> bool:
        """Return whether an option may be offered: no client decides, and no option dominates."""
        return not self.of_client and not self.advice.is_dominated(option)

    @property
    def offers_pin(self) -> bool:
        """Whether a pin may be offered: everything does not fit the model."""
        return self.advice.everything is not None and not self.advice.everything.fits

    @property
    def others(self) -> list[OtherWay]:
        """The further options on offer."""
        return [OtherWay(self.advice, each) for each in self.advice.others]

    @property
    def dominated(self) -> str:
        return words.dominated_words(self.advice)


@dataclass(frozen=True)
class OtherWay:
    """Another option of a card."""

    advice: Advice
    option: Option

    @property
    def name(self) -> str:
        return words.policy_short(self.option.policy)

    @property
    def effect(self) -> str:
        return words.effect_words(self.advice.today, self.option, self.advice.measured.prices)

    @property
    def policy(self) -> str:
        return self.option.text


def advice_on(memory_id: str, prices: ChosenPrices | None = None) -> AdviceCard | None:
    """Return the advice about one conversation; None without a room that measures.

    By default, the prices are those of the provider in use.
    """
    prices = prices or ChosenPrices.read({})
    found = measured([memory_id], rules=prices.rules)
    if found is None:
        return None
    (one,) = found or (Measured(memory_id),)
    advice = _advice_of(one, goals_in_use(), prices.named)
    return AdviceCard(advice, prices, memory_id, one.decided_by is DecidedBy.CLIENT)


def _advice_of(one: Measured, goals: Goals, prices: Prices) -> Advice:
    """Return the advice about one conversation. The latest ones are known, for a page that is
    loaded again and again while the figures stay the same object.
    """
    about = (
        one.id,
        one.policy,
        one.decided_by,
        one.refused,
        one.said,
        goals,
        prices,
        prices.source,
    )
    figures, advice = _known.get(about, (None, None))
    if advice is None or figures is not one.figures:
        advice = advise([one], goals, prices)
        while len(_known) >= MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
        _known[about] = one.figures, advice
    return advice


def advice_of(view: ConversationState) -> AdviceCard | None:
    """Return the advice about the conversation of a page, read once."""
    if "advice" not in view.read:
        view.read["advice"] = advice_on(view.memory.id)
    found: AdviceCard | None = view.read["advice"]
    return found


def policy_to_adopt(policy: Policy | None, memory_id: str) -> Policy:
    """Return the policy that a change of one conversation sets: see `policy_to_set`. Raises
    MemoryNotFound, InvalidValue.
    """
    in_force = conversations.policy(memory_id)
    return policy_to_set(policy, None if ids_of_clients([memory_id]) else in_force)


def policy_to_set(policy: Policy | None, in_force: Policy | None) -> Policy:
    """Return the policy that a change sets: sending everything (None) is the policy in force, which
    then only measures. Raises InvalidValue if a client decides.
    """
    if in_force is None:
        raise InvalidValue("Only your client can change this: it decides what is in memory.")
    return in_force.metering() if policy is None else policy


@dataclass(frozen=True)
class Preview:
    """The effect of other policies in conversations, for a preview before they are set. `policies`
    are those of the measured conversations, by id.
    """

    effect: Effect
    prices: ChosenPrices
    policies: Mapping[str, Policy | None]

    @cached_property
    def sums(self) -> list[tuple[str, str]]:
        """The facts and the cost, each with its name."""
        return words.effect_sums(self.effect)

    @property
    def warning(self) -> str:
        """A warning that sending everything is better, or that some conversations would cost more
        than sending everything; "" if neither is true.
        """
        return words.effect_warning(self.effect)

    @property
    def unread(self) -> Sequence[str]:
        """The ids of the conversations whose figures are not known yet."""
        return self.effect.measured.left_out.get(LeftOut.UNREAD, ())

    @property
    def unknown(self) -> str:
        """Why no effect is shown."""
        return words.unknown_effect(self.effect)

    @property
    def measured_on(self) -> str:
        return words.measured_words(self.effect.measured, self.effect.measured.of == 1)


def preview_of(
    policies: Mapping[str, Policy | None],
    prices: ChosenPrices | None = None,
    *,
    spares_dominated: bool = False,
) -> Preview | None:
    """Return the effect of other policies, by the ids of conversations; None sends everything. None
    without a room that measures. The prices are those of the provider in use by default.

    With `spares_dominated`, a conversation sends everything where that dominates its policy.
    """
    prices = prices or ChosenPrices.read({})
    limits = {id: each for id, each in policies.items() if each is not None}
    found = measured(list(policies), limits, prices.rules)
    if found is None:
        return None
    goals, named = goals_in_use(), prices.named
    pairs = [(each, policies[each.id]) for each in found]
    if spares_dominated:
        pairs = [(each, or_everything(each, policy, goals, named)) for each, policy in pairs]
    chosen = {each.id: policy for each, policy in pairs}
    return Preview(effect_of(pairs, goals, named), prices, chosen)
