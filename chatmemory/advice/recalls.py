"""Measures requested policies on conversations: how many facts each policy holds, and what its
prompts cost. The module also gives advice.

For the advice, many limits are tried, not only the requested policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from chatmemory.advice.choosing import advise
from chatmemory.advice.values import USUAL, Advice, Goals, Measured
from chatmemory.messages.message import ChatMessage
from chatmemory.recall import Recall, histories_for, recalls_of
from chatmemory.recall.cost import NO_BOUNDS, NO_PRICES, CacheRules, Prices
from chatmemory.recall.facts import Words
from chatmemory.recall.frontier import (
    MEASURED_MAX,
    TriedPolicies,
    figures_of,
    limit_needed,
    tried_of_kind,
)
from chatmemory.recall.history import History
from chatmemory.windows.policies import Policy, TokenWindow


@dataclass
class Recalls:
    """Measures the requested `policies` on conversations: facts held and prompt tokens.

    `rows` has the sums over all conversations, one item for each policy. `measured` are the
    conversations, with the figures for an advice. `rules` are the rules of the provider's prompt
    cache.
    """

    policies: Sequence[Policy | None]
    rules: CacheRules = NO_BOUNDS
    measured: list[Measured] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = [Recall(policy) for policy in self.policies]
        self._of_each: dict[str, list[Recall]] = {}

    def add(self, histories: Sequence[History], measured: Measured) -> None:
        """Add a conversation. `measured` has the figures from which the advice is made.

        `histories` has the conversation's history once for each item of `policies`, in the same
        order. These histories can differ in their token counts, because each policy has its own
        estimator.
        """
        if histories:
            found = recalls_of(histories, self.policies, self.rules)
            self.rows = [row.plus(each) for row, each in zip(self.rows, found, strict=True)]
            self._of_each[measured.id] = found
        self.measured.append(measured)

    def add_said(
        self,
        name: str,
        said: Sequence[ChatMessage],
        tried: TriedPolicies,
        words: Words,
        today: Policy | None = None,
    ) -> None:
        """Add a conversation with the messages `said`, from a file or a request. Only its newest
        MEASURED_MAX messages are measured.

        `name` becomes the id of the conversation. `tried` are the policies to compare for the
        advice, and `today` is the policy in force. `words` are additions to the rules that find
        facts.
        """
        newest = said[-MEASURED_MAX:]
        history, *histories = histories_for(newest, [tried.kind, *self.policies], words)
        self.add(histories, measured_of(name, history, tried, today, len(said)))

    def advice(self, prices: Prices = NO_PRICES, goals: Goals = USUAL) -> Advice:
        return advise(self.measured, goals, prices)

    def relative_costs(self, advice: Advice) -> list[float | None]:
        """Return the relative cost of each requested policy. All costs are None if no conversation
        has a prompt.

        Each cost is the mean over the conversations from which the advice was computed. If the
        advice left out all conversations, the cost is the mean over all conversations.
        """
        prices, scope = advice.measured.prices, advice.measured
        out = {id for ids in scope.left_out.values() for id in ids} if scope.conversations else ()
        counted = [found for id, found in self._of_each.items() if id not in out]
        costs = ([each.relative_cost(prices) for each in found] for found in counted)
        known = [found for found in costs if None not in found]
        if not known:
            return [None] * len(self.rows)
        columns = zip(*known, strict=True)
        return [sum(each or 0.0 for each in column) / len(known) for column in columns]


def kind_to_try(policies: Iterable[Policy | None], today: Policy | None = None) -> Policy:
    """Return the policy whose limit is varied for the advice.

    This is `today`, the policy in force. If `today` is None, it is the first of `policies` that is
    not None. If all are None, it is a token window.
    """
    found = (each for each in (today, *policies) if each is not None)
    return next(found, TokenWindow(1)).enforced()


def tried_for(
    kind: Policy, policies: Iterable[Policy | None], rules: CacheRules, today: Policy | None = None
) -> TriedPolicies:
    """Return the policies to try for an advice: variants of the policy `kind`, each with many
    limits.

    The limits of `policies` and of `today` are also tried if their unit is the unit of `kind`.
    `rules` are the rules of the provider's prompt cache.
    """
    named = (each for each in (today, *policies) if each is not None)
    return tried_of_kind(kind, {each.limit for each in named if each.unit == kind.unit}, rules)


def measured_of(
    name: str,
    history: History,
    tried: TriedPolicies,
    today: Policy | None = None,
    said: int | None = None,
) -> Measured:
    """Return the figures of a conversation under the policies `tried`. `name` becomes the id of the
    conversation, and `today` is the policy in force.

    `said` is the number of all messages if `history` has only the newest messages, else None.
    """
    needed = limit_needed(history.entries, tried.kind)
    beside = replace(tried, also=tuple(sorted({*tried.also, needed} - {0})))
    figures = figures_of(history, beside, today)
    return Measured(name, figures, tried, today, said=len(history) if said is None else said)
