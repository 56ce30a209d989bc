"""The steps of a conversation for its timeline: all of them, or a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, can_decide, load_or_tokens
from chatmemory.core.window import Totals
from chatmemory.models import Stay, Step

SAMPLES_MAX = 400
NEAR = 100


@dataclass(frozen=True)
class StepSample:
    """A step with the loads of window and history after it, and the message that it added.

    `load` and `history` are in the unit of the step's policy, or in tokens without a policy.
    """

    step: int
    load: int
    history: int
    seq: int | None = None
    type: MessageType | None = None
    has_calls: bool = False
    tokens: int = 0
    left_step: int | None = None


def step_samples(memory_id: str, steps: int, at: int) -> list[StepSample]:
    """Return all steps, or those around `at` and an even sample of the others: up to 400.

    Steps are read by primary key, so that the cost does not depend on their number.
    """
    numbers = sample_numbers(steps, at)
    rows = list(Step.objects.filter(memory_id=memory_id, n__in=numbers).order_by("n"))
    newest = {row.last_stay: row.n for row in rows if row.kind == Step.Kind.ADD}
    stays = Stay.objects.filter(memory_id=memory_id, n__in=list(newest))
    arrivals = {stay.entered_step: stay for stay in stays if stay.entered_step == newest[stay.n]}
    policies = _policies(rows)
    return [_sample(row, policies[_policy_key(row)], arrivals.get(row.n)) for row in rows]


def sample_numbers(steps: int, at: int) -> list[int]:
    """Return the numbers of the sampled steps in ascending order, with `at` among them."""
    if steps <= SAMPLES_MAX:
        return list(range(1, steps + 1))
    near = range(max(1, at - NEAR), min(steps, at + NEAR) + 1)
    spread = SAMPLES_MAX - len(near)
    far = (1 + round(i * (steps - 1) / (spread - 1)) for i in range(spread))
    return sorted({*near, *far})


def said_load(policy: Policy | None, said: Totals) -> int:
    """Return the load of the history in the policy's unit, without the overhead."""
    return max(0, policy.load(*said) - policy.overhead) if can_decide(policy) else said.tokens


def _policies(rows: Sequence[Step]) -> dict[tuple[object, ...], Policy | None]:
    """Return each policy of the steps once: most conversations have one or two."""
    firsts = {_policy_key(row): row for row in rows}
    return {key: row.policy for key, row in firsts.items()}


def _policy_key(row: Step) -> tuple[object, ...]:
    return row.policy_kind, row.policy_limit, row.policy_estimator, str(row.policy_options)


def _sample(row: Step, policy: Policy | None, stay: Stay | None) -> StepSample:
    after = Totals(row.count_after, row.tokens_after)
    return StepSample(
        step=row.n,
        load=load_or_tokens(policy, after),
        history=said_load(policy, Totals(row.said_count, row.history_tokens)),
        seq=stay.seq if stay else None,
        type=MessageType(stay.type) if stay else None,
        has_calls=bool(stay and stay.has_calls),
        tokens=stay.tokens if stay else 0,
        left_step=stay.left_step if stay else None,
    )
