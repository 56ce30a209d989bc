"""The bar above the messages of memory, which shows what the tokens of the limit are used for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

from chatmemory.explain.wording import system_share
from chatmemory.reading.budget import Budget, budget_of, shares
from inspector.shell.state import ConversationState

WIDTH = 1000
_MEANING = {"Talk": "users, AI and tool calls"}  # of names that do not say it


class Segment(NamedTuple):
    """A part of a bar of tokens, such as the part of the tool results.

    `glyph` names the icon of the part, or is "". `percent` is the part's share of the whole bar.
    `start` and `width` are its position and its width on a bar that is WIDTH units wide.
    """

    name: str
    glyph: str
    css: str
    tokens: int
    percent: int
    start: float
    width: float

    @property
    def title(self) -> str:
        """The tokens of the part in words, such as `120 tok`. If the name of the part needs an
        explanation, the explanation comes first.
        """
        tokens = f"{self.tokens:,} tok"
        return f"{_MEANING[self.name]}: {tokens}" if self.name in _MEANING else tokens

    @property
    def share(self) -> str:
        return share_words(self.percent, self.tokens)


def share_words(percent: int, tokens: int) -> str:
    """Format a percentage: `16 %`, or `<1 %` if `percent` is 0 although there are `tokens`."""
    return "<1 %" if tokens and not percent else f"{percent} %"


def segments(
    kinds: Sequence[tuple[str, str, str, int]], whole: int, gap: float = 0.0
) -> list[Segment]:
    """Return the parts of a bar from left to right, with a gap after each part. Parts without
    tokens are left out.

    Each of `kinds` is a name, an icon, a CSS class and a number of tokens. `whole` is the number of
    tokens that fills the whole bar. `gap` is a width on a bar that is WIDTH units wide.
    """
    amounts = [tokens for *_, tokens in kinds]
    percents = shares([*amounts, whole - sum(amounts)])
    found, start = [], 0.0
    for (name, glyph, css, tokens), percent in zip(kinds, percents, strict=False):
        if tokens:
            width = round(WIDTH * tokens / whole, 1)
            shown = max(0.0, width - gap)
            found.append(Segment(name, glyph, css, tokens, percent, round(start, 1), shown))
            start += width
    return found


@dataclass(frozen=True)
class BudgetBar:
    """Presents the bar that shows how many tokens of a window each kind of message takes. `budget`
    has the numbers of tokens, and `counted_as` names the estimator.
    """

    width: ClassVar = WIDTH

    budget: Budget
    counted_as: str

    @classmethod
    def of(cls, state: ConversationState) -> BudgetBar:
        """Return the bar of the window that a page shows."""
        contents = state.contents
        budget = budget_of(state.window, contents.summaries, contents.media, contents.index)
        return cls(budget, state.memory.estimator)

    @property
    def words(self) -> str:
        """The parts of the bar with their percentages in words, for screen readers."""
        return ", ".join(f"{each.name} {each.percent} percent" for each in self.segments)

    @property
    def whole_words(self) -> str:
        """What the full width of the bar stands for: `the limit`, `the limit plus the system
        message`, or `the tokens in memory`.
        """
        if self.budget.limit is None or self.budget.used >= self.budget.whole:
            return "the tokens in memory"
        beside = " plus the system message" if self.budget.uncounted else ""
        return f"the limit{beside}"

    @property
    def free(self) -> str:
        """The unused percentage of the bar as text, such as `16 %`; "" if the policy has no limit
        in tokens.
        """
        if self.budget.limit is None:
            return ""
        return share_words(shares(self.budget.parts)[-1], self.budget.free)

    @property
    def finding(self) -> str:
        """A sentence about a system message that takes a large part of the limit, such as `The
        system message takes 63 % of the limit: 748 tokens remain for other messages`.

        "" if the part is not large, or if the policy has no limit in tokens.
        """
        return system_share(self.budget) if self.budget.is_system_heavy else ""

    @cached_property
    def segments(self) -> list[Segment]:
        """The parts of the bar from left to right."""
        budget = self.budget
        kinds = (
            ("System", "system", "b-sys", budget.system),
            ("Index", "index", "b-idx", budget.index),
            ("Summaries", "ai", "b-sum", budget.summaries),
            ("Media", "media", "b-media", budget.media),
            ("Results", "result", "b-res", budget.results),
            ("Talk", "user", "b-talk", budget.talk),
            ("Request overhead", "", "b-req", budget.overhead),
        )
        found = segments(kinds, budget.whole)
        return [each for each in found if each.glyph or each.percent]
