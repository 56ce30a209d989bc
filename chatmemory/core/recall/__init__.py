"""Recall: how much of what the assistant needed a window still holds, without any model.

A fact is a term that nobody can guess. A recall is a fact in an AI message that an earlier message
held; it is held if a message that mentions it was in the window just before the AI message arrived,
and else lost: the model could not have read it there. Of a stored conversation, a fact that had to
be said or fetched again counts as one more recall: it was needed there, too. What was said is
replayed from an empty window under one constant policy, so that policies compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from chatmemory.core.estimators import estimator_for
from chatmemory.core.given import chat_messages
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import DEFAULT_ESTIMATOR, Policy, TokenWindow
from chatmemory.core.recall.comparison import RecallCurve, curve_of, replay
from chatmemory.core.recall.facts import Words, words_of
from chatmemory.core.recall.history import History, history_of
from chatmemory.core.recall.kinds import IncidentKind
from chatmemory.core.written_policies import given_policies, given_policy

__all__ = [
    "Recall",
    "RecallCurve",
    "for_each_policy",
    "histories_for",
    "recall",
    "recall_curve",
    "recall_of",
    "recall_sums",
]


@dataclass(frozen=True)
class Recall:
    """How much a policy would have held of some conversations; the policy None holds everything.

    `nothing_lost` counts the conversations without a lost recall. `user_repeated` and
    `call_repeated` count the messages in which users said again, and calls fetched again, what this
    policy had forgotten. `prompt_tokens` are the tokens of all `calls` of the model, and
    `reusable_tokens` those of the beginnings that are equal to the previous call.
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

    @property
    def lost(self) -> int:
        return self.recalls - self.held

    def plus(self, other: Recall) -> Recall:
        """Return the sums of both, for more conversations under the same policy."""
        names = [each.name for each in fields(self) if each.name != "policy"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(self, **sums)


def recall(
    messages: Iterable[ChatMessage],
    policies: Sequence[Policy | None],
    *,
    terms: Sequence[str] = (),
    prefixes: Sequence[str] = (),
) -> list[Recall]:
    """Return what each policy would have held of a conversation; None keeps everything.

    `terms` and `prefixes` are words that are facts although they hold no digit. Raises
    InvalidValue, UnknownEstimator, PolicyUnavailable, UnsupportedMessage.
    """
    policies = given_policies(policies)
    each = histories_for(chat_messages(messages), policies, words_of(terms, prefixes))
    return [recall_of(history, policy) for history, policy in zip(each, policies, strict=True)]


def histories_for(
    said: Sequence[ChatMessage], policies: Sequence[Policy | None], words: Words
) -> list[History]:
    """Return the history of messages for each policy, counted by its estimator."""
    return for_each_policy(
        policies, lambda name: history_of(said, estimator_for(name or DEFAULT_ESTIMATOR), words)
    )


def for_each_policy(
    policies: Sequence[Policy | None], read: Callable[[str | None], History]
) -> list[History]:
    """Return a history for each policy, read once by the name of each estimator.

    A policy that is None takes the estimator of the others; without any, its name is None.
    """
    named = next((policy.estimator for policy in policies if policy), None)
    names = [policy.estimator if policy else named for policy in policies]
    histories = {name: read(name) for name in set(names)}
    return [histories[name] for name in names]


def recall_of(history: History, policy: Policy | None) -> Recall:
    """Return what a policy would have held of one history."""
    found = replay(history, policy)
    return Recall(
        policy,
        conversations=1,
        recalls=found.recalls,
        held=found.held,
        nothing_lost=int(not found.lost),
        user_repeated=found.count_of(IncidentKind.USER_REPEATED),
        call_repeated=found.count_of(IncidentKind.CALL_REPEATED),
        prompt_tokens=found.prompts.tokens,
        calls=found.prompts.calls,
        reusable_tokens=found.prompts.reusable,
    )


def recall_sums(
    conversations: Iterable[Sequence[History]], policies: Sequence[Policy | None]
) -> list[Recall]:
    """Return the sums over conversations, each given as one history for each policy."""
    found = [Recall(policy) for policy in policies]
    for histories in conversations:
        for place, history in enumerate(histories):
            found[place] = found[place].plus(recall_of(history, policies[place]))
    return found


def recall_curve(
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    *,
    terms: Sequence[str] = (),
    prefixes: Sequence[str] = (),
) -> RecallCurve:
    """Return how many recalls are held at every limit of a conversation, from one pass.

    The limit of `policy` is ignored; without one, it is a token window. Raises the exceptions of
    `recall`.
    """
    policy = given_policy(policy) or TokenWindow(1)
    said, words = chat_messages(messages), words_of(terms, prefixes)
    return curve_of(history_of(said, estimator_for(policy.estimator), words), policy)
