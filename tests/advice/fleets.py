"""Figures of conversations that never happened, for tests of the choice alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from chatmemory import MessageWindow
from chatmemory.advice import DecidedBy, Measured
from chatmemory.recall.cost import Prices
from chatmemory.recall.frontier import Figures, TriedPolicies
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import Policy

SLIDING, BLOCKS = MessageWindow(10**9), MessageWindow(10**9, low_water="0.5")
LIMITS = (4, 8, 16)
TRIED = TriedPolicies((SLIDING, BLOCKS), chosen_limits=(LIMITS, LIMITS))
PRICES = Prices(Decimal(1), Decimal("0.1"), Decimal("1.25"))
TOKENS = Prices()


def window(limit: int, *, blocks: bool = False) -> MessageWindow:
    return MessageWindow(limit, low_water="0.5") if blocks else MessageWindow(limit)


def conversation(
    id: str,
    points: Mapping[tuple[int, int], Tally],
    today: Tally | None = None,
    policy: Policy | None = None,
    *,
    recalls: int = 20,
    calls: int = 8,
    tokens: int = 1_000,
    load: int = 40,
    turn: int = 2,
    need: int | None = 20,
    longest: int = 200,
    decided_by: DecidedBy = DecidedBy.POLICY,
    refused: str = "",
    size: int = 400,
) -> Measured:
    """Return a conversation that sends 1,000 tokens without a limit. `points` are tallies by
    variant (0 slides, 1 cuts in blocks) and limit.
    """
    found: dict[int, dict[int, Tally]] = {0: {}, 1: {}}
    for (variant, limit), tally in points.items():
        if limit < load:
            found[variant][limit] = tally
    figures = Figures(
        20,
        recalls,
        calls,
        longest,
        Tally(held=recalls, tokens=tokens),
        found,
        today,
        need,
        size=size,
        load=load,
        turn=turn,
    )
    return Measured(id, figures, TRIED, policy, decided_by, refused)


def all_hold(id: str, costs: Sequence[int], today: int | None = None, **more: object) -> Measured:
    """Return a conversation in which every window holds all 20 facts. `costs` are the tokens of the
    windows of `LIMITS`, first the sliding ones, and `today` those of a sliding window of 8.
    """
    places = [(variant, limit) for variant in (0, 1) for limit in LIMITS]
    points = {
        place: Tally(held=20, tokens=cost) for place, cost in zip(places, costs, strict=False)
    }
    own = None if today is None else Tally(held=20, tokens=today)
    return conversation(id, points, own, window(8) if own else None, **more)  # type: ignore[arg-type]
