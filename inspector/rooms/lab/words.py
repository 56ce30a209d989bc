"""Policies, costs and advice in the words of the lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chatmemory import Policy
from chatmemory.explain import wording
from chatmemory.explain.wording import in_unit
from chatmemory.recall.advice import FEW, Advice, AdviceReason, Chooser, CostedPolicy, Goals
from chatmemory.recall.cost import Prices
from chatmemory.windows.policies import WHOLE, written_share

HALF = "0.5"
SLIDING = (
    "A sliding window drops messages at each turn: the prompt begins anew, and the provider’s "
    "cache misses."
)
BLOCKS = "Blocks make room rarely, so the beginning stays equal."


class Piece(NamedTuple):
    """A piece of a sentence; its style is `out` for higher costs, and `in` for lower ones."""

    text: str
    css: str = ""


def policy_short(policy: Policy | None) -> str:
    """Return a policy in a few words, such as `80,000 in blocks`. One that only measures sends
    everything.
    """
    if policy is None or policy.meters_only:
        return "Everything"
    number = f"{policy.limit:,}" if policy.unit == "tokens" else f"{policy.limit:,} {policy.unit}"
    return f"{number}{_depth(policy)}{_beginning(policy)}{_clearing(policy)}"


def policy_long(policy: Policy | None) -> str:
    """Return a policy as a heading, such as `80,000 tokens, in blocks down to half`."""
    if policy is None:
        return "Send everything"
    limit, mark = in_unit(policy.limit, policy), written_share(policy.low_water)
    depth = "" if policy.low_water == WHOLE else f", in blocks down to {_share(mark)}"
    return f"{limit}{depth}{_beginning(policy)}{_clearing(policy)}"


def _depth(policy: Policy) -> str:
    mark = written_share(policy.low_water)
    if policy.low_water == WHOLE:
        return " sliding"
    return " in blocks" if mark == HALF else f", down to {mark}"


def _share(mark: str) -> str:
    return "half" if mark == HALF else mark


def _beginning(policy: Policy) -> str:
    return ", from a user message on" if policy.snap_to_user else ""


def _clearing(policy: Policy) -> str:
    return ", old tool results cleared first" if policy.whole_results else ""


def limits_words(policies: Iterable[Policy | None]) -> str:
    """Return the limits that are in force, as the owner of one."""
    found = [*dict.fromkeys(policies)]
    if len(found) == 1 and found[0] is not None:
        return f"Your {in_unit(found[0].limit, found[0])}"
    return "Your limits"


def enough_words(goals: Goals) -> str:
    """Return the share of facts that a window must hold, such as `95 %`."""
    spared = " without a repetition by users" if goals.spares_users else ""
    return f"{100 * goals.share:.0f} %{spared}"


def share_words(point: CostedPolicy, recalls: int) -> str:
    return wording.percent(point.tally.held, recalls)


def cost_words(cost: float) -> str:
    """Return a relative cost with two decimals."""
    return f"{cost:.2f}"


class Headline:
    """The answer in a sentence, and a second one that says why."""

    def __init__(
        self, chooser: Chooser, advice: Advice, yours: str, yours_policy: Policy | None
    ) -> None:
        self._chooser, self._advice, self._prices = chooser, advice, chooser.prices
        self._yours, self._policy = yours, yours_policy
        self._recalls = chooser.sums.recalls

    @property
    def parts(self) -> Iterator[Piece]:
        """The parts of the headline."""
        advice, today = self._advice, self._advice.today
        pick = advice.pick
        share = enough_words(self._chooser.goals)
        if advice.why is AdviceReason.NOTHING_HOLDS:
            yield Piece(f"No window that fits the model holds {share}.")
        elif pick is None:
            yield Piece("No window holds enough for what everything would cost.")
        elif today and self._is_best(today):
            yield Piece(
                f"Nothing holds more for less than {_lower(self._yours)}{_how(self._policy)}."
            )
        elif today:
            yield from self._compared(today, pick)
        elif advice.why is AdviceReason.NOT_CHECKED:
            yield Piece(
                "Send everything: no window saves enough in each half of the conversations."
            )
        elif pick.policy is None and advice.option is None:
            yield Piece("Send everything: it loses nothing.")
        elif pick.policy is None:
            yield Piece("Sending everything costs about the same and loses nothing.")
        else:
            yield Piece(f"{policy_long(pick.policy)}, ")
            yield from self._change(pick, "costs", "sends")
            share_now = share_words(pick, self._recalls)
            yield Piece(f" than sending everything, and holds {share_now} of what was needed.")

    def _compared(self, today: CostedPolicy, pick: CostedPolicy) -> Iterator[Piece]:
        verb = "cost", "send"
        yield Piece(f"{self._yours} ")
        yield from self._change(today, *verb)
        than = "as" if self._is_close(today) else "than"
        if pick.policy is None:
            yield Piece(f" {than} sending everything, and hold ")
            yield Piece(share_words(today, self._recalls), "b")
            yield Piece(" of what was needed.")
            return
        yield Piece(f" {than} sending everything. ")
        yield Piece(self._instead(pick.policy), "in")
        yield Piece(", they ")
        yield from self._change(pick, *verb)
        held, before = pick.tally.held, today.tally.held
        instead = "as today" if held == before else f"in place of {before:,}"
        yield Piece(f" and hold {wording.counted(held, 'fact')} {instead}.")

    def _instead(self, policy: Policy) -> str:
        if self._policy is not None and policy.limit == self._policy.limit:
            return "Cut in blocks"
        return f"As {policy_long(policy)}"

    def _change(self, point: CostedPolicy, cost: str, send: str) -> Iterator[Piece]:
        """Yield by how much a cost differs; a saving under a tenth is not counted."""
        share = round(100 * abs(round(point.cost, 2) - 1))  # as tables show it
        is_priced = self._prices.priced == "cache"
        yield Piece(f"{cost} " if is_priced else f"{send} ")
        if self._is_close(point):
            yield Piece("about as much")
        elif point.cost > 1:
            yield Piece(f"{share} % more" if is_priced else f"{share} % more tokens", "out")
        else:
            yield Piece(f"{share} % less" if is_priced else f"{share} % fewer tokens", "b")

    def _is_close(self, point: CostedPolicy) -> bool:
        least = 1 - self._chooser.goals.saving
        return least < point.cost <= 1.005

    def _is_best(self, today: CostedPolicy) -> bool:
        is_saving = today.cost <= 1 - self._chooser.goals.saving + 1e-9
        return is_saving and self._advice.beaten_by is None

    @property
    def why(self) -> str:
        """Why, in a sentence or two."""
        advice, conversations = self._advice, self._chooser.sums.count
        found = []
        share = enough_words(self._chooser.goals)
        if advice.why is AdviceReason.NOTHING_SAVES:
            found.append(
                "Sending everything costs about the same as the cheapest limit that holds "
                f"{share}, and loses nothing."
                if advice.option
                else f"No limit that holds {share} costs less than sending everything."
            )
        elif advice.why is AdviceReason.NOT_CHECKED:
            found.append(
                "What a window saved in half of the conversations was not saved in the others: "
                "send everything, which loses nothing."
            )
        elif advice.why in (AdviceReason.DOES_NOT_FIT, AdviceReason.NOTHING_HOLDS):
            context = self._chooser.goals.context or 0
            found.append(f"Everything does not fit the model’s {context:,} tokens.")
        if advice.today and advice.today.cost > 1:
            found.append(SLIDING)
            if advice.pick and advice.pick.policy is not None:
                found.append(BLOCKS)
        if conversations < FEW:
            found.append(f"From {wording.counted(conversations, 'conversation')}.")
        if self._prices.priced == "tokens":
            found.append("Tokens are compared, because no price of cached input is chosen.")
        return " ".join(found)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _how(policy: Policy | None) -> str:
    return _depth(policy).replace(" sliding", "") if policy else ""


def dominated_words(today: CostedPolicy, better: CostedPolicy, prices: Prices) -> str:
    """Return the sentence about a policy that dominates yours."""
    what = "costs" if prices.priced == "cache" else "sends"
    less = "less" if better.cost < today.cost else "as much"
    more = "more" if better.tally.held > today.tally.held else "as many facts"
    name = "sending everything" if better.policy is None else policy_short(better.policy)
    return f"dominated: {name} {what} {less} and holds {more}"
