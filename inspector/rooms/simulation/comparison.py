"""Replays one conversation under several policies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from chatmemory.ledger.lookup import find_memory
from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import turns_by_provider
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.messages.phrases import has_phrase
from chatmemory.messages.texts import readable_text
from chatmemory.models import Step
from chatmemory.reading.history import estimator_of
from chatmemory.reading.recall import messages_and_history
from chatmemory.recall.comparison import PhraseFate, Replay, follow, replay
from chatmemory.recall.frontier import MEASURED_MAX
from chatmemory.recall.history import History
from chatmemory.recall.prompts import Refusals
from chatmemory.rooms import providers_in_use
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import measured

POLICIES_MAX = 4
ROWS = 24
EARLIER_ROWS = 6
TEXT_SIZE = 200
Policies = Sequence[Policy | None]


@dataclass(frozen=True)
class ComparedRow:
    """A message in the table of a comparison.

    - `position`: the index of the message in `Comparison.history`.
    - `seq`: the number of the message.
    - `text`: the first 200 characters of its text.
    - `mentions`: whether the message has the searched phrase; see `SoughtPhrase.mentions`.
    """

    position: int
    seq: int
    text: str
    mentions: bool


class SoughtPhrase(NamedTuple):
    """The phrase that a comparison searches for. `phrase` is "" if no phrase is searched.

    `mentions` are the positions of the messages that have the phrase as a fact. If no message has
    this fact, they are the positions of the messages whose text contains the phrase.

    `fates` has one item for each policy: how long the policy keeps the phrase in memory.
    """

    phrase: str
    mentions: tuple[int, ...]
    fates: tuple[PhraseFate, ...]


@dataclass(frozen=True)
class Comparison:
    """The replays of one conversation under several policies.

    - `in_force`: the conversation's own policy. None if a client decides the window.
    - `said_count`: the number of all messages in the conversation's history.
    - `history`: the replayed messages: at most the latest 5,000.
    - `policies`: one replay for each policy. A replay with the policy None sends everything.
    - `at`: the chosen position in `history`, as the number of messages before it.
    - `rows`: the last messages before this position, and a few earlier messages with the searched
      phrase.
    - `leaves_out_pins`: whether any message was pinned. A replay ignores pins.
    - `is_chosen`: whether prompts are checked only by the rules of the providers in use. False if
      these providers are unknown. Then the rules of all providers are checked.
    """

    in_force: Policy | None
    said_count: int
    history: History
    policies: tuple[Replay, ...]
    at: int
    rows: tuple[ComparedRow, ...]
    sought: SoughtPhrase
    leaves_out_pins: bool = False
    is_chosen: bool = True

    @property
    def recalls(self) -> int:
        return self.policies[0].recalls

    @property
    def is_part(self) -> bool:
        """Whether only the latest messages are replayed."""
        return len(self.history) < self.said_count


@one_snapshot()
def comparison(
    memory_id: str,
    policies: Policies,
    at: int | None = None,
    phrase: str = "",
    step: int | None = None,
) -> Comparison:
    """Replay a conversation under up to four policies. The policy None sends everything. Without
    `policies`, replay the policy in force and sending everything.

    `at` is a position in the replayed history: the number of messages before it. With `step`, the
    position is after this step. Without `at` and `step`, it is at the end. The result says how long
    each policy keeps the `phrase`.

    - Only the latest 5,000 messages are replayed.
    - A policy with `meters_only`, which evicts nothing, is replayed as if it evicted messages.
    - All policies count tokens with the same estimator.

    Raises MemoryNotFound, UnknownEstimator, PolicyUnavailable.
    """
    memory = find_memory(memory_id)
    in_force, name = memory.policy, _estimator(policies, estimator_of(memory))
    messages, history = messages_and_history(memory_id, name, MEASURED_MAX)
    if step is not None:
        at = bisect_right(history.numbers, _last_seq_at(memory_id, step))
    place = len(history) if at is None else min(at, len(history))
    chosen = _distinct(policies or [in_force, None], name)
    use = providers_in_use(memory_id)
    compared = _replays(messages, history, chosen, use)
    mentions = _mentions(messages, history, phrase)
    gone_at = [(each.policy, each.departures.of_texts) for each in compared]
    fates = tuple(follow(history, gone, mentions, each, place) for each, gone in gone_at)
    return Comparison(
        in_force=in_force,
        said_count=memory.said_count,
        history=history,
        policies=compared,
        at=place,
        rows=_rows(messages, history, place, mentions),
        sought=SoughtPhrase(phrase, mentions, fates),
        leaves_out_pins=Step.objects.filter(memory=memory, kind=Step.Kind.PIN).exists(),
        is_chosen=use is not None,
    )


def _last_seq_at(memory_id: str, step: int) -> int:
    """Return the seq of the newest message at a step; 0 if no message was there yet."""
    steps = Step.objects.filter(memory_id=memory_id, n__lte=step).order_by("-n")
    return steps.values_list("last_seq", flat=True).first() or 0


def _estimator(policies: Policies, usual: str) -> str:
    return next((policy.estimator for policy in policies if policy), usual)


def _replays(
    messages: Sequence[ChatMessage],
    history: History,
    policies: Policies,
    use: Mapping[str, Sequence[str]] | None,
) -> tuple[Replay, ...]:
    """Replay a history under several policies, with the rules of the providers in `use`. With None,
    the rules of all providers are checked.
    """
    turns = turns_by_provider(messages, PROVIDERS if use is None else use, history.numbers)
    refusals = Refusals(history, turns, use)
    return tuple(replay(history, policy, refusals) for policy in policies)


def _distinct(policies: Policies, estimator: str) -> list[Policy | None]:
    """Return the policies to replay, each once. All evict, and all count tokens with the same
    estimator.
    """
    chosen: list[Policy | None] = []
    for policy in policies:
        replayed = _counted(policy, estimator) if can_decide(policy) else policy
        if (replayed is None or can_decide(replayed)) and replayed not in chosen:
            chosen.append(replayed)
    return chosen[:POLICIES_MAX]


def _counted(policy: Policy, estimator: str) -> Policy:
    return measured(replace(policy.enforced(), estimator=estimator))


def _mentions(messages: Sequence[ChatMessage], history: History, phrase: str) -> tuple[int, ...]:
    """Return the positions of the messages with the phrase as a fact. If there are none, return
    those whose text contains the phrase.
    """
    if not phrase:
        return ()
    by_fact = tuple(n for n in range(len(history)) if phrase in history.mentions(n))
    by_text = (n for n, message in enumerate(messages) if has_phrase(text_of(message), phrase))
    return by_fact or tuple(by_text)


def _rows(
    messages: Sequence[ChatMessage], history: History, at: int, mentions: Sequence[int]
) -> tuple[ComparedRow, ...]:
    """Return the messages just before position `at`, and the latest earlier messages with the
    phrase.
    """
    first, holding = max(0, at - ROWS), set(mentions)
    earlier = [position for position in mentions if position < first][-EARLIER_ROWS:]
    return tuple(
        ComparedRow(n, history.numbers[n], readable_text(messages[n])[:TEXT_SIZE], n in holding)
        for n in (*earlier, *range(first, at))
    )
