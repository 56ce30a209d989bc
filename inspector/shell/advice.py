"""Advice on which policy fits a conversation, as a card for pages. A preview shows the effect of a
policy before it is set.

Without a room that measures conversations, there is no advice. By default, prices are those of the
provider in use. Sending everything is advised only if the prompt fits into the context window of
all models in use.
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
from chatmemory.recall.frontier import Figures
from chatmemory.rooms import providers_in_use
from inspector.conf import inspector_configuration
from inspector.shell.prices import ChosenPrices
from inspector.shell.rooms import measured, page_url

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


MOST_KNOWN = 64
_known: dict[tuple[object, ...], tuple[Figures | None, AdviceCard]] = {}


def models_in_use() -> list[str]:
    """Return the names of the models that somebody has marked as in use, in alphabetical order."""
    return sorted({each for names in (providers_in_use() or {}).values() for each in names})


def goals_in_use(context: int | None = None, *, spares_users: bool = False) -> Goals:
    """Return the goals that a policy must reach on this site to be advised, such as a minimum
    saving. `context` is the context window in tokens. The default is the smallest context window of
    the models in use.

    With `spares_users`, a policy is advised only if no user has to repeat a fact.
    """
    saving = inspector_configuration().LEAST_SAVING / 100
    takes = context or smallest_prompt(models_in_use())
    return Goals(saving=saving, context=takes, spares_users=spares_users)


@dataclass(frozen=True, eq=False)
class AdviceCard:
    """Presents the advice about one or several conversations.

    - `memory_id`: the ID of a single conversation; "" for several.
    - `of_client`: whether a client decides the window of the single conversation.
    - `kept`: a policy with its figures, whose cost the card compares with the cost today; or None.
      An example is a policy whose limit would have kept a fact.

    Cards are compared by identity, because comparing their advice would be slow.
    """

    advice: Advice
    prices: ChosenPrices
    memory_id: str = ""
    of_client: bool = False
    kept: Option | None = None

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
        """A sentence that compares the cost of today's policy with sending everything. The reason
        for a higher cost follows, if it is known. "" if the cost is unknown, or if everything is
        sent today.
        """
        cost = words.cost_of_today(self.advice)
        cause = self.cause
        subject = "Today’s limit" if self.memory_id else "Keeping today’s policies"
        return f"{subject} {cost}{f': {cause}' if cause else ''}." if cost else ""

    @property
    def cause(self) -> str:
        chosen = self.prices.chosen
        name = chosen.label.partition(",")[0] if chosen else ""
        return words.cause_words(self.advice, name, chosen.rules.least if chosen else 0)

    @property
    def how_much_more(self) -> str:
        """How much more today's policy costs: `11 % more than sending everything at OpenAI’s
        prices`. The reason follows, if it is known.

        "" if today's policy costs no more, or if the cost is unknown.
        """
        today = self.advice.today
        if today is None or today.cost < DEARER:
            return ""
        more = f"{words.more_or_less(today.cost)} than sending everything"
        at = f" at {self.prices.prices_of}" if self.prices.prices_of else ""
        return f"{more}{at}{f': {self.cause}' if self.cause else ''}"

    @property
    def policy(self) -> str:
        """The advised policy as text, for the button that sets the policy; "" if no change is
        advised.
        """
        pick = self.advice.pick
        return pick.text if pick and self.advice.is_change else ""

    @property
    def verb(self) -> str:
        """The label of the button that previews the advised policy; "" if no policy is advised."""
        pick = self.advice.pick
        return words.policy_verb(pick.policy) if pick else ""

    @property
    def repair_url(self) -> str:
        """The URL of the repair if a provider would reject the window; else "". Also "" for several
        conversations, and if no room for repairs is installed.
        """
        is_refused = self.advice.verdict is Verdict.REFUSED
        return page_url("repair", self.memory_id) if is_refused and self.memory_id else ""

    @property
    def to_copy(self) -> str:
        """The advised policy as text to copy into the code of a client; "" if no client decides the
        window.
        """
        pick = self.advice.pick
        return pick.text if pick and self.advice.verdict is Verdict.CLIENT else ""

    @property
    def is_worth_a_line(self) -> bool:
        """Whether the conversation page shows the card: if a change is advised, or if today's
        policy loses facts or costs more than sending everything.
        """
        today = self.advice.today
        if today is not None and (today.lost or today.cost >= DEARER):
            return True
        return self.advice.verdict in (Verdict.CHANGE, Verdict.SEND_EVERYTHING)

    @property
    def adopt_url(self) -> str:
        """The URL that sets a policy after a preview. "" for several conversations, and if a client
        decides the window.
        """
        return page_url("adopt", self.memory_id) if self.memory_id and not self.of_client else ""

    def keeping(self, policy: Policy) -> AdviceCard:
        """Return this card with `policy` and its figures as `kept`. If the advice has no figures
        for this policy, the figures are measured now. If this is impossible, `kept` is None.
        """
        option = self.advice.at(policy)
        if option is None and (preview := preview_of({self.memory_id: policy})):
            option = preview.effect.after
        return self.beside(option)

    def beside(self, option: Option | None) -> AdviceCard:
        """Return this card with `option` as `kept`. An option is a policy with its figures.
        `option` is None if the figures are unknown.
        """
        return replace(self, kept=option)

    @property
    def keeps(self) -> str:
        """A sentence that compares the relative cost under the policy of `kept` with the relative
        cost today. "" if `kept` is None.
        """
        kept, today = self.kept, self.advice.today
        if kept is None:
            return ""
        name = words.cost_name(self.advice.measured.prices).capitalize()
        beside = f", {words.cost_words(today.cost)} with today’s" if today else ""
        cost = words.cost_words(kept.cost)
        return f"{name}: {cost} with this limit{beside}. Sending everything is 1.00."

    @property
    def offers_kept(self) -> bool:
        """Whether pages may offer the policy of `kept`; see `offers`. If `kept` is None, this is
        True unless a client decides the window.
        """
        return not self.of_client if self.kept is None else self.offers(self.kept)

    def offers(self, option: Option) -> bool:
        """Return whether pages may offer the policy of `option`. They may not if a client decides
        the window, or if another measured policy is better (see `Option.dominates`).
        """
        return not self.of_client and not self.advice.is_dominated(option)

    def better_than(self, option: Option) -> str:
        """Return the name of a policy that is better than the policy of `option`, such as "A limit
        of 8 messages". "" if no measured policy is better; see `Option.dominates`.
        """
        better = self.advice.better_than(option)
        return words.subject(better) if better else ""

    @property
    def offers_pin(self) -> bool:
        """Whether pages may offer to pin a message: only if sending everything does not fit into
        the context window.
        """
        return self.advice.everything is not None and not self.advice.everything.fits

    @property
    def others(self) -> list[OtherWay]:
        """At most three options that the card shows besides the advised policy. No option dominates
        any of these options; see `Option.dominates`.
        """
        return [OtherWay(self.advice, each) for each in self.advice.others]

    @property
    def dominated(self) -> str:
        return words.dominated_words(self.advice)


@dataclass(frozen=True)
class OtherWay:
    """Presents an option of `AdviceCard.others`: the name of its policy, and its effect."""

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
    """Return the advice about one conversation; None if no room measures conversations.

    Without `prices`, the prices are those of the provider in use.
    """
    prices = prices or ChosenPrices.read({})
    found = measured([memory_id], rules=prices.rules)
    if found is None:
        return None
    (one,) = found or (Measured(memory_id),)
    return _card_of(one, goals_in_use(), prices)


def _card_of(one: Measured, goals: Goals, prices: ChosenPrices) -> AdviceCard:
    """Return the advice about one conversation. The latest results are cached, for pages that are
    loaded repeatedly.
    """
    about = (one.id, one.policy, one.decided_by, one.refused, one.said, goals, prices)
    figures, card = _known.get(about, (None, None))
    if card is None or figures is not one.figures:
        advice = advise([one], goals, prices.named)
        card = AdviceCard(advice, prices, one.id, one.decided_by is DecidedBy.CLIENT)
        while len(_known) >= MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
        _known[about] = one.figures, card
    return card


def advice_of(view: ConversationState) -> AdviceCard | None:
    """Return the advice about the conversation of a page; None if no room measures conversations.
    The advice is read once for each page.
    """
    if "advice" not in view.read:
        view.read["advice"] = advice_on(view.memory.id)
    found: AdviceCard | None = view.read["advice"]
    return found


def policy_to_adopt(policy: Policy | None, memory_id: str) -> Policy:
    """Return the policy to set on a conversation in order to use `policy`; see `policy_to_set`.
    None means sending everything. Raises MemoryNotFound, and InvalidValue if a client decides the
    window.
    """
    in_force = conversations.policy(memory_id)
    return policy_to_set(policy, None if ids_of_clients([memory_id]) else in_force)


def policy_to_set(policy: Policy | None, in_force: Policy | None) -> Policy:
    """Return the policy to set on a conversation in order to use `policy`: `policy` itself, unless
    it is None.

    None means sending everything. For None, return the conversation's present policy, `in_force`,
    with `meters_only`, so that nothing leaves memory.

    Raises InvalidValue if `in_force` is None, because then a client decides the window.
    """
    if in_force is None:
        raise InvalidValue("Only your client can change what memory holds.")
    return in_force.metering() if policy is None else policy


@dataclass(frozen=True)
class Preview:
    """The effect that new policies would have, shown before they are set. `policies` has the new
    policy of each measured conversation, by conversation ID; None means sending everything.
    """

    effect: Effect
    prices: ChosenPrices
    policies: Mapping[str, Policy | None]

    @cached_property
    def sums(self) -> list[tuple[str, str]]:
        """The totals of the effect, such as facts held and cost, as pairs of name and value."""
        return words.effect_sums(self.effect)

    @property
    def warning(self) -> str:
        """A warning if the new policies cost more than sending everything; else "". The warning
        says that sending everything is better, or how many conversations would cost more.
        """
        return words.effect_warning(self.effect)

    @property
    def unread(self) -> Sequence[str]:
        """The IDs of the conversations whose figures are not computed yet."""
        return self.effect.measured.left_out.get(LeftOut.UNREAD, ())

    @property
    def unknown(self) -> str:
        """A sentence that says why the effect is unknown. Pages show the sentence if `sums` is
        empty.
        """
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
    """Return the effect of setting new policies; None if no room measures conversations.

    `policies` has the new policy of each conversation, by ID; None means sending everything.
    Without `prices`, the prices are those of the provider in use.

    With `spares_dominated`, a policy becomes None if sending everything is better in every way.
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
