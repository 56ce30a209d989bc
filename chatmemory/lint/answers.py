"""Answers of providers that are about no rule of a message: a prompt that is too long, or a rate.

The wordings are those of the providers' own servers, as their documentation and public reports of
users quote them. Numbers are those of the answer; a provider that gives none leaves them None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.lint.texts import texts_in
from chatmemory.patterns import declared_pattern

_NUMBER = r"[\d,]{1,12}"  # in place of # in the patterns


class ErrorPlace(NamedTuple):
    """A position in a request, as named by a provider's error.

    It has the name of the list, the index in the list, and the rest of the path in one form, such
    as `messages`, 0 and `.content[1]`.
    """

    list: str
    at: int
    rest: str

    @property
    def path(self) -> str:
        return f"{self.list}[{self.at}]{self.rest}"


@dataclass(frozen=True)
class TooLong:
    """The answer that a prompt is too long: `tokens` of at most `maximum`, of which `reply` are for
    the answer of the model.
    """

    tokens: int | None = None
    maximum: int | None = None
    reply: int = 0

    @property
    def over(self) -> int | None:
        """The number of tokens by which the prompt is too long, or None."""
        if self.tokens is None or self.maximum is None:
            return None
        return max(0, self.tokens + self.reply - self.maximum)

    @property
    def fits(self) -> int | None:
        """The most tokens of a prompt that fits, or None."""
        return None if self.maximum is None else max(0, self.maximum - self.reply)


@dataclass(frozen=True)
class RateLimited:
    """The answer that a rate is exceeded: `limit` of `unit` a `period`, and the seconds to wait. ""
    and None for what the answer does not say.
    """

    limit: int | None = None
    unit: str = ""
    period: str = ""
    wait: str = ""


_TOO_LONG = tuple(
    declared_pattern(each.replace("#", _NUMBER), re.IGNORECASE)
    for each in (
        # Anthropic, also on Bedrock and Vertex AI
        r"prompt is too long: (?P<tokens>#) tokens > (?P<maximum>#) maximum",
        r"exceed context limit: (?P<tokens>#) \+ (?P<reply>#) > (?P<maximum>#)",
        # OpenAI, DeepSeek and servers with their API, such as vLLM
        (
            r"maximum context length is (?P<maximum>#) tokens.{0,20}?however, (?:you|your "
            r"request|your messages) (?:requested|resulted in|has) (?:about )?(?P<all>#) tokens "
            r"\((?P<tokens>#) (?:in|of)[^()]{0,80}?(?P<reply>#) (?:in|for) the completion\)"
        ),
        (
            r"maximum context length is (?P<maximum>#) tokens.{0,20}?however, (?:you|your "
            r"request|your messages) (?:requested|resulted in|has) (?:about )?(?P<tokens>#) "
            r"(?:input )?tokens"
        ),
        r"maximum context length is (?P<maximum>#) tokens",
        r"exceeds the context window of this model",
        r"context_length_exceeded",
        # Gemini
        (
            r"input token count \(?(?P<tokens>#)\)? exceeds the maximum number of tokens allowed "
            r"\(?(?P<maximum>#)"
        ),
        r"input token count exceeds the maximum number of tokens allowed \(?(?P<maximum>#)",
        # Mistral
        (
            r"prompt contains (?P<tokens>#) tokens.{0,60}?too large for model with (?P<maximum>#) "
            r"maximum context length"
        ),
        # Bedrock Converse
        r"max input tokens: (?P<maximum>#), request input token count: (?P<tokens>#)",
        r"input is too long for requested model",
        r"prompt is too long",
    )
)
_RATES = tuple(
    declared_pattern(each.replace("#", _NUMBER), re.IGNORECASE)
    for each in (
        # OpenAI, also "Request too large"
        (
            r"(?:rate limit reached|request too large) for .{1,200}? on (?P<unit>tokens|requests)"
            r" per (?P<period>min|day)\w*+ \(\w{3}\): limit:? (?P<limit>#)"
            r"(?:.{0,200}?try again in (?P<wait>[\dhms.]{1,12}[hms]))?"
        ),
        # Anthropic
        (
            r"rate limit of (?P<limit>#) (?P<unit>(?:input |output )?tokens|requests) per "
            r"(?P<period>minute|day)"
        ),
        # Gemini
        (
            r"quota exceeded for .{1,200}?limit: (?P<limit>#)"
            r"(?:.{0,300}?retry in (?P<wait>[\d.]{1,12}s))?"
        ),
        # The other providers name no number
        r"rate[_ -]?limit(?:[_ ](?:error|exceeded|reached))",
        r"requests rate limit exceeded",
        r"exceeded your (?:current quota|per-minute rate limit)",
        r"resource has been exhausted",
        r"resource_exhausted",
        r"throttlingexception",
        r"too many (?:requests|tokens), please wait",
    )
)
_PLACE = declared_pattern(
    r"(?<![\w.])(messages|input|contents)(?:\.?\[(\d{1,9})\]|\.(\d{1,9})(?!\w))"
    r"((?:\.?\[\d{1,9}\]|\.[A-Za-z_]\w{0,40}+|\.\d{1,9}(?!\w)){0,12}+)"
)
_STEP = declared_pattern(r"\.?\[(\d{1,9})\]|\.(\d{1,9})(?!\w)", most=1_000)


def too_long(error: str) -> TooLong | None:
    """Return the details of a provider's error about a too long prompt, or None for another
    error.
    """
    for text in texts_in(error):
        for pattern in _TOO_LONG:
            if found := pattern.search(text):
                named = found.groupdict()
                return TooLong(
                    _count(named.get("tokens")),
                    _count(named.get("maximum")),
                    _count(named.get("reply")) or 0,
                )
    return None


def rate_limited(error: str) -> RateLimited | None:
    """Return the details of a provider's rate limit error, or None for another error."""
    for text in texts_in(error):
        for pattern in _RATES:
            if found := pattern.search(text):
                named = found.groupdict()
                period = (named.get("period") or "").lower()
                return RateLimited(
                    _count(named.get("limit")),
                    (named.get("unit") or "").lower(),
                    "minute" if period == "min" else period,
                    named.get("wait") or "",
                )
    return None


def place_in(error: str) -> ErrorPlace | None:
    """Return the first place in a request that an error names, in any provider's form:
    `messages.[0].role`, `messages[0].role` or `messages.0.content.1`.
    """
    for text in texts_in(error):
        if found := _PLACE.search(text):
            rest = _STEP.sub(lambda step: f"[{step[1] or step[2]}]", found[4])
            return ErrorPlace(found[1], int(found[2] or found[3]), rest)
    return None


def _count(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits else None
