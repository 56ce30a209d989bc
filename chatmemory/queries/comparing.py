"""A stored conversation replayed under several policies, for one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatmemory.core.policies import Policy, TokenWindow, can_decide, measured
from chatmemory.core.recall.comparison import Compared, compare
from chatmemory.core.recall.curves import curve_of
from chatmemory.core.recall.histories import History
from chatmemory.core.recall.phrases import Followed, follow
from chatmemory.core.recall.refusals import Refusals
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.queries.history import said_by
from chatmemory.queries.recalling import estimator_of, recall_history
from chatmemory.queries.rows import MemoryRow, memory_row
from chatmemory.queries.windows import beginnings

COMPARED_MAX = 10_000  # messages, the latest
POLICIES_MAX = 4
ROWS = 24
EARLIER_ROWS = 6
TEXT_SIZE = 200
OFFERED_SHARE = 0.95
Policies = Sequence[Policy | None]


@dataclass(frozen=True)
class ComparedRow:
    """A message of the table: its position, and the beginning of its text."""

    position: int
    seq: int
    text: str
    mentions: bool


@dataclass(frozen=True)
class Comparison:
    """A conversation under several policies; None is a window without a limit.

    `at` is the number of messages that are said at the chosen place, and `rows` are the messages
    before it. `mentions` are the positions of the messages that hold the phrase, and `followed`
    tells for each policy what became of it. `offered` is the smallest limit that holds 95 % of the
    recalls, as a policy, if there is one.
    """

    memory: MemoryRow
    history: History
    policies: tuple[Compared, ...]
    at: int
    rows: tuple[ComparedRow, ...]
    phrase: str
    mentions: tuple[int, ...]
    followed: tuple[Followed, ...]
    offered: Policy | None

    @property
    def is_part(self) -> bool:
        """Whether only the latest messages are replayed."""
        return len(self.history) < self.memory.said_count


@one_snapshot()
def comparison(
    memory_id: str, policies: Policies, at: int | None = None, phrase: str = ""
) -> Comparison:
    """Return a conversation under up to four policies; without any, those that are worth a look.

    `at` is a number of messages, by default all; `phrase` is followed. The estimators of the
    policies are replaced by that of the first one, or else the conversation's, so that their
    tokens compare. Of a long conversation the latest 10,000 messages are replayed. Raises
    MemoryNotFound, UnknownEstimator, PolicyUnavailable.
    """
    memory = find_memory(memory_id)
    name = next((policy.estimator for policy in policies if policy), estimator_of(memory))
    history = recall_history(memory_id, name, latest=COMPARED_MAX)
    place = len(history) if at is None else min(at, len(history))
    offered = _offered(history, memory.policy, name)
    chosen = _distinct(policies or [memory.policy, offered, None], name)
    refusals = Refusals(history)
    compared = tuple(compare(history, policy, refusals) for policy in chosen)
    mentions = _mentions(memory_id, memory.last_seq, history, phrase)
    return Comparison(
        memory_row(memory),
        history,
        compared,
        place,
        _rows(memory_id, history, place, mentions),
        phrase,
        mentions,
        tuple(follow(history, each.left, mentions, each.policy, place) for each in compared),
        offered,
    )


def _distinct(policies: Policies, estimator: str) -> list[Policy | None]:
    """Return policies that can decide, counted alike, each once."""
    chosen: list[Policy | None] = []
    for policy in policies:
        counted = measured(replace(policy, estimator=estimator)) if can_decide(policy) else policy
        if (counted is None or can_decide(counted)) and counted not in chosen:
            chosen.append(counted)
    return chosen[:POLICIES_MAX]


def _offered(history: History, current: Policy | None, estimator: str) -> Policy | None:
    """Return the smallest limit that holds nearly all recalls, of the kind that is in force."""
    kind = current if can_decide(current) else TokenWindow(1)
    policy = measured(replace(kind, estimator=estimator))
    curve = curve_of(history, policy, most_adds=COMPARED_MAX)
    limit = curve.smallest_limit(OFFERED_SHARE) if curve.recalls else None
    return replace(policy, limit=limit) if limit else None


def _mentions(memory_id: str, newest: int, history: History, phrase: str) -> tuple[int, ...]:
    """Return the positions of the messages with a fact, or with a phrase in their text."""
    if not phrase:
        return ()
    by_fact = tuple(place for place, facts in enumerate(history.facts) if phrase in facts)
    if by_fact:
        return by_fact
    found = said_by(memory_id, newest).filter(text__icontains=phrase)
    seqs = set(found.values_list("seq", flat=True))
    return tuple(place for place, seq in enumerate(history.numbers) if seq in seqs)


def _rows(
    memory_id: str, history: History, at: int, mentions: Sequence[int]
) -> tuple[ComparedRow, ...]:
    """Return the messages before a place, and the last earlier ones that hold the phrase."""
    first = max(0, at - ROWS)
    earlier = [position for position in mentions if position < first][-EARLIER_ROWS:]
    shown = [*earlier, *range(first, at)]
    texts = beginnings(memory_id, [history.numbers[each] for each in shown], TEXT_SIZE)
    holding = set(mentions)
    return tuple(
        ComparedRow(each, seq, texts.get(seq, ""), each in holding)
        for each in shown
        for seq in (history.numbers[each],)
    )
