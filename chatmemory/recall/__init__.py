"""Recall: how many of the needed facts a window still holds. Computed without a model.

A recall is the use, in an AI message, of a fact that a user or a tool gave earlier. The recall is
held if a message with the fact was in the window just before the AI message, else it is lost.
Repetitions by users and repeated tool calls count as recalls, too (see `needs`).

For each policy, the history is replayed from an empty window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.message import ChatMessage, chat_messages
from chatmemory.recall.comparison import RecallCurve, curve_of, replay
from chatmemory.recall.cost import NO_BOUNDS, NO_PRICES, NOTHING_SENT, Bill, CacheRules, Prices
from chatmemory.recall.facts import Words, words_of
from chatmemory.recall.history import History, history_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, Policy, TokenWindow
from chatmemory.windows.written_policies import checked_policies, checked_policy

__all__ = [
    "Recall",
    "RecallCurve",
    "for_each_policy",
    "histories_for",
    "recall",
    "recall_curve",
    "recall_of",
    "recalls_of",
]


# Wide: the public result of recall(), whose names are the columns of the command and of the API.
@dataclass(frozen=True)
class Recall:
    """The figures of a policy for some conversations. The policy None sends everything.

    Facts:

    - `recalls`: the number of uses of earlier facts, plus the number of repeated tool calls.
    - `held`: the number of recalls whose fact or tool result was still in memory.
    - `nothing_lost`: the number of conversations in which every recall is held.
    - `user_repeated`: the number of messages in which a user repeated a fact that had left memory.
    - `call_repeated`: the number of repeated tool calls whose earlier result had left memory.
    - `by_index`: the number of lost recalls whose fact was listed in an index message.

    Prompts:

    - `calls`, `prompt_tokens`: the number of model calls, and the tokens of their prompts.
    - `reusable_tokens`: the tokens of the prefix that each prompt shares with the previous prompt.
    - `read_tokens`, `written_tokens`: the tokens read from the provider's prompt cache and written
      to it.
    - `everything`: the bill of sending everything.
    """

    policy: Policy | None
    conversations: int = 0
    recalls: int = 0
    held: int = 0
    nothing_lost: int = 0
    user_repeated: int = 0
    prompt_tokens: int = 0
    calls: int = 0
    reusable_tokens: int = 0
    call_repeated: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    by_index: int = 0
    everything: Bill = NOTHING_SENT

    @property
    def lost(self) -> int:
        return self.recalls - self.held

    @property
    def bill(self) -> Bill:
        return Bill(self.calls, self.prompt_tokens, self.read_tokens, self.written_tokens)

    @property
    def tally(self) -> Tally:
        again = self.user_repeated, self.call_repeated
        tokens = self.prompt_tokens, self.read_tokens, self.written_tokens
        return Tally(self.held, *again, *tokens, self.by_index)

    def relative_cost(self, prices: Prices = NO_PRICES) -> float | None:
        """Return the cost of the prompts divided by the cost of sending everything. None if sending
        everything costs nothing, such as without a prompt.

        Without a cached price in `prices`, the numbers of prompt tokens are divided instead.
        """
        return prices.relative(self.bill, self.everything)

    def plus(self, other: Recall) -> Recall:
        """Return these figures plus the figures of other conversations under the same policy."""
        names = [each.name for each in fields(self) if each.name != "policy"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(self, **sums)


def recall(
    messages: Iterable[ChatMessage],
    policies: Sequence[Policy | None],
    *,
    terms: Sequence[str] = (),
    prefixes: Sequence[str] = (),
    rules: CacheRules = NO_BOUNDS,
) -> list[Recall]:
    """Measure the recall of a conversation under each policy. The policy None sends everything.

    - `terms`: words that count as facts although they have no digit.
    - `prefixes`: beginnings of such words: `INV-` makes `INV-new` a fact.
    - `rules`: the rules of the provider's prompt cache.

    Raises InvalidValue, UnknownEstimator, PolicyUnavailable, UnsupportedMessage.
    """
    policies = checked_policies(policies)
    each = histories_for(chat_messages(messages), policies, words_of(terms, prefixes))
    return recalls_of(each, policies, rules)


def histories_for(
    messages: Sequence[ChatMessage], policies: Sequence[Policy | None], words: Words
) -> list[History]:
    """Return the history of these messages once for each policy, with tokens as the policy's
    estimator counts them.
    """
    return for_each_policy(
        policies, lambda name: history_of(messages, estimator_for(name or DEFAULT_ESTIMATOR), words)
    )


def for_each_policy(
    policies: Sequence[Policy | None], read: Callable[[str | None], History]
) -> list[History]:
    """Return a history for each policy. `read` makes a history for the name of an estimator, and is
    called once for each name.

    The policy None gets the history of the first policy that is not None. If all policies are None,
    `read` is called with None.
    """
    named = next((policy.estimator for policy in policies if policy), None)
    names = [policy.estimator if policy else named for policy in policies]
    histories = {name: read(name) for name in set(names)}
    return [histories[name] for name in names]


def recall_of(history: History, policy: Policy | None, rules: CacheRules = NO_BOUNDS) -> Recall:
    """Measure the recall of a history under a policy. In the result, `everything` is
    `NOTHING_SENT`.
    """
    found = replay(history, policy)
    bill = found.prompts.bill(rules)
    return Recall(
        policy,
        conversations=1,
        recalls=found.recalls,
        held=found.held,
        nothing_lost=int(not found.lost),
        user_repeated=found.count_of(IncidentKind.USER_REPEATED),
        call_repeated=found.count_of(IncidentKind.CALL_REPEATED),
        prompt_tokens=bill.tokens,
        calls=bill.calls,
        reusable_tokens=found.prompts.reusable,
        read_tokens=bill.read,
        written_tokens=bill.written,
        by_index=found.by_index,
    )


def recalls_of(
    histories: Sequence[History], policies: Sequence[Policy | None], rules: CacheRules = NO_BOUNDS
) -> list[Recall]:
    """Measure the recall of a conversation under each policy. `histories` has the history for each
    policy, in the same order.
    """
    known: dict[tuple[int, Policy | None], Recall] = {}

    def found(history: History, policy: Policy | None) -> Recall:
        if (key := (id(history), policy)) not in known:
            known[key] = recall_of(history, policy, rules)
        return known[key]

    return [
        replace(found(history, policy), everything=found(history, None).bill)
        for history, policy in zip(histories, policies, strict=True)
    ]


def recall_curve(
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    *,
    terms: Sequence[str] = (),
    prefixes: Sequence[str] = (),
) -> RecallCurve:
    """Return how many recalls of a conversation are held at each limit.

    Only kind and options of `policy` are used, not its limit. The default policy is a token window.
    Raises the same exceptions as `recall`.
    """
    policy = checked_policy(policy) or TokenWindow(1)
    conversation, words = chat_messages(messages), words_of(terms, prefixes)
    return curve_of(history_of(conversation, estimator_for(policy.estimator), words), policy)
