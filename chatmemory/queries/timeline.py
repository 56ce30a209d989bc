"""The tape: a conversation's steps, all of them or a sample."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, can_decide, load_of
from chatmemory.core.window import Totals
from chatmemory.models import Stay, Step


@dataclass(frozen=True)
class TapeCell:
    """One sampled step: the window's load and all tokens said by then, and the message it
    brought.
    """

    step: int
    load: int
    history: int
    seq: int | None
    type: MessageType | None
    has_calls: bool
    tokens: int
    left_step: int | None


TAPE_SAMPLES = 400


def tape(memory_id: str, steps: int, at: int) -> list[TapeCell]:
    """Up to 400 steps: all of them, or the nearest 200 and a sample of the rest taken by key.

    `load` and `history` count messages under a message window, tokens otherwise.
    """
    numbers = sample(steps, at)
    rows = list(Step.objects.filter(memory_id=memory_id, n__in=numbers).order_by("n"))
    newest = {row.last_stay: row.n for row in rows if row.kind == Step.Kind.ADD}
    stays = Stay.objects.filter(memory_id=memory_id, n__in=list(newest))
    brought = {stay.entered_step: stay for stay in stays if stay.entered_step == newest[stay.n]}
    return [_tape_cell(row, brought.get(row.n)) for row in rows]


def sample(steps: int, at: int) -> list[int]:
    """The numbers of the sampled steps, ascending; `at` is among them."""
    if steps <= TAPE_SAMPLES:
        return list(range(1, steps + 1))
    near = range(max(1, at - 100), min(steps, at + 100) + 1)
    spread = TAPE_SAMPLES - len(near)
    far = (1 + round(i * (steps - 1) / (spread - 1)) for i in range(spread))
    return sorted({*near, *far})


def _tape_cell(row: Step, stay: Stay | None) -> TapeCell:
    policy = row.policy
    after = Totals(row.count_after, row.tokens_after)
    return TapeCell(
        step=row.n,
        load=after.tokens if (load := load_of(policy, after)) is None else load,
        history=_said_load(row, policy),
        seq=stay.seq if stay else None,
        type=MessageType(stay.type) if stay else None,
        has_calls=bool(stay and stay.has_calls),
        tokens=stay.tokens if stay else 0,
        left_step=stay.left_step if stay else None,
    )


def _said_load(row: Step, policy: Policy | None) -> int:
    """What all that was said by then weighs, in the policy's unit and without its overhead."""
    said = Totals(row.said_count, row.history_tokens)
    return max(0, policy.load(*said) - policy.overhead) if can_decide(policy) else said.tokens
