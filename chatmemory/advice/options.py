"""Sums up the effects of each policy over all conversations: facts held, repetitions and cost."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from chatmemory.advice.values import Goals, Measured, Option
from chatmemory.recall.cost import Prices
from chatmemory.recall.frontier import Figures
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import Policy


def known_figures(each: Measured) -> Figures:
    assert each.figures is not None
    return each.figures


def is_of_first_half(id: str) -> bool:
    """Return whether a conversation is in the first of two halves. An advice is checked in each
    half.

    The half depends only on a hash of the id, so a conversation never changes its half. The halves
    may differ in size.
    """
    return hashlib.sha256(id.encode()).digest()[0] < 128


class Counted(NamedTuple):
    """A conversation that counts for an advice, with numbers that are computed once.

    - `measured`: the conversation.
    - `figures`: its figures under the tried policies.
    - `half`: 0 for the first half of the conversations, else 1 (see `is_of_first_half`).
    - `parts`: the cost of one token, divided by the cost of sending everything in this
      conversation. The three numbers are for tokens outside the prompt cache, tokens read from the
      cache, and tokens written to the cache.
    - `per_fact`: 1 divided by the number of facts needed again, or 0 if no fact was needed.
    """

    measured: Measured
    figures: Figures
    half: int
    parts: tuple[float, float, float]
    per_fact: float

    @classmethod
    def of(cls, measured: Measured, prices: Prices) -> Counted:
        figures = known_figures(measured)
        whole = prices.cost_in_tokens(figures.everything.bill(figures.calls)) or 1.0
        fresh, read, written = (part / whole for part in prices.parts)
        per_fact = 1 / figures.recalls if figures.recalls else 0.0
        half = 0 if is_of_first_half(measured.id) else 1
        return cls(measured, figures, half, (fresh, read, written), per_fact)

    def cost(self, tally: Tally) -> float:
        """Return the cost of a policy in this conversation, relative to sending everything. `tally`
        has the tokens that the policy sends.
        """
        fresh, read, written = self.parts
        rest = tally.tokens - tally.read - tally.written
        return fresh * rest + read * tally.read + written * tally.written


class Sums:
    """Adds up the figures of one option, such as one policy, over conversations.

    The conversations are divided into two halves (see `is_of_first_half`).

    - `conversations`: the number of conversations in each half.
    - `costs`: the sum of the relative costs in each half.
    - `share`: the sum of the conversations' shares of facts held.
    - `numbers`: the sum of each field of `Tally`, in the order of the fields.
    """

    __slots__ = ("conversations", "costs", "numbers", "share")

    def __init__(self) -> None:
        self.conversations = [0, 0]
        self.costs = [0.0, 0.0]
        self.share = 0.0
        self.numbers = [0] * len(Tally._fields)

    def add(self, each: Counted, tally: Tally) -> None:
        """Add a conversation and its `tally` under the option.

        Advice on many conversations spends most of its time here, so the code is written out field
        by field.
        """
        held, user, call, tokens, read, written, by_index = tally
        numbers = self.numbers
        numbers[0] += held
        numbers[1] += user
        numbers[2] += call
        numbers[3] += tokens
        numbers[4] += read
        numbers[5] += written
        numbers[6] += by_index
        fresh, cached, writing = each.parts
        half = each.half
        self.costs[half] += fresh * (tokens - read - written) + cached * read + writing * written
        self.share += held * each.per_fact if each.per_fact else 1.0
        self.conversations[half] += 1

    def plus(self, other: Sums) -> Sums:
        found = Sums()
        found.conversations = [*map(int.__add__, self.conversations, other.conversations)]
        found.costs = [*map(float.__add__, self.costs, other.costs)]
        found.share = self.share + other.share
        found.numbers = [*map(int.__add__, self.numbers, other.numbers)]
        return found


def option_of(policy: Policy | None, found: Sums, needed: int, calls: int) -> Option:
    """Return the `Option` of a policy, with sums and means computed from `found`.

    `needed` is the number of facts needed again, and `calls` the number of model calls.
    """
    counts = found.conversations
    first, second = (
        cost / count if count else None for cost, count in zip(found.costs, counts, strict=True)
    )
    return Option(
        policy,
        Tally(*found.numbers),
        needed,
        calls,
        found.share / sum(counts),
        sum(found.costs) / sum(counts),
        from_conversations=sum(counts),
        halves=(first, second),
    )


class Options:
    """The options that an advice can choose: the tried windows, the policy in force and sending
    everything.

    `needed` is the number of facts needed again, and `calls` the number of model calls. `longest`
    is the longest prompt in tokens. `turn` is the smallest limit that has room for the largest turn
    and the system message.
    """

    def __init__(self, measured: Sequence[Measured], goals: Goals, prices: Prices) -> None:
        self.counted = [Counted.of(each, prices) for each in measured]
        self._goals = goals
        known = [each.figures for each in self.counted]
        self.needed = sum(each.recalls for each in known)
        self.calls = sum(each.calls for each in known)
        self.longest = max(each.longest for each in known)
        self.turn = max(each.turn for each in known)

    @cached_property
    def everything(self) -> Option:
        found = Sums()
        for each in self.counted:
            found.add(each, each.figures.everything)
        context = self._goals.context
        return self._option(None, found, context is None or self.longest <= context)

    @cached_property
    def today(self) -> Option | None:
        """The policies in force as one option. None if a counted conversation has no figures for
        its policy in force.
        """
        found = Sums()
        for each in self.counted:
            tally = each.measured.today
            if tally is None:
                return None
            found.add(each, tally)
        policies = {
            None if each.measured.sends_everything else each.measured.policy
            for each in self.counted
        }
        policy = next(iter(policies)) if len(policies) == 1 else None
        fits = all(self.everything.fits if each is None else self._fits(each) for each in policies)
        return replace(self._option(policy, found, fits), mixed=len(policies) > 1)

    def _option(self, policy: Policy | None, found: Sums, fits: bool) -> Option:
        return replace(option_of(policy, found, self.needed, self.calls), fits=fits)

    def _fits(self, policy: Policy) -> bool:
        context = self._goals.context
        if context is None or policy.unit != "tokens":
            return True
        return self.longest <= context or policy.limit <= context

    @cached_property
    def windows(self) -> list[Option]:
        """The limits that were tried in every conversation, with their effects, cheapest first.

        Limits without room for the largest turn, and limits that hold none of the needed facts, are
        left out.
        """
        options = (
            self._option(policy, found, self._fits(policy)) for policy, found in self._tried()
        )
        enough = (each for each in options if not self.needed or each.held)
        return sorted(enough, key=cheapest)

    def _tried(self) -> Iterator[tuple[Policy, Sums]]:
        """Yield each window that was tried in all conversations, with its sums. A conversation that
        fits the limit as a whole counts as sending everything.
        """
        sums: dict[tuple[Policy, int], Sums] = {}
        for each in self.counted:
            assert each.measured.tried is not None
            for number, variant in enumerate(each.measured.tried.variants):
                for limit, tally in each.figures.points.get(number, {}).items():
                    if limit >= self.turn:
                        sums.setdefault((variant, limit), Sums()).add(each, tally)
        whole = self._whole
        loads = [load for load, _ in whole]
        clears = any(each.figures.clears for each in self.counted)
        for (variant, limit), found in sums.items():
            fitting = whole[bisect_right(loads, limit) - 1][1]
            all_of_them = found.plus(fitting)
            if sum(all_of_them.conversations) == len(self.counted) and (
                clears or not self._clears_beside(variant)
            ):
                yield replace(variant, limit=limit), all_of_them

    def _clears_beside(self, variant: Policy) -> bool:
        """Return whether a variant clears old tool results, while the kind of policy that is tried
        does not.
        """
        first = self.counted[0].measured.tried
        return first is not None and bool(variant.whole_results) and not first.kind.whole_results

    @cached_property
    def _whole(self) -> list[tuple[int, Sums]]:
        """Pairs of a load and sums. The sums are those of sending everything, over all
        conversations whose load is at most this load.
        """
        found = [(-1, Sums())]
        for each in sorted(self.counted, key=lambda each: each.figures.load):
            sums = Sums()
            sums.add(each, each.figures.everything)
            found.append((each.figures.load, found[-1][1].plus(sums)))
        return found

    def has_room(self, option: Option) -> bool:
        if option.policy is not None:
            return option.policy.limit >= self.turn
        known = (each.measured for each in self.counted)
        return not option.mixed or all(
            each.policy is None or each.sends_everything or each.policy.limit >= each.needed_limit
            for each in known
        )


def cheapest(option: Option) -> tuple[float, float, int, int]:
    """Return a sort key: sorted by this key, the option with the lowest cost comes first.

    Options of equal cost are sorted by the share of facts held, largest first. After that, fewer
    repetitions and then a smaller limit come first.
    """
    limit = option.policy.limit if option.policy else 0
    return round(option.cost, 9), -round(option.share, 9), option.repeated, limit
