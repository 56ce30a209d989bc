"""Estimates a provider's token count of a prompt from other calls of the same model with the same
tools.

A provider adds text that chatmemory does not see, such as text around the tool definitions. It may
also have another rule for dividing text into tokens. So the provider's count is estimated as
chatmemory's count times a factor, plus a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import NamedTuple

from inspector.rooms.calls.models import ModelCall

FEWEST = 3  # other calls that are needed to learn
MOST = 50  # other calls that are used, the newest
_READ = 200  # calls of a model among which calls with the same tools are looked for


class Learned(NamedTuple):
    """A rule that estimates the provider's token count: chatmemory's count times `factor`, plus
    `addition` tokens. `calls` is the number of calls from which the rule was learned.
    """

    factor: float
    addition: int
    calls: int

    def estimate(self, counted: int) -> int:
        """Return the likely token count of the provider for a prompt. `counted` is chatmemory's
        count.
        """
        return round(self.factor * counted) + self.addition

    @property
    def words(self) -> str:
        times = "" if self.factor == 1 else f" × {self.factor:g}"
        sign = "−" if self.addition < 0 else "+"
        return f"our estimate{times} {sign} {abs(self.addition):,}, learned from {self.calls} calls"


def learn(counts: Sequence[tuple[int, int]]) -> Learned | None:
    """Derive a factor and a constant from `counts`: pairs of chatmemory's count and the provider's
    count for the same prompt. None for fewer than three pairs.

    - The factor is at least 1. It is the median of the slopes between every two pairs.
    - The constant is the median of a difference: the provider's count minus the product of the
      factor and chatmemory's count.

    Because of the medians, a few unusual calls hardly change the result.
    """
    if len(counts) < FEWEST:
        return None
    pairs = combinations(counts, 2)
    slopes = [
        (theirs - other) / (ours - one) for (ours, theirs), (one, other) in pairs if ours != one
    ]
    factor = round(max(1, median(slopes)), 2) if slopes else 1
    addition = median(theirs - factor * ours for ours, theirs in counts)
    return Learned(factor, round(addition), len(counts))


def learned_for(call: ModelCall) -> Learned | None:
    """Return the rule that estimates the provider's token count for a call. The rule is learned
    from other calls of the same model with the same tools. None if there are too few such calls.
    """
    rows = ModelCall.objects.filter(
        model=call.model, is_countable=True, is_exact=True, input__gt=0, counted__gt=0
    )
    newest = rows.order_by("-at").values_list("memory_id", "n", "tools", "counted", "input")
    counts = [
        (counted, window)
        for memory_id, n, tools, counted, window in newest[:_READ]
        if tools == call.tools and (memory_id, n) != (call.memory_id, call.n)
    ]
    return learn(counts[:MOST])
