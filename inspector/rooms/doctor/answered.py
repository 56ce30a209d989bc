"""Explains a provider's error message that no rule of the linter explains. Such a message reports a
rate limit or a too long prompt, or names a position in the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from chatmemory.explain.wording import counted
from chatmemory.lint.answers import place_in, rate_limited, too_long
from chatmemory.models import Memory

NEAR = 0.8  # of the most tokens of a prompt
SHOWN = 5  # conversations


class AnsweredError:
    """Presents an error message that somebody has pasted. If `is_known`, a rule of the linter
    already explains the error: then all properties are empty.
    """

    def __init__(self, error: str, is_known: bool = False) -> None:
        sought = "" if is_known else error
        self._long = too_long(sought)
        self._rate = None if self._long else rate_limited(sought)
        self._place = place_in(sought)

    @property
    def title(self) -> str:
        """The kind of the error in words; "" unless it is a rate limit or a too long prompt."""
        if self._long:
            return "The prompt is too long"
        if self._rate and self._rate.is_spending:
            return "The credit or the budget is used up"
        return "A rate limit was exceeded" if self._rate else ""

    @property
    def numbers(self) -> str:
        """A sentence with the limits and counts that the error names, or ""."""
        if self._long:
            return self._length_words()
        if self._rate and self._rate.limit is not None:
            unit = self._rate.unit or "requests"
            period = f" per {self._rate.period}" if self._rate.period else ""
            return f"The limit is {self._rate.limit:,} {unit}{period}."
        return ""

    def _length_words(self) -> str:
        found = self._long
        if found and found.maximum is None and found.over:
            return f"The prompt is {counted(found.over, 'token')} too long."
        if found is None or found.maximum is None:
            return "The provider does not say how many tokens fit."
        if found.tokens is None:
            return f"At most {counted(found.maximum, 'token')} fit into the context window."
        reply = f" and {found.reply:,} for the reply" if found.reply else ""
        return (
            f"The prompt had {counted(found.tokens, 'token')}{reply}, but {found.maximum:,} fit: "
            f"{counted(found.over or 0, 'token')} too many."
        )

    @property
    def cure(self) -> str:
        """Sentences about how to avoid a rate limit or a too long prompt; "" for any other
        error.
        """
        if self._rate and self._rate.is_spending:
            return "Add credit, or raise the limit of the account. No message has to change."
        if self._rate:
            wait = f"Wait {self._rate.wait}, then" if self._rate.wait else "Wait, then"
            return f"{wait} send the same request again. No message has to change."
        if self._long is None:
            return ""
        if self.fits is None:
            return "Find the model's context window, and set a token limit below it."
        return (
            f"Set a limit of at most {counted(self.fits, 'token')}. Tool definitions need "
            "tokens too, "
            "but are not in memory: lower the limit by the tokens of your tool definitions."
        )

    @property
    def place(self) -> str:
        """A sentence about the message that the error names by its position in the request,
        or "".
        """
        if self._place is None:
            return ""
        number = f"message {self._place.at + 1:,} of the request"
        return f"The error is about {number}, which has the path {self._place.path}."

    @property
    def fits(self) -> int | None:
        return self._long.fits if self._long else None

    @cached_property
    def near(self) -> Sequence[tuple[str, int]]:
        """The conversations that may soon cause the same error, as pairs of an ID and the tokens in
        memory. The largest memory comes first.

        These memories have at least 80 % of the tokens that the provider accepts, according to the
        error.
        """
        if not self.fits:
            return ()
        rows = Memory.objects.filter(window_tokens__gte=int(NEAR * self.fits))
        return list(rows.order_by("-window_tokens", "pk").values_list("pk", "window_tokens"))

    @property
    def shown(self) -> Sequence[tuple[str, int]]:
        return self.near[:SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.near) - SHOWN)
